//! The shipper: for each sink a thread that reads windows from the spool, one after the other, and
//! sends them. A slow or unreachable sink delays neither the other sinks nor the agent.

/// Paces what has waited.
mod catch_up;
/// The time by which a sink works.
mod clock;
/// Writes windows to files of Parquet.
mod files;
/// Sends a window to a server.
mod push;
/// Finds the next window to send.
mod queue;

use catch_up::CatchUp;
pub use clock::Clock;
pub use queue::waiting;

use crate::config::{Config, Labels, Sink};
use crate::failure::{Failure, shown};
use crate::schedule::Schedule;
use crate::sinks::server::Server;
use crate::spool::Entry;
use crate::state::SinkState;
use crate::window::{self, Unreadable, Window};
use files::Files;
use push::Push;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// How often the spool is read while there is nothing to send.
pub const PAUSE: Duration = Duration::from_secs(2);

/// Maximum rate of one sink, whatever it has to send.
const BYTES_PER_SECOND: u64 = 1_000_000;

/// How long to wait if the configuration or rights are wrong, which only an administrator can
/// change.
const NOT_ALLOWED_WAIT: Duration = Duration::from_secs(60);

/// What the thread of a sink works with.
pub struct Shipper {
    pub name: String,
    pub spool: PathBuf,
    pub labels: Labels,
    pub schedule: Schedule,
    pub state: SinkState,
    pub clock: Clock,
    catch_up: CatchUp,
    /// Whether to end when everything was sent, with an error if that was not possible.
    pub is_once: bool,
}

/// The result of a step of a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Something was done, and there may be more.
    Done,
    /// There is nothing to do.
    Idle,
    /// It has to wait for this time before the next attempt.
    Wait(Duration),
}

impl Shipper {
    pub fn new(config: &Config, sink: &Sink, clock: Clock, is_once: bool) -> Result<Self, Failure> {
        Ok(Self {
            name: sink.name.clone(),
            spool: config.spool.clone(),
            labels: config.labels.clone(),
            schedule: config.schedule,
            state: SinkState::open(&config.state, &sink.name)?,
            clock,
            catch_up: CatchUp::new(config.catch_up),
            is_once,
        })
    }

    /// Reads a window of the spool, with its weight; `None` if the schedule leaves it out.
    fn read(&self, entry: &Entry) -> Result<Option<Window>, Unreadable> {
        let mut window = window::read(entry, &self.labels)?;
        window.weight = self.schedule.weight();
        let is_taken = self.schedule.takes(&window.host.name, window.begin_ms);
        Ok(is_taken.then_some(window))
    }

    /// Waits until at least the time has passed that `bytes` take at [`BYTES_PER_SECOND`].
    fn pace(&self, bytes: u64, begun_ms: u64) {
        let least = Duration::from_secs_f64(bytes as f64 / BYTES_PER_SECOND as f64);
        let elapsed = self.clock.now_ms().saturating_sub(begun_ms);
        let rest = least.saturating_sub(Duration::from_millis(elapsed));
        self.clock.sleep(rest);
    }

    /// Prints a sentence about this sink.
    pub fn say(&self, sentence: impl std::fmt::Display) {
        eprintln!("proftop-fleet: {}: {sentence}", self.name);
    }

    /// Stores why nothing is sent, and prints it if it is new.
    pub fn fail(&mut self, why: &str) -> Result<(), Failure> {
        if self.state.set_error(why) {
            self.say(why);
        }
        self.state.write()
    }
}

/// Sends until the process is ended; with `is_once`, until everything is sent that exists now.
pub fn run(config: &Config, is_once: bool) -> Result<(), Failure> {
    if let Err(error) = std::fs::read_dir(&config.spool) {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => "; `proftop agent --spool` makes it",
            io::ErrorKind::PermissionDenied => {
                "; this user needs the right to list it, by its group for example"
            }
            _ => "",
        };
        return Err(Failure::failed(format!(
            "cannot look into the spool {}: {error}{remedy}",
            shown(&config.spool)
        )));
    }
    // Errors of any sink are reported before the first sink starts.
    let mut works: Vec<Work> = Vec::new();
    for sink in &config.sinks {
        works.push(Work::new(config, sink, Clock::Machine, is_once)?);
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

/// The work of a sink.
pub enum Work {
    Push(Box<Push>),
    Files(Box<Files>),
}

impl Work {
    pub fn new(config: &Config, sink: &Sink, clock: Clock, is_once: bool) -> Result<Self, Failure> {
        let shipper = Shipper::new(config, sink, clock, is_once)?;
        Ok(match Server::of_sink(sink, &config.labels)? {
            Some(server) => Self::Push(Box::new(Push::new(shipper, server))),
            None => Self::Files(Box::new(Files::new(shipper, sink)?)),
        })
    }

    /// Takes one step.
    pub fn turn(&mut self) -> Result<Turn, Failure> {
        match self {
            Work::Push(push) => push.turn(),
            Work::Files(files) => files.turn(),
        }
    }

    pub fn shipper(&self) -> &Shipper {
        match self {
            Work::Push(push) => push.shipper(),
            Work::Files(files) => files.shipper(),
        }
    }

    fn run(mut self) -> Result<(), Failure> {
        loop {
            let turn = self.turn()?;
            let shipper = self.shipper();
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

/// Returns the result of a sink that had to send everything once.
fn end(shipper: &Shipper) -> Result<(), Failure> {
    match &shipper.state.memory.error {
        Some(why) => Err(Failure::failed(format!("{}: {why}", shipper.name))),
        None => Ok(()),
    }
}
