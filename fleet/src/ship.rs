//! The shipper: for each sink a thread that reads windows from the spool, one after the other, and sends
//! them. A sink that is slow or away holds up no other one, and none of them the agent.

/// What is to be sent next.
mod queue;

pub use queue::waiting;
/// Windows to files of Parquet.
mod files;
/// A window to a server.
mod push;

use crate::config::{Config, Labels, Sink};
use crate::failure::{Failure, shown};
use crate::sinks::server::Server;
use crate::state::SinkState;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// How often the spool is looked at while there is nothing to send.
const PAUSE: Duration = Duration::from_secs(2);

/// What a thread of a sink works with.
pub struct Shipper {
    pub name: String,
    pub spool: PathBuf,
    pub labels: Labels,
    pub state: SinkState,
    /// To end when everything was sent, and to say so if it could not be.
    pub is_once: bool,
}

/// What a sink did when it was its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Something was done, and more may be there.
    Done,
    /// There is nothing to do.
    Idle,
    /// It has to wait before it tries again.
    Wait(Duration),
}

impl Shipper {
    fn new(config: &Config, sink: &Sink, is_once: bool) -> Result<Self, Failure> {
        Ok(Self {
            name: sink.name.clone(),
            spool: config.spool.clone(),
            labels: config.labels.clone(),
            state: SinkState::open(&config.state, &sink.name)?,
            is_once,
        })
    }

    /// Prints a sentence about this sink.
    pub fn say(&self, sentence: impl std::fmt::Display) {
        eprintln!("proftop-fleet: {}: {sentence}", self.name);
    }

    /// Remembers why nothing is sent, and says it once.
    pub fn fail(&mut self, why: &str) -> Result<(), Failure> {
        if self.state.set_error(why) {
            self.say(why);
        }
        self.state.write()
    }
}

/// Sends until the process is ended; with `is_once`, until everything is sent that is there now.
pub fn run(config: &Config, is_once: bool) -> Result<(), Failure> {
    if let Err(error) = std::fs::read_dir(&config.spool) {
        return Err(Failure::failed(format!(
            "cannot look into the spool {}: {error}; `proftop agent --spool` makes it",
            shown(&config.spool)
        )));
    }
    // Whatever is wrong with a sink is said before any of them begins.
    let mut works: Vec<Work> = Vec::new();
    for sink in &config.sinks {
        let shipper = Shipper::new(config, sink, is_once)?;
        works.push(match Server::of_sink(sink, &config.labels)? {
            Some(server) => Work::Push(Box::new(push::Push::new(shipper, server))),
            None => Work::Files(Box::new(files::Files::new(shipper, sink)?)),
        });
    }
    thread::scope(|scope| {
        let threads = works.into_iter().map(|work| scope.spawn(|| work.run()));
        let threads: Vec<_> = threads.collect();
        let ends = threads.into_iter().map(|thread| match thread.join() {
            Ok(end) => end,
            Err(_) => Err(Failure::failed("a mistake of ours has ended a sink")),
        });
        ends.collect::<Vec<_>>().into_iter().collect()
    })
}

/// What a thread does.
enum Work {
    Push(Box<push::Push>),
    Files(Box<files::Files>),
}

impl Work {
    fn run(mut self) -> Result<(), Failure> {
        loop {
            let turn = match &mut self {
                Work::Push(push) => push.turn()?,
                Work::Files(files) => files.turn()?,
            };
            let shipper = match &self {
                Work::Push(push) => push.shipper(),
                Work::Files(files) => files.shipper(),
            };
            match turn {
                Turn::Done => {}
                Turn::Idle if shipper.is_once => return end(shipper),
                Turn::Idle => thread::sleep(PAUSE),
                Turn::Wait(_) if shipper.is_once => return end(shipper),
                Turn::Wait(time) => thread::sleep(time),
            }
        }
    }
}

/// How a sink ends that was to send everything once.
fn end(shipper: &Shipper) -> Result<(), Failure> {
    match &shipper.state.memory.error {
        Some(why) => Err(Failure::failed(format!("{}: {why}", shipper.name))),
        None => Ok(()),
    }
}
