use engine::snapshot::Snapshot;
use std::time::Instant;

/// When the screen first showed something, for measuring the start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Milestones {
    pub first_paint: Option<Instant>,
    pub first_samples: Option<Instant>,
    pub first_names: Option<Instant>,
}

impl Milestones {
    /// Notes the time of each milestone that this snapshot reaches. Called after each frame.
    pub(super) fn note(&mut self, shown: &Snapshot, now: Instant) {
        self.first_paint.get_or_insert(now);
        if shown.report.samples > 0 {
            self.first_samples.get_or_insert(now);
        }
        if shown.report.completeness.named > 0 {
            self.first_names.get_or_insert(now);
        }
    }
}
