//! Channels between threads: those of the standard library, in little machine code.
//!
//! The standard library's channel is compiled again for each type of message, some 5 kB each time.
//! Here messages are boxed, so that it is compiled once. That costs one allocation per message,
//! and no channel of proftop carries more than some hundred messages a second.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::mpsc;
use std::time::Duration;

pub use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

type Boxed = Box<dyn Any + Send>;

/// The sending end of a channel without a limit. Its type decides which messages the channel has.
#[derive(Debug)]
pub struct Sender<T>(mpsc::Sender<Boxed>, PhantomData<fn(T)>);

/// The sending end of a channel in which a limited number of messages can wait.
#[derive(Debug)]
pub struct SyncSender<T>(mpsc::SyncSender<Boxed>, PhantomData<fn(T)>);

/// The receiving end of a channel.
#[derive(Debug)]
pub struct Receiver<T>(mpsc::Receiver<Boxed>, PhantomData<fn() -> T>);

/// Makes a channel as [`mpsc::channel`] does.
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::channel();
    (Sender(sender, PhantomData), Receiver(receiver, PhantomData))
}

/// Makes a channel as [`mpsc::sync_channel`] does: at most `bound` messages wait in it.
pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::sync_channel(bound);
    (
        SyncSender(sender, PhantomData),
        Receiver(receiver, PhantomData),
    )
}

/// Returns the message in a box.
fn unboxed<T: 'static>(message: Boxed) -> T {
    match message.downcast() {
        Ok(message) => *message,
        Err(_) => unreachable!("both ends of a channel have the same type of message"),
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<T> Clone for SyncSender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<T: Send + 'static> Sender<T> {
    /// Sends a message. Returns it if nobody can receive it any more.
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        let sent = self.0.send(Box::new(message));
        sent.map_err(|SendError(message)| SendError(unboxed(message)))
    }
}

impl<T: Send + 'static> SyncSender<T> {
    /// Sends a message, after waiting for room. Returns it if nobody can receive it any more.
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        let sent = self.0.send(Box::new(message));
        sent.map_err(|SendError(message)| SendError(unboxed(message)))
    }

    /// Sends a message without waiting. Returns it if there is no room, or nobody who could
    /// receive it.
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        let sent = self.0.try_send(Box::new(message));
        sent.map_err(|error| match error {
            TrySendError::Full(message) => TrySendError::Full(unboxed(message)),
            TrySendError::Disconnected(message) => TrySendError::Disconnected(unboxed(message)),
        })
    }
}

impl<T: 'static> Receiver<T> {
    /// Waits for a message. Returns an error if there is none left and nobody can send one.
    pub fn recv(&self) -> Result<T, RecvError> {
        self.0.recv().map(unboxed)
    }

    /// Waits for a message, but no longer than `timeout`.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.0.recv_timeout(timeout).map(unboxed)
    }

    /// Returns a message if there is one.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.0.try_recv().map(unboxed)
    }

    /// Returns the messages that are there, without waiting for more.
    pub fn try_iter(&self) -> impl Iterator<Item = T> {
        self.0.try_iter().map(unboxed)
    }

    /// Returns all messages until nobody can send one any more.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        self.0.iter().map(unboxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_in_order_until_the_last_sender_is_gone() {
        let (sender, receiver) = channel();
        let other = sender.clone();
        let thread = std::thread::spawn(move || {
            for number in 0..100u64 {
                other.send(number.to_string()).unwrap();
            }
        });
        thread.join().unwrap();
        assert_eq!(receiver.recv().unwrap(), "0");
        assert_eq!(receiver.try_recv().unwrap(), "1");
        assert_eq!(receiver.recv_timeout(Duration::MAX).unwrap(), "2");
        let rest: Vec<String> = receiver.try_iter().collect();
        assert_eq!(rest.len(), 97);
        assert_eq!(rest.last().map(String::as_str), Some("99"));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        drop(sender);
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
        assert_eq!(receiver.iter().count(), 0);
    }

    #[test]
    fn a_message_that_cannot_be_sent_comes_back() {
        let (sender, receiver) = sync_channel(1);
        sender.send(vec![1]).unwrap();
        assert_eq!(sender.try_send(vec![2]), Err(TrySendError::Full(vec![2])));
        drop(receiver);
        assert_eq!(
            sender.try_send(vec![3]),
            Err(TrySendError::Disconnected(vec![3]))
        );
        assert_eq!(sender.send(vec![4]), Err(SendError(vec![4])));
    }
}
