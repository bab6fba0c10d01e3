//! Senders that wake up the thread which receives: it waits for an alarm, and looks for messages of
//! all kinds when the alarm has rung.

use probe::alarm::Alarm;
use probe::channel::{SendError, Sender, SyncSender};
use std::sync::Arc;

/// The sending end of a channel, with the alarm of the receiving thread.
#[derive(Debug, Clone)]
pub struct Waking<S> {
    sender: S,
    alarm: Arc<Alarm>,
}

impl<S> Waking<S> {
    /// Rings this alarm after each message.
    pub fn new(sender: S, alarm: Arc<Alarm>) -> Self {
        Self { sender, alarm }
    }
}

impl<T: Send + 'static> Waking<Sender<T>> {
    /// Sends a message. Returns it if nobody can receive it any more.
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.sender.send(message)?;
        self.alarm.ring();
        Ok(())
    }
}

impl<T: Send + 'static> Waking<SyncSender<T>> {
    /// Sends a message, after waiting for room. Returns it if nobody can receive it any more.
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.sender.send(message)?;
        self.alarm.ring();
        Ok(())
    }
}
