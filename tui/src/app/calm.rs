use std::time::Duration;

/// Decides when rows may change places: at most once a second, and not while the user is
/// pressing keys.
#[derive(Debug, Default)]
pub(super) struct Calm {
    pub(super) key_at: Option<Duration>,
    pub(super) sorted_at: Option<Duration>,
    /// Rows came that have not been sorted yet.
    pub(super) pending: bool,
}

/// The shortest time between two sorts: a little less than snapshots are apart, so that each
/// of them comes sorted.
const SORT_EVERY: Duration = Duration::from_millis(800);
/// How long rows stay where they are after a key was pressed.
const SORT_AFTER_KEY: Duration = Duration::from_millis(700);
/// How long a notice that only confirms a key stays.
const NOTICE_FOR: Duration = Duration::from_secs(8);

impl Calm {
    /// Whether a notice of the last key that only confirms it has been read by now.
    pub(super) fn was_read(&self, now: Duration) -> bool {
        self.key_at
            .is_none_or(|key_at| now.saturating_sub(key_at) >= NOTICE_FOR)
    }

    /// Whether rows may change places at this time.
    pub(super) fn may_sort(&self, now: Duration) -> bool {
        let passed = |since: Option<Duration>, wait: Duration| {
            since.is_none_or(|since| now.saturating_sub(since) >= wait)
        };
        // Before the first key the user has not chosen a row, and the first seconds bring
        // the largest changes: rows may move at any time.
        self.key_at.is_none()
            || passed(self.sorted_at, SORT_EVERY) && passed(self.key_at, SORT_AFTER_KEY)
    }

    /// Whether an answer may be shown: the user presses no key. It comes once for each
    /// snapshot, and belongs to the rows that were sorted with that.
    pub(super) fn may_answer(&self, now: Duration) -> bool {
        self.key_at
            .is_none_or(|key_at| now.saturating_sub(key_at) >= SORT_AFTER_KEY)
    }

    /// Notes that rows were just sorted.
    pub(super) fn sorted(&mut self, now: Duration) {
        self.sorted_at = Some(now);
        self.pending = false;
    }
}
