//! What comes from all machines, in one profile: a thread for each adds to it, another one
//! publishes snapshots of it.

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

/// How often the screen gets what has come.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);

/// How long before the start the profile's clock was 0, in ms: samples of machines whose clocks
/// are a little behind ours are not before that.
const BEFORE_MS: i64 = 60_000;

/// What is kept of each machine, and the samples of all.
#[derive(Debug)]
pub struct Gathering {
    state: Mutex<GatherState>,
    /// Is told when samples come and when a machine goes.
    changed: Condvar,
    /// When the profile's clock was 0, in ms since 1970.
    epoch_ms: i64,
}

#[derive(Debug)]
struct GatherState {
    profile: Machines,
    machines: Vec<One>,
}

/// What is known of a machine.
#[derive(Debug)]
struct One {
    told: Machine,
    heard: Option<Instant>,
}

impl Gathering {
    /// Begins with machines of these names, to none of which there is a connection.
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

    /// Waits until the first samples have come or no machine is left, but not longer than this.
    pub fn wait_for_samples(&self, limit: Duration) {
        let state = self.lock();
        let is_waiting = |state: &mut GatherState| !state.has_samples() && !state.all_gone();
        // Whatever ends the wait, the caller looks at what there is.
        drop(self.changed.wait_timeout_while(state, limit, is_waiting));
    }

    /// Why nothing is there to be shown, nor will be: no machine is left, and none has sent a
    /// sample.
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
        // Of a single machine it is the whole answer.
        let message = match gone.len() {
            1 => gone.remove(0),
            _ => "no machine sends samples".into(),
        };
        let failure = Failure::new(Exit::NotPossible, message);
        Some(gone.into_iter().fold(failure, Failure::detail))
    }

    /// Publishes what has come, again and again, until the screen is left. Returns the reason if
    /// there is nothing to show, nor will be.
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

    /// The samples that have come, what was left out of them, and what is known of the
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
        // A thread that panicked has left a block half added, which costs its machine alone.
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

/// How reading what a machine sends came to its end, and what is missing of what came, in
/// sentences.
enum Read {
    /// There is no more.
    Ended(Vec<String>),
    /// More may come, and cannot be read.
    Damaged(Vec<String>),
}

/// A machine among those that are gathered.
#[derive(Debug)]
pub struct OneOf {
    gathering: Arc<Gathering>,
    number: usize,
}

impl OneOf {
    pub fn new(gathering: &Arc<Gathering>, number: usize) -> Self {
        Self {
            gathering: Arc::clone(gathering),
            number,
        }
    }

    /// Reads what the machine sends until there is no more, and returns why that is so.
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

    /// Adds blocks as they come.
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

    /// Notes that no more samples of it come, and why.
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
