//! The *worker*: the thread that runs tools, one at a time. Two that sample at once would
//! disturb each other.

use super::kept::Kept;
use super::message::{self, Id};
use super::protocol::ToolCall;
use super::tools;
use profile::Cancel;
use serde_json::Value;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A call of a tool that a client has asked for.
#[derive(Debug)]
pub struct Call {
    pub id: Id,
    tool: ToolCall,
    cancel: Cancel,
}

impl Call {
    /// A call that nobody has cancelled.
    pub fn new(id: Id, tool: ToolCall) -> Self {
        Call {
            id,
            tool,
            cancel: Cancel::new(),
        }
    }
}

/// The thread, and which call it works on.
pub struct Worker {
    calls: Sender<Call>,
    busy: Option<(Id, Cancel)>,
}

impl Worker {
    /// Starts the thread; answers come through the channel, one for each call.
    pub fn start(allows_probes: bool) -> io::Result<(Worker, UnboundedReceiver<Value>)> {
        let (calls, received) = channel::<Call>();
        let (send, done) = unbounded_channel();
        thread::Builder::new().name("tools".into()).spawn(move || {
            let mut kept = Kept::new(allows_probes);
            for call in received {
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

    /// Whether a call can begin.
    pub fn is_free(&self) -> bool {
        self.busy.is_none()
    }

    /// Begins a call.
    pub fn begin(&mut self, call: Call) {
        self.busy = Some((call.id.clone(), call.cancel.clone()));
        // The thread ends only when we do.
        let _ = self.calls.send(call);
    }

    /// The answer of the call has come. Returns whether the call was cancelled.
    pub fn finish(&mut self) -> bool {
        let done = self.busy.take();
        done.is_some_and(|(_, cancel)| cancel.is_cancelled())
    }

    /// Stops the call that is under way, if it is this one.
    pub fn cancel_if(&self, id: &Id) {
        if let Some((busy, cancel)) = &self.busy
            && busy == id
        {
            cancel.cancel();
        }
    }

    /// Stops the call that is under way.
    pub fn cancel(&self) {
        if let Some((_, cancel)) = &self.busy {
            cancel.cancel();
        }
    }
}

/// What a client reads after a panic, which is told on standard error when we end.
const MISTAKE: &str = "proftop made a mistake of its own, and has no answer to this.";
