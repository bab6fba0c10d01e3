//! `mcp`: a server of the Model Context Protocol over standard input and output, through which an
//! assistant can examine what a machine does. It only reads, unless `--allow-probes` lets it count
//! calls of functions.
//!
//! | module | holds |
//! |---|---|
//! | `lines` | the incoming messages, each of a bounded length |
//! | `message` | JSON-RPC: what a message is, and what an answer looks like |
//! | `protocol` | the methods and versions of the protocol |
//! | `worker` | the thread that runs tools, one at a time |
//! | `tools` | the list of tools, and their arguments |
//! | `arguments` | the arguments of a call, checked |
//! | `kept`, `samples` | samples of earlier calls, kept for later ones |
//! | `look`, `drill`, `code`, `difference`, `missing`, `trace` | one tool each |
//!
//! ```text
//! stdin ─► lines ─► this loop ─► worker ─► tools
//!                      │  ▲        │
//! stdout ◄── writer ◄──┘  └────────┘
//! ```

mod arguments;
mod code;
mod difference;
mod drill;
mod kept;
mod lines;
mod look;
mod message;
mod missing;
mod protocol;
mod samples;
mod tools;
mod trace;
mod worker;

use super::run_command::Signals;
use crate::cli::McpConfig;
use crate::failure::{Exit, Failure};
use crate::reader::Reader;
use lines::Line;
use message::{Error, Id, Incoming};
use protocol::{Protocol, Reply};
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};
use worker::{Call, Worker};

/// How many answers may wait until the client reads them. Beyond it, no further message is read.
const ANSWERS_MAX: usize = 64;
/// How many calls of tools may wait for the worker.
const CALLS_MAX: usize = 16;
/// How long after the end of its input the server still answers earlier requests. Together with the
/// time that it takes to exit, this is less than a second.
const LAST_WAIT: Duration = Duration::from_millis(500);
/// How long a cancelled call may take to stop.
const STOP_WAIT: Duration = Duration::from_millis(250);

/// Runs the server until its input ends, its output is closed, or a signal arrives.
pub fn run(config: &McpConfig) -> Result<Exit, Failure> {
    let runtime = super::event_loop()?;
    let exit = runtime.block_on(serve(config));
    // Threads that still work end with the process.
    runtime.shutdown_background();
    exit
}

/// The event of one turn of the loop.
enum Turn {
    Line(Option<Line>),
    Answer(Value),
    Written,
    Over(Exit),
}

async fn serve(config: &McpConfig) -> Result<Exit, Failure> {
    let failed = |error: io::Error| Failure::failed(format!("cannot start a thread: {error}"));
    let mut signals = Signals::listen()?;
    let gone = Reader::of(io::stdout()).map_err(failed)?;
    let mut input = lines::read().map_err(failed)?;
    let (output, written) = write().map_err(failed)?;
    let (worker, mut done) = Worker::start(config.allows_probes).map_err(failed)?;
    let mut server = Server {
        protocol: Protocol::new(config.allows_probes),
        worker,
        calls: VecDeque::new(),
        answers: VecDeque::new(),
    };
    let mut end = None;
    let exit = loop {
        if end.is_some() && server.is_idle() {
            break Exit::Done;
        }
        let may_read = end.is_none() && server.answers.len() < ANSWERS_MAX;
        let has_answers = !server.answers.is_empty();
        let turn = tokio::select! {
            biased;
            caught = signals.any() => {
                let number = u8::try_from(caught.as_raw()).unwrap_or(0);
                Turn::Over(Exit::Signal(number))
            }
            () = gone.gone() => Turn::Over(Exit::Done),
            () = until(end) => Turn::Over(Exit::Done),
            room = output.reserve(), if has_answers => match (room, server.answers.pop_front()) {
                (Ok(room), Some(answer)) => {
                    room.send(answer);
                    Turn::Written
                }
                // The client has closed our output.
                _ => Turn::Over(Exit::Done),
            },
            answer = done.recv() => match answer {
                Some(answer) => Turn::Answer(answer),
                None => Turn::Over(Exit::Failed),
            },
            line = input.recv(), if may_read => Turn::Line(line),
        };
        match turn {
            Turn::Line(Some(line)) => server.handle(line),
            Turn::Line(None) => end = Some(Instant::now() + LAST_WAIT),
            Turn::Answer(answer) => server.finish(answer),
            Turn::Written => {}
            Turn::Over(exit) => break exit,
        }
    };
    server.worker.cancel();
    if !server.worker.is_free() {
        // A stopped call removes its probes before the process exits.
        let _ = timeout(STOP_WAIT, done.recv()).await;
    }
    // Answers that the writer has are still written, unless the client has closed the output.
    drop(output);
    if exit == Exit::Done {
        tokio::select! {
            _ = written => {}
            () = gone.gone() => {}
            () = until(end.or(Some(Instant::now() + LAST_WAIT))) => {}
        }
    }
    Ok(exit)
}

