use std::time::Duration;

/// When the rows may change places: not more often than once a second, and
/// never under a hand that is just pressing keys.
#[derive(Debug, Default)]
pub(super) struct Calm {
    pub(super) key_at: Option<Duration>,
    pub(super) sorted_at: Option<Duration>,
    /// Rows came that have not been sorted yet.
    pub(super) pending: bool,
}

const SORT_EVERY: Duration = Duration::from_secs(1);
const SORT_AFTER_KEY: Duration = Duration::from_millis(700);

impl Calm {
    pub(super) fn may_sort(&self, now: Duration) -> bool {
        let passed = |since: Option<Duration>, wait: Duration| {
            since.is_none_or(|since| now.saturating_sub(since) >= wait)
        };
        // Until the first key nobody holds on to a row, and the first seconds bring the
        // largest changes.
        self.key_at.is_none()
            || passed(self.sorted_at, SORT_EVERY) && passed(self.key_at, SORT_AFTER_KEY)
    }

    pub(super) fn sorted(&mut self, now: Duration) {
        self.sorted_at = Some(now);
        self.pending = false;
    }
}
