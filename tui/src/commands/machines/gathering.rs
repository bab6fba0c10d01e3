//! Joins the samples of all machines in one profile: one thread per machine adds samples to it, and
//! another thread publishes snapshots of it.

use super::connection::{Connection, unix_ms};
use crate::commands::{input, open_file, recorded};
use crate::failure::{Exit, Failure};
use engine::snapshot::{Lacks, Machine, MachineState, Snapshot};
use profile::formats::FormatError;
use profile::formats::pft::{self, Reader};
use profile::machines::Machines;
use profile::{Cancel, Query, View};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Time between two snapshots for the screen.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);

/// The zero of the profile's clock is this long before the start, in ms, so that samples of
/// machines whose clocks are a little behind ours are not before it.
const BEFORE_MS: i64 = 60_000;

/// The state of each machine, and the samples of all.
#[derive(Debug)]
pub struct Gathering {
    state: Mutex<GatherState>,
    /// Notified when samples arrive and when a machine is gone.
    changed: Condvar,
    /// The zero of the profile's clock, in ms since 1970.
    epoch_ms: i64,
}

#[derive(Debug)]
struct GatherState {
    profile: Machines,
    machines: Vec<One>,
}

/// The state of a machine, and when the last samples arrived from it.
#[derive(Debug)]
struct One {
    told: Machine,
    heard: Option<Instant>,
}

impl Gathering {
    /// Creates the state for machines of these names, before any connection is made.
    pub fn new(names: &[String]) -> Self {
        let epoch_ms = unix_ms() - BEFORE_MS;
        let machines = names.iter().map(|name| One {
            told: Machine {
                name: symbolize::sanitize(name.as_bytes()).into(),
                state: MachineState::Connecting,
                samples: 0,
                lost: 0,
                silent: None,
                ahead_ms: 0,
            },
            heard: None,
        });
        Self {
            state: Mutex::new(GatherState {
                profile: Machines::new(names.len(), input::limits(), epoch_ms),
                machines: machines.collect(),
            }),
            changed: Condvar::new(),
            epoch_ms,
        }
    }

    /// Waits until the first samples have arrived or no machine is left, but at most for `limit`.
    pub fn wait_for_samples(&self, limit: Duration) {
        let state = self.lock();
        let is_waiting = |state: &mut GatherState| !state.has_samples() && !state.all_gone();
        // The caller checks the state itself, whether the wait timed out or not.
        drop(self.changed.wait_timeout_while(state, limit, is_waiting));
    }

    /// Returns the failure if there is nothing to show and never will be: all machines are gone,
    /// and none has sent a sample.
    pub fn failure(&self) -> Option<Failure> {
        let state = self.lock();
        if !state.all_gone() || state.has_samples() {
            return None;
        }
        let gone = state
            .machines
            .iter()
            .filter_map(|one| match &one.told.state {
                MachineState::Gone(why) => Some(format!("{}: {why}", one.told.name)),
                MachineState::Connecting | MachineState::Sampling => None,
            });
        let mut gone: Vec<String> = gone.collect();
        // For a single machine, its reason is the whole message.
        let message = match gone.len() {
            1 => gone.remove(0),
            _ => "no machine sends samples".into(),
        };
        let failure = Failure::new(Exit::NotPossible, message);
        Some(gone.into_iter().fold(failure, Failure::detail))
    }

    /// Publishes snapshots until the screen is left. Returns the failure if there is nothing to
    /// show and never will be.
    pub fn publish(&self, name: &str, publish: &watch::Sender<Arc<Snapshot>>) -> Option<Failure> {
        let mut generation = publish.borrow().generation;
        loop {
            if let Some(failure) = self.failure() {
                return Some(failure);
            }
            let began = Instant::now();
            generation += 1;
            let snapshot = self.snapshot(name, generation);
            if publish.send(Arc::new(snapshot)).is_err() {
                return None;
            }
            let took = began.elapsed();
            std::thread::sleep(
                PUBLISH_EVERY
                    .saturating_sub(took)
                    .max(took * recorded::COUNTING_PART),
            );
        }
    }

    /// Returns the samples so far, a sentence on samples that were left out, and the state of the
    /// machines.
    pub fn look(&self) -> (View, Option<String>, Vec<Machine>) {
        let state = self.lock();
        let machines = state.machines.iter().map(|one| Machine {
            silent: one.heard.map(|heard| heard.elapsed()),
            ..one.told.clone()
        });
        let store = state.profile.store();
        (store.view(), open_file::left_out(store), machines.collect())
    }

