use std::time::Duration;

/// Decides when rows may change places: at most once a second, and not while the user is pressing
/// keys.
#[derive(Debug, Default)]
pub(super) struct Calm {
    /// When a key was last pressed.
    pub(super) key_at: Option<Duration>,
    /// When rows were last sorted.
    pub(super) sorted_at: Option<Duration>,
    /// There are rows that have not been sorted yet.
    pub(super) pending: bool,
}

/// Minimum time between two sorts. It is a little less than the time between two snapshots, so that
/// each snapshot can be sorted.
const SORT_EVERY: Duration = Duration::from_millis(800);
/// How long rows stay in place after a key was pressed.
const SORT_AFTER_KEY: Duration = Duration::from_millis(700);
/// How long a notice stays that only confirms a key.
const NOTICE_FOR: Duration = Duration::from_secs(8);

impl Calm {
    /// Whether a notice that only confirms the last key was shown long enough.
    pub(super) fn was_read(&self, now: Duration) -> bool {
        self.key_at
            .is_none_or(|key_at| now.saturating_sub(key_at) >= NOTICE_FOR)
    }

    /// Whether rows may change places at this time.
    pub(super) fn may_sort(&self, now: Duration) -> bool {
        let passed = |since: Option<Duration>, wait: Duration| {
            since.is_none_or(|since| now.saturating_sub(since) >= wait)
        };
        // Before the first key the user has not selected a row, and the first seconds bring the
        // largest changes: rows may move at any time.
        self.key_at.is_none()
            || passed(self.sorted_at, SORT_EVERY) && passed(self.key_at, SORT_AFTER_KEY)
    }

    /// Whether an answer may be shown: no key was pressed recently. There is one answer for each
    /// snapshot, which belongs to the rows that were sorted with it.
    pub(super) fn may_answer(&self, now: Duration) -> bool {
        self.key_at
            .is_none_or(|key_at| now.saturating_sub(key_at) >= SORT_AFTER_KEY)
    }

    /// Records that rows were sorted now.
    pub(super) fn sorted(&mut self, now: Duration) {
        self.sorted_at = Some(now);
        self.pending = false;
    }
}
