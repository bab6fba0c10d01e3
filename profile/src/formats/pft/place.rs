//! Where the contents of a file go: into a store of their own, or into one with those of other
//! machines, which sample at the same time.

use super::tables::PEOPLE_MAX;
use crate::formats::FormatError;
use crate::time::STAMP_NS;
use crate::{Info, Store};
use std::sync::Arc;

/// The most machines that one store can have. The highest bits of the number of a process or
/// module are the number of its machine.
pub const MACHINES_MAX: usize = (u32::MAX as usize + 1) / PEOPLE_MAX;

/// How much later than now a sample may be: clocks of two machines differ, and are compared
/// only once.
const FUTURE_NS: u64 = 10_000_000_000;

/// A machine among others in one store.
#[derive(Debug, Clone)]
pub struct Machine {
    /// What it is called.
    pub host: Arc<str>,
    /// Its number in the store, below [`MACHINES_MAX`].
    pub number: u32,
    /// How many ms its wall clock is ahead of ours.
    pub ahead_ms: i64,
}

/// Where the contents of a file go.
#[derive(Debug)]
pub(super) enum Destination {
    /// Into a store of their own, as they are.
    Alone,
    /// Into a store with those of other machines.
    Beside(Beside),
}

/// What makes a file one of several in a store.
#[derive(Debug)]
pub(super) struct Beside {
    machine: Machine,
    /// The store's clock less the file's, in whole stamps. None until the file has said when
    /// its clock was 0.
    shift_ns: Option<i64>,
    /// No sample is later, on the store's clock.
    until_ns: u64,
    /// Samples that were, and were left out.
    of_the_future: u64,
}

impl Beside {
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
    /// The name of the machine, where there are several.
    pub(super) fn host(&self) -> Option<&Arc<str>> {
        match self {
            Destination::Alone => None,
            Destination::Beside(beside) => Some(&beside.machine.host),
        }
    }

    /// What is added to the file's numbers of processes and modules.
    pub(super) fn first_number(&self) -> u32 {
        match self {
            Destination::Alone => 0,
            Destination::Beside(beside) => beside.machine.number * PEOPLE_MAX as u32,
        }
    }

    /// Tells the store what the file says of itself, or compares its clock with the store's: that
    /// is done once, so that time does not jump.
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
            // The first one with samples says what is counted.
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

    /// Says what the time is, on the store's clock.
    pub(super) fn set_now(&mut self, now_ns: u64) {
        if let Destination::Beside(beside) = self {
            beside.until_ns = now_ns.saturating_add(FUTURE_NS);
        }
    }

    /// A moment of the file on the store's clock. None if it is in the future.
    pub(super) fn time_ns(&self, time_ns: u64) -> Option<u64> {
        let Destination::Beside(beside) = self else {
            return Some(time_ns);
        };
        let time_ns = time_ns.saturating_add_signed(beside.shift_ns.unwrap_or(0));
        (time_ns <= beside.until_ns).then_some(time_ns)
    }

    /// Counts a sample of the future, which was left out: one of them would make those of all
    /// other machines old.
    pub(super) fn count_future(&mut self) {
        if let Destination::Beside(beside) = self {
            beside.of_the_future += 1;
        }
    }

    /// What was left out, as a sentence.
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
