//! Where the contents of a file go: into a store of their own, or into one shared with other
//! machines that sample at the same time.

use super::tables::PEOPLE_MAX;
use crate::formats::FormatError;
use crate::time::STAMP_NS;
use crate::{Info, Store};
use std::sync::Arc;

/// Maximum number of machines in one store. The highest bits of a process or module number are the
/// number of its machine.
pub const MACHINES_MAX: usize = (u32::MAX as usize + 1) / PEOPLE_MAX;

/// How far in the future a sample may be: the clocks of two machines differ, and are compared only
/// once.
const FUTURE_NS: u64 = 10_000_000_000;

/// One of several machines in a store.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Name of the machine.
    pub host: Arc<str>,
    /// Its number in the store, below [`MACHINES_MAX`].
    pub number: u32,
    /// Milliseconds that its wall clock is ahead of ours.
    pub ahead_ms: i64,
}

/// Where the contents of a file go.
#[derive(Debug)]
pub(super) enum Destination {
    /// Into a store of their own, unchanged.
    Alone,
    /// Into a store shared with other machines.
    Beside(Beside),
}

/// State of a file that is one of several in a store.
#[derive(Debug)]
pub(super) struct Beside {
    machine: Machine,
    /// The store's clock minus the file's, in whole stamps; `None` until the file has said when its
    /// clock was 0.
    shift_ns: Option<i64>,
    /// The latest accepted time of a sample, on the store's clock.
    until_ns: u64,
    /// Number of samples later than that, which were left out.
    of_the_future: u64,
}

impl Beside {
    /// State for a file of this machine, before its first block was read.
    pub(super) fn new(machine: Machine) -> Self {
        Self {
            machine,
            shift_ns: None,
            until_ns: u64::MAX,
            of_the_future: 0,
        }
    }
}

impl Destination {
    /// The name of the machine, if there are several; else `None`.
    pub(super) fn host(&self) -> Option<&Arc<str>> {
        match self {
            Destination::Alone => None,
            Destination::Beside(beside) => Some(&beside.machine.host),
        }
    }

    /// The offset that is added to the file's numbers of processes and modules.
    pub(super) fn first_number(&self) -> u32 {
        match self {
            Destination::Alone => 0,
            Destination::Beside(beside) => beside.machine.number * PEOPLE_MAX as u32,
        }
    }

    /// Sets the store's info from the file's, or compares the clock of the file with the store's.
    /// The clock is compared only once, so that times do not jump.
    pub(super) fn set_info(&mut self, info: &Info, store: &mut Store) -> Result<(), FormatError> {
        let Destination::Beside(beside) = self else {
            store.set_info(info.clone());
            return Ok(());
        };
        if beside.shift_ns.is_some() {
            return Ok(());
        }
        let mut all = store.info().clone();
        if all.metric != info.metric {
            // The first machine that has samples determines what is counted.
            if store.stats().samples > 0 {
                let what = "it counts something else than the other machines";
                return Err(FormatError::Unsupported(what));
            }
            all.metric = info.metric.clone();
            store.set_info(all);
        }
        if info.epoch_unix_ms <= 0 {
            let what = "it does not say when it was taken";
            return Err(FormatError::Damaged(what.into()));
        }
        let ours_ms = info.epoch_unix_ms.saturating_sub(beside.machine.ahead_ms);
        let shift_ms = ours_ms.saturating_sub(store.info().epoch_unix_ms);
        let stamp_ms = STAMP_NS as i64 / 1_000_000;
        beside.shift_ns = Some((shift_ms / stamp_ms).saturating_mul(STAMP_NS as i64));
        Ok(())
    }

    /// Sets the current time, on the store's clock.
    pub(super) fn set_now(&mut self, now_ns: u64) {
        if let Destination::Beside(beside) = self {
            beside.until_ns = now_ns.saturating_add(FUTURE_NS);
        }
    }

    /// Converts a time of the file to the store's clock; `None` if it is in the future.
    pub(super) fn time_ns(&self, time_ns: u64) -> Option<u64> {
        let Destination::Beside(beside) = self else {
            return Some(time_ns);
        };
        let time_ns = time_ns.saturating_add_signed(beside.shift_ns.unwrap_or(0));
        (time_ns <= beside.until_ns).then_some(time_ns)
    }

    /// Counts a sample that was left out because it is in the future: it would make the samples of
    /// all other machines look old.
    pub(super) fn count_future(&mut self) {
        if let Destination::Beside(beside) = self {
            beside.of_the_future += 1;
        }
    }

    /// A sentence about what was left out; `None` if nothing was.
    pub(super) fn left_out(&self) -> Option<String> {
        match self {
            Destination::Beside(beside) if beside.of_the_future > 0 => Some(format!(
                "{} samples of the future were left out: its clock was changed",
                beside.of_the_future
            )),
            _ => None,
        }
    }
}
