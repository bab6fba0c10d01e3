//! A screen that stands still, now or later, while sampling goes on.

use super::App;
use engine::snapshot::Snapshot;
use std::sync::Arc;
use std::time::Duration;

/// Whether the screen stands still, or is to.
#[derive(Debug, Default)]
pub struct Freezing {
    /// `None` while it shows what comes.
    pub frozen: Option<Frozen>,
    later: Option<FreezeLater>,
}

/// The view stands still; sampling goes on.
#[derive(Debug)]
pub struct Frozen {
    pub since: Duration,
    pub waiting: Option<Arc<Snapshot>>,
}

/// It is to stand still so long after the first samples.
#[derive(Debug)]
struct FreezeLater {
    after: Duration,
    /// When these came.
    since: Option<Duration>,
}

impl App {
    pub fn freeze_after(&mut self, after: Option<Duration>) {
        self.freezing.later = after.map(|after| FreezeLater { after, since: None });
    }

    /// Once; whoever goes on then is not stopped again.
    pub(super) fn freeze_if_due(&mut self) {
        let (now, samples) = (self.now, self.base.report.samples);
        let Some(later) = &mut self.freezing.later else {
            return;
        };
        if later.since.is_none() && samples > 0 {
            later.since = Some(now);
        }
        let is_due = later.since.is_some_and(|since| now >= since + later.after);
        if is_due {
            self.freezing.later = None;
            if self.freezing.frozen.is_none() {
                self.freeze_or_go_on();
            }
        }
    }

    pub(crate) fn freeze_or_go_on(&mut self) {
        match self.freezing.frozen.take() {
            None => {
                self.freezing.frozen = Some(Frozen {
                    since: self.now,
                    waiting: None,
                });
            }
            Some(frozen) => {
                if let Some(snapshot) = frozen.waiting {
                    self.take(snapshot);
                }
            }
        }
    }
}
