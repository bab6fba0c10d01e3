//! The *worker*: the thread that runs tools, one at a time, because two that sample at once would
//! disturb each other.

use super::kept::Kept;
use super::message::{self, Id};
use super::protocol::ToolCall;
use super::tools;
use probe::channel::{Sender, channel};
use profile::Cancel;
use serde_json::Value;
use std::io;
use std::thread;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A call of a tool by a client.
#[derive(Debug)]
pub struct Call {
    pub id: Id,
    tool: ToolCall,
    cancel: Cancel,
}

impl Call {
    /// Creates a call, which is not cancelled.
    pub fn new(id: Id, tool: ToolCall) -> Self {
        Call {
            id,
            tool,
            cancel: Cancel::new(),
        }
    }
}

/// The thread, and the call that it runs.
pub struct Worker {
    calls: Sender<Call>,
    busy: Option<(Id, Cancel)>,
}

impl Worker {
    /// Starts the thread. The channel delivers one answer for each call.
    pub fn start(allows_probes: bool) -> io::Result<(Worker, UnboundedReceiver<Value>)> {
        let (calls, received) = channel::<Call>();
        let (send, done) = unbounded_channel();
        thread::Builder::new().name("tools".into()).spawn(move || {
            let mut kept = Kept::new(allows_probes);
            for call in received.iter() {
                let work = || tools::run(&call.tool.wanted, &mut kept, &call.cancel);
                let answer = faults::catch("running a tool", work)
                    .unwrap_or_else(|_| Err(MISTAKE.to_owned()));
                let (text, is_error) = match &answer {
                    Ok(text) => (text, false),
                    Err(why) => (why, true),
                };
                let result = call.tool.result(text, is_error);
                if send.send(message::succeeded(&call.id, result)).is_err() {
                    break;
                }
            }
        })?;
        Ok((Worker { calls, busy: None }, done))
    }

    /// Whether no call is running.
    pub fn is_free(&self) -> bool {
        self.busy.is_none()
    }

    /// Passes a call to the thread.
    pub fn begin(&mut self, call: Call) {
        self.busy = Some((call.id.clone(), call.cancel.clone()));
        // Sending fails only if the thread has ended, which it does when the server ends.
        let _ = self.calls.send(call);
    }

    /// Marks the call as done, after its answer was received. Returns whether the call was
    /// cancelled.
    pub fn finish(&mut self) -> bool {
        let done = self.busy.take();
        done.is_some_and(|(_, cancel)| cancel.is_cancelled())
    }

    /// Cancels the running call if it has this identifier.
    pub fn cancel_if(&self, id: &Id) {
        if let Some((busy, cancel)) = &self.busy
            && busy == id
        {
            cancel.cancel();
        }
    }

    /// Cancels the running call.
    pub fn cancel(&self) {
        if let Some((_, cancel)) = &self.busy {
            cancel.cancel();
        }
    }
}

/// The answer to a client after a panic. Details are printed on standard error when proftop exits.
const MISTAKE: &str = "proftop made a mistake of its own, and has no answer to this.";
