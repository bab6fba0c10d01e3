//! Times on the clock of the samples: stamps, and ranges between two moments.
//!
//! A *stamp* is a time in hundredths of a second: fine enough for a heat map, and no finer.

use std::time::Duration;

/// Nanoseconds in one stamp.
pub(crate) const STAMP_NS: u64 = 10_000_000;
pub(crate) const STAMPS_PER_SECOND: u64 = 100;

/// A range of stamps, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamps {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Stamps {
    #[inline]
    pub(crate) fn contains(&self, stamp: u64) -> bool {
        (self.first..=self.last).contains(&stamp)
    }
}

/// A requested time range; it may begin or end outside of the history. It has a resolution of 10
/// ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    pub(crate) start_ns: Option<u64>,
    pub(crate) end_ns: Option<u64>,
}

impl Default for TimeRange {
    fn default() -> Self {
        Self::ALL
    }
}

impl TimeRange {
    /// The whole history.
    pub const ALL: TimeRange = TimeRange {
        start_ns: None,
        end_ns: None,
    };

    /// The last `window` before `now_ns`.
    pub fn last(window: Duration, now_ns: u64) -> Self {
        let window_ns = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
        Self {
            start_ns: now_ns.checked_sub(window_ns),
            end_ns: Some(now_ns),
        }
    }

    /// After `start_ns`, up to `end_ns`: ranges that meet share no sample.
    pub fn between(start_ns: u64, end_ns: u64) -> Self {
        Self {
            start_ns: Some(start_ns),
            end_ns: Some(end_ns),
        }
    }

    pub(crate) fn stamps(self) -> Stamps {
        Stamps {
            first: self.start_ns.map_or(0, |start| start / STAMP_NS + 1),
            last: self.end_ns.map_or(u64::MAX, |end| end / STAMP_NS),
        }
    }
}

/// The part of a [`TimeRange`] that the history covers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Window {
    /// Where it begins, on the clock of the samples.
    pub start_ns: u64,
    /// Where it ends, on the clock of the samples.
    pub end_ns: u64,
    /// Sum of the pauses in it: time between merged recordings, in which nothing was sampled.
    pub paused_ns: u64,
}

impl Window {
    /// How long it was sampled: its length without pauses, in seconds.
    pub fn seconds(&self) -> f64 {
        let length_ns = self.end_ns.saturating_sub(self.start_ns);
        length_ns.saturating_sub(self.paused_ns) as f64 / 1e9
    }
}

/// A period in which nothing was sampled, on the clock of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// Where it begins.
    pub start_ns: u64,
    /// Where it ends.
    pub end_ns: u64,
}

impl Pause {
    /// Nanoseconds of the pause that lie between two moments.
    pub(crate) fn within(self, start_ns: u64, end_ns: u64) -> u64 {
        let (start, end) = (self.start_ns.max(start_ns), self.end_ns.min(end_ns));
        end.saturating_sub(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_that_meet_share_no_stamp() {
        let last = |now_ns| TimeRange::last(Duration::from_secs(1), now_ns).stamps();
        let (earlier, later) = (last(2_005_000_000), last(3_005_000_000));
        assert_eq!(earlier.last + 1, later.first);
        assert_eq!(later.last - later.first, 99);
        assert_eq!(last(5).first, 0, "from before time began");
    }
}
