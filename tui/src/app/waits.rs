//! Waits in a run that began without them: the first key or order that wants to see them has them
//! counted from then on, and what they are counted by is shown as soon as it is there.

use super::apply::Applied;
use super::{App, Effect};
use crate::app::mode::Detail;
use crate::notice::Notice;
use engine::snapshot::TargetState;
use probe::EngineKind;
use profile::Metric;

/// The metrics of waits. The first one is the next behind time on CPUs.
pub(super) fn metrics() -> [String; 3] {
    [Metric::off_cpu(), Metric::wall(), Metric::kept_waiting()].map(|metric| metric.name)
}

impl App {
    /// Has waits counted from now on, to show the metric of this name when it is there. The error
    /// says why they cannot be counted.
    pub(super) fn count_waits(&mut self, metric: &str) -> Result<Applied, String> {
        if !self.may_count_waits() {
            return Err("nothing is sampled any more, so that no waits can be counted".into());
        }
        if let Some(why) = &self.base.source.waits_refused {
            return Err(why.to_string());
        }
        let is_new = self.asking.waits.replace(metric.to_owned()).is_none();
        Ok(Applied {
            said: Some(Notice::WaitsAsked {
                is_frozen: self.freezing.frozen.is_some(),
            }),
            effect: is_new.then_some(Effect::CountWaits),
        })
    }

    /// Whether nothing tells who ends waits.
    pub(super) fn is_without_wakers(&self) -> bool {
        self.base.source.engine == Some(EngineKind::Perf)
    }

    /// Whether samples are taken, so that waits could be as well.
    pub(super) fn may_count_waits(&self) -> bool {
        self.base.source.recording.is_none()
            && matches!(
                self.base.run.target,
                TargetState::Starting | TargetState::Running
            )
    }

    /// Shows the metric that waits were asked for if the newest snapshot has it, or says why it
    /// will not come.
    pub(super) fn show_waits(&mut self) {
        let Some(wanted) = &self.asking.waits else {
            return;
        };
        let mut metrics = self.base.metrics.iter();
        let said = if let Some(metric) = metrics.position(|metric| *metric.name == **wanted) {
            self.count_by(metric);
            Notice::WaitsCounted
        } else if let Some(why) = self.base.source.waits_refused.clone() {
            Notice::OneMetric(why.to_string())
        } else if self.may_count_waits() {
            return;
        } else {
            Notice::OneMetric("it ended before waits were counted".into())
        };
        self.asking.waits = None;
        // A word that the user has not read yet stays.
        if matches!(
            self.detail,
            Detail::Row | Detail::Notice(Notice::WaitsAsked { .. })
        ) {
            self.detail = Detail::Notice(said);
        }
    }

    /// Whether waits were asked for and are not there yet.
    pub fn awaits_waits(&self) -> bool {
        self.asking.waits.is_some()
    }

    /// Why waits cannot be counted in this run, as far as that is known.
    pub fn waits_refused(&self) -> Option<&str> {
        self.base.source.waits_refused.as_deref()
    }
}