    fn snapshot(&self, name: &str, generation: u64) -> Snapshot {
        let (view, left_out, machines) = self.look();
        let selection = view
            .select(&Query::default(), &Cancel::new())
            .expect("nobody cancels it");
        let recording = recorded::recording(name, Path::new(""), &view, Lacks::default(), None);
        let is_over = machines
            .iter()
            .all(|one| matches!(one.state, MachineState::Gone(_)));
        let notes: Vec<String> = left_out.into_iter().collect();
        let mut snapshot = recorded::snapshot(&view, &notes, recording, is_over, &selection);
        snapshot.generation = generation;
        snapshot.source.machines = machines.into();
        snapshot
    }

    fn lock(&self) -> MutexGuard<'_, GatherState> {
        // If a thread panicked, its block may be half added, which affects only the samples of its
        // machine.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GatherState {
    fn has_samples(&self) -> bool {
        self.profile.store().stats().samples > 0
    }

    fn all_gone(&self) -> bool {
        let mut machines = self.machines.iter();
        machines.all(|one| matches!(one.told.state, MachineState::Gone(_)))
    }
}

/// How reading from a machine ended, and sentences on what is missing from its samples.
enum Read {
    /// The output has ended.
    Ended(Vec<String>),
    /// The output is damaged: the rest cannot be read.
    Damaged(Vec<String>),
}

/// The writer for the samples of one machine.
#[derive(Debug)]
pub struct OneOf {
    gathering: Arc<Gathering>,
    number: usize,
}

impl OneOf {
    /// Creates the writer for the machine with this index.
    pub fn new(gathering: &Arc<Gathering>, number: usize) -> Self {
        Self {
            gathering: Arc::clone(gathering),
            number,
        }
    }

    /// Reads from the machine until the end, and returns why it ended.
    pub fn read(&self, mut connection: Connection) -> String {
        let ahead_ms = match connection.wait_for_beginning() {
            Ok(ahead_ms) => ahead_ms,
            Err(why) => return why,
        };
        self.change(|told| told.ahead_ms = ahead_ms);
        match self.read_blocks(&mut connection, ahead_ms) {
            Err(FormatError::Unknown) => connection.why_it_ended(),
            Err(error) => format!("cannot read what it sends: {error}"),
            Ok(Read::Damaged(notes)) => format!("cannot read what it sends: {}", notes.join("; ")),
            Ok(Read::Ended(notes)) => {
                let why = std::iter::once(connection.why_it_ended());
                why.chain(notes).collect::<Vec<String>>().join("; ")
            }
        }
    }

    /// Adds blocks as they arrive.
    fn read_blocks(&self, connection: &mut Connection, ahead_ms: i64) -> Result<Read, FormatError> {
        let machine = pft::Machine {
            host: self.name(),
            number: self.number as u32,
            ahead_ms,
        };
        let mut reader = Reader::new_beside(connection.output(), machine)?;
        while reader.wait_for_block()? {
            let mut state = self.gathering.lock();
            let state = &mut *state;
            let now_ms = unix_ms().saturating_sub(self.gathering.epoch_ms);
            let now_ns = u64::try_from(now_ms).unwrap_or(0).saturating_mul(1_000_000);
            let goes_on = state.profile.add_block(self.number, &mut reader, now_ns)?;
            let one = &mut state.machines[self.number];
            one.told.state = MachineState::Sampling;
            one.told.samples = reader.samples();
            one.told.lost = reader.info().lost;
            one.heard = Some(Instant::now());
            self.gathering.changed.notify_all();
            if !goes_on {
                break;
            }
        }
        Ok(if reader.is_at_end() {
            Read::Ended(reader.notes())
        } else {
            Read::Damaged(reader.notes())
        })
    }

    /// Marks the machine as gone, for the given reason.
    pub fn goes(&self, why: &str) {
        self.change(|told| told.state = MachineState::Gone(why.into()));
    }

    fn name(&self) -> Arc<str> {
        Arc::clone(&self.gathering.lock().machines[self.number].told.name)
    }

    fn change(&self, change: impl FnOnce(&mut Machine)) {
        change(&mut self.gathering.lock().machines[self.number].told);
        self.gathering.changed.notify_all();
    }
}
