//! The kept samples of all events. Each event has its own [`History`], as a query uses only one.
//! All are dropped together, second by second.
//!
//! The first event always exists; while it is the only one, the others cost nothing.

use super::history::{Bucket, History, Sample};
use crate::info::Metric;
use crate::wait::WaitPart;
use std::sync::Arc;

/// The number of an event that is sampled; what its weights count is its [`Metric`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(u8);

impl EventId {
    /// The event that a store counts if no others are added: usually the ticks of a clock on the
    /// CPUs.
    pub const FIRST: EventId = EventId(0);
}

/// The samples of all events.
#[derive(Debug, Default)]
pub(crate) struct Histories {
    first: History,
    /// The events from number 1 on.
    others: Vec<Counted>,
}

/// The samples of an event that is not the first, and what they count.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    pub(crate) metric: Metric,
    pub(crate) history: History,
    /// When counting it began; `None` if it was counted from the beginning.
    pub(crate) since_ns: Option<u64>,
}

impl Histories {
    /// Adds an event; `None` if there are 256 already.
    pub(crate) fn add_event(&mut self, metric: Metric, since_ns: Option<u64>) -> Option<EventId> {
        let number = u8::try_from(self.others.len() + 1).ok()?;
        self.others.push(Counted {
            metric,
            history: History::default(),
            since_ns,
        });
        Some(EventId(number))
    }

    /// The samples of the first event.
    pub(crate) fn first(&self) -> &History {
        &self.first
    }

    /// The other events.
    pub(crate) fn others(&self) -> &[Counted] {
        &self.others
    }

    /// Stores a sample, and the details of its wait. Ignored if the event was never added.
    pub(crate) fn push(&mut self, event: EventId, sample: Sample, wait: WaitPart) {
        let history = match event.index() {
            None => Some(&mut self.first),
            Some(index) => self.others.get_mut(index).map(|other| &mut other.history),
        };
        if let Some(history) = history {
            history.push(sample, wait);
        }
    }

    /// Whether the event was added.
    pub(crate) fn has(&self, event: EventId) -> bool {
        event.index().is_none_or(|index| index < self.others.len())
    }

    /// Number of samples of all events.
    pub(crate) fn samples(&self) -> u64 {
        self.all().map(History::samples).sum()
    }

    /// Number of seconds that have samples, for the event that has most of them.
    pub(crate) fn seconds(&self) -> usize {
        self.all().map(History::seconds).max().unwrap_or(0)
    }

    pub(crate) fn oldest_second(&self) -> Option<u64> {
        self.all().filter_map(History::oldest_second).min()
    }

    pub(crate) fn newest_second(&self) -> Option<u64> {
        self.all().filter_map(History::newest_second).max()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.all().map(History::memory_bytes).sum()
    }

    /// Removes one event's samples of the oldest second, if that is `second`.
    pub(crate) fn pop_oldest(&mut self, second: u64) -> Option<Arc<Bucket>> {
        let others = self.others.iter_mut().map(|other| &mut other.history);
        std::iter::once(&mut self.first)
            .chain(others)
            .find(|history| history.oldest_second() == Some(second))?
            .pop_oldest()
    }

    fn all(&self) -> impl Iterator<Item = &History> {
        std::iter::once(&self.first).chain(self.others.iter().map(|other| &other.history))
    }
}

impl EventId {
    /// Index of the event among those that are not the first; `None` for the first.
    pub(crate) fn index(self) -> Option<usize> {
        usize::from(self.0).checked_sub(1)
    }

    pub(crate) fn of_index(index: usize) -> EventId {
        EventId((index + 1) as u8)
    }
}
