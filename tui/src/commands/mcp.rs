//! `mcp`: a server of the Model Context Protocol over standard input and output, so that an
//! assistant can ask what a machine does. It reads and never changes anything, unless
//! `--allow-probes` lets it count calls of functions.
//!
//! | module | holds |
//! |---|---|
//! | `lines` | the messages that come in, each of a bounded length |
//! | `message` | JSON-RPC: what a message is, and what an answer looks like |
//! | `protocol` | the methods and versions of the protocol |
//! | `worker` | the thread that runs tools, one at a time |
//! | `tools` | which tools there are, and what each takes |
//! | `arguments` | what a client wants of a tool, checked |
//! | `kept`, `samples` | what was sampled or read, kept for later questions |
//! | `look`, `drill`, `code`, `difference`, `missing`, `trace` | a tool each |
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

/// How many answers wait until the client reads them. With more, no further message is read.
const ANSWERS_MAX: usize = 64;
/// How many calls of tools may wait for their turn.
const CALLS_MAX: usize = 16;
/// How long after the end of its input the server still answers what was asked before. With
/// the time that it takes to end, this is less than a second.
const LAST_WAIT: Duration = Duration::from_millis(500);
/// How long a call may take to stop.
const STOP_WAIT: Duration = Duration::from_millis(250);

/// Runs the server until its input ends, nobody reads its output any more, or a signal comes.
pub fn run(config: &McpConfig) -> Result<Exit, Failure> {
    let runtime = super::event_loop()?;
    let exit = runtime.block_on(serve(config));
    // Threads that are still at work end with the process.
    runtime.shutdown_background();
    exit
}

/// What came of the last turn of the loop.
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
                // Nobody reads any more.
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
        // Probes of a call that is stopped go before we do.
        let _ = timeout(STOP_WAIT, done.recv()).await;
    }
    // What was handed over is written, unless nobody reads it.
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

/// Waits until then; None: forever.
async fn until(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => std::future::pending().await,
    }
}

/// Starts the thread that writes answers. It ends, and says so, when nobody reads them, or
/// when there will be no more.
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
            // Fails if nobody waits for it.
            let _ = tell.send(());
        })?;
    Ok((output, written))
}

/// The state of a connection.
struct Server {
    protocol: Protocol,
    worker: Worker,
    /// Calls that wait for their turn.
    calls: VecDeque<Call>,
    /// Answers that were not written yet.
    answers: VecDeque<Value>,
}

impl Server {
    /// Whether there is nothing to do and nothing to write.
    fn is_idle(&self) -> bool {
        self.worker.is_free() && self.calls.is_empty() && self.answers.is_empty()
    }

    /// Handles a message, or says what is wrong with it.
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
            // We ask clients nothing.
            Ok(Incoming::Response) => {}
            Err((id, error)) => self.answers.push_back(message::failed(&id, &error)),
        }
    }

    /// Answers a request, or has the worker answer it.
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

    /// Takes the answer of the worker, which begins the next call.
    fn finish(&mut self, answer: Value) {
        // A request that was cancelled is not answered.
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

    /// Drops a call, or stops it if it is under way.
    fn cancel(&mut self, id: &Id) {
        self.calls.retain(|call| call.id != *id);
        self.worker.cancel_if(id);
    }
}
