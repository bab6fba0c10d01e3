//! Freezes the screen, now or later, while sampling goes on.

use super::App;
use engine::snapshot::Snapshot;
use std::sync::Arc;
use std::time::Duration;

/// Whether the screen is frozen, or will be.
#[derive(Debug, Default)]
pub struct Freezing {
    /// `None` while the screen follows new samples.
    pub frozen: Option<Frozen>,
    /// The order to freeze the screen later, if there is one.
    later: Option<FreezeLater>,
}

/// A frozen screen: since when it is frozen, and the newest snapshot since then, which is shown
/// when the user goes on.
#[derive(Debug)]
pub struct Frozen {
    pub since: Duration,
    /// The newest snapshot, or `None` if none has come since then.
    pub waiting: Option<Arc<Snapshot>>,
}

/// The order to freeze the screen this long after the first samples.
#[derive(Debug)]
struct FreezeLater {
    after: Duration,
    /// When the first samples came. `None` before that.
    since: Option<Duration>,
}

impl Freezing {
    /// Whether the screen will be frozen at some time.
    pub fn is_coming(&self) -> bool {
        self.later.is_some()
    }
}

impl App {
    /// Freezes the screen this long after the first samples. `None` cancels that.
    pub fn freeze_after(&mut self, after: Option<Duration>) {
        self.feed.freezing.later = after.map(|after| FreezeLater { after, since: None });
    }

    /// Freezes the screen if its time has come. This happens only once, so that a user who goes on
    /// is not stopped again.
    pub(super) fn freeze_if_due(&mut self) {
        let (now, samples) = (self.now, self.feed.base.report.samples);
        let Some(later) = &mut self.feed.freezing.later else {
            return;
        };
        if later.since.is_none() && samples > 0 {
            later.since = Some(now);
        }
        let is_due = later.since.is_some_and(|since| now >= since + later.after);
        if is_due {
            self.feed.freezing.later = None;
            if self.feed.freezing.frozen.is_none() {
                self.freeze_or_go_on();
            }
        }
    }

    /// Freezes the screen, or shows the newest snapshot again.
    pub(crate) fn freeze_or_go_on(&mut self) {
        match self.feed.freezing.frozen.take() {
            None => {
                self.feed.freezing.frozen = Some(Frozen {
                    since: self.now,
                    waiting: None,
                });
                // The rows that remain on the screen have to be sorted.
                self.take_waiting();
                if self.input.calm.pending {
                    self.refresh(true);
                }
            }
            Some(frozen) => {
                if let Some(snapshot) = frozen.waiting {
                    self.take(snapshot);
                }
            }
        }
    }
}