/// Waits until the given time; None means forever.
async fn until(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => std::future::pending().await,
    }
}

/// Starts the thread that writes answers. The receiver gets a value when the thread ends: because
/// the client has closed the output, or because there are no more answers.
fn write() -> io::Result<(mpsc::Sender<Value>, oneshot::Receiver<()>)> {
    let (output, mut answers) = mpsc::channel::<Value>(1);
    let (tell, written) = oneshot::channel();
    thread::Builder::new()
        .name("writer".into())
        .spawn(move || {
            let mut out = io::stdout().lock();
            while let Some(answer) = answers.blocking_recv() {
                let line = format!("{answer}\n");
                if out.write_all(line.as_bytes()).is_err() || out.flush().is_err() {
                    break;
                }
            }
            // Fails if the receiver is dropped, which is fine.
            let _ = tell.send(());
        })?;
    Ok((output, written))
}

/// The state of a connection.
struct Server {
    protocol: Protocol,
    worker: Worker,
    /// Calls that wait for the worker.
    calls: VecDeque<Call>,
    /// Answers that are not written yet.
    answers: VecDeque<Value>,
}

impl Server {
    /// Whether there is nothing to do and nothing to write.
    fn is_idle(&self) -> bool {
        self.worker.is_free() && self.calls.is_empty() && self.answers.is_empty()
    }

    /// Handles a message. If it is malformed, the answer says so.
    fn handle(&mut self, line: Line) {
        let bytes = match line {
            Line::Whole(bytes) => bytes,
            Line::TooLong => {
                let error = Error::parse(format!("longer than {} bytes", lines::LENGTH_MAX));
                return self.answers.push_back(message::failed(&Id::Null, &error));
            }
        };
        match message::read(&bytes) {
            Ok(Incoming::Request { id, method, params }) => self.request(id, &method, &params),
            Ok(Incoming::Notification { method, params }) => {
                if let Some(id) = protocol::cancelled(&method, &params) {
                    self.cancel(&id);
                }
            }
            // This server sends no requests, so it expects no responses.
            Ok(Incoming::Response) => {}
            Err((id, error)) => self.answers.push_back(message::failed(&id, &error)),
        }
    }

    /// Answers a request, or passes it on to the worker.
    fn request(&mut self, id: Id, method: &str, params: &Value) {
        let answer = match self.protocol.answer(method, params) {
            Ok(Reply::Result(result)) => message::succeeded(&id, result),
            Ok(Reply::Call(tool)) if self.calls.len() < CALLS_MAX => {
                self.calls.push_back(Call::new(id, tool));
                return self.next_call();
            }
            Ok(Reply::Call(_)) => message::failed(&id, &Error::busy(CALLS_MAX)),
            Err(error) => message::failed(&id, &error),
        };
        self.answers.push_back(answer);
    }

    /// Takes the answer of the worker, and starts the next call.
    fn finish(&mut self, answer: Value) {
        // Cancelled requests get no answer.
        if !self.worker.finish() {
            self.answers.push_back(answer);
        }
        self.next_call();
    }

    fn next_call(&mut self) {
        if self.worker.is_free()
            && let Some(call) = self.calls.pop_front()
        {
            self.worker.begin(call);
        }
    }

    /// Drops a waiting call, or stops it if it is running.
    fn cancel(&mut self, id: &Id) {
        self.calls.retain(|call| call.id != *id);
        self.worker.cancel_if(id);
    }
}
