//! Recording of waits in a run that started without it. The first key or order that needs waits
//! starts the recording, and their metric is shown as soon as it exists.

use super::apply::Applied;
use super::{App, Effect};
use crate::app::mode::Detail;
use crate::notice::Notice;
use engine::snapshot::TargetState;
use probe::EngineKind;
use profile::Metric;

/// Returns the metrics of waits. The first one follows time on CPUs when the user steps through the
/// metrics.
pub(super) fn metrics() -> [String; 3] {
    [Metric::off_cpu(), Metric::wall(), Metric::kept_waiting()].map(|metric| metric.name)
}

impl App {
    /// Records waits from now on, and shows the metric of this name when it exists. The error says
    /// why waits cannot be recorded.
    pub(super) fn count_waits(&mut self, metric: &str) -> Result<Applied, String> {
        if !self.may_count_waits() {
            return Err("nothing is sampled any more, so that no waits can be counted".into());
        }
        if let Some(why) = &self.feed.base.source.waits_refused {
            return Err(why.to_string());
        }
        let is_new = self.feed.asking.waits.replace(metric.to_owned()).is_none();
        Ok(Applied {
            said: Some(Notice::WaitsAsked {
                is_frozen: self.feed.freezing.frozen.is_some(),
            }),
            effect: is_new.then_some(Effect::CountWaits),
        })
    }

    /// Whether the source does not record which thread ends a wait.
    pub(super) fn is_without_wakers(&self) -> bool {
        self.feed.base.source.engine == Some(EngineKind::Perf)
    }

    /// Whether samples are being taken, so that waits could be recorded as well.
    pub(super) fn may_count_waits(&self) -> bool {
        self.feed.base.source.recording.is_none()
            && matches!(
                self.feed.base.run.target,
                TargetState::Starting | TargetState::Running
            )
    }

    /// Shows the metric that the user asked for if the newest snapshot has it, or a notice that
    /// says why it will not come.
    pub(super) fn show_waits(&mut self) {
        let Some(wanted) = &self.feed.asking.waits else {
            return;
        };
        let mut metrics = self.feed.base.metrics.iter();
        let said = if let Some(metric) = metrics.position(|metric| *metric.name == **wanted) {
            self.count_by(metric);
            Notice::WaitsCounted
        } else if let Some(why) = self.feed.base.source.waits_refused.clone() {
            Notice::OneMetric(why.to_string())
        } else if self.may_count_waits() {
            return;
        } else {
            Notice::OneMetric("it ended before waits were counted".into())
        };
        self.feed.asking.waits = None;
        // A notice that the user may not have read yet stays.
        if matches!(
            self.lines.detail,
            Detail::Row | Detail::Notice(Notice::WaitsAsked { .. })
        ) {
            self.lines.detail = Detail::Notice(said);
        }
    }

    /// Whether waits were asked for and are not recorded yet.
    pub fn awaits_waits(&self) -> bool {
        self.feed.asking.waits.is_some()
    }

    /// Returns why waits cannot be recorded in this run, if that is known.
    pub fn waits_refused(&self) -> Option<&str> {
        self.feed.base.source.waits_refused.as_deref()
    }
}
