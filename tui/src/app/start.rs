//! What the command line asked for, before the first event.

use super::App;
use crate::notice::Notice;
use crate::order::Order;
use engine::snapshot::Baseline;
use profile::Filter;
use std::sync::Arc;

impl App {
    /// Sets what the command line asked for as if it had been typed: Backspace undoes it. The
    /// error says why something of it is not shown.
    pub fn begin_with(
        &mut self,
        filter: Filter,
        metric: usize,
        baseline: Option<Baseline>,
    ) -> Result<(), Notice> {
        // No order: that would look for the metric in the list of the first snapshot, which is
        // still to come, and there is no other metric to go back to.
        self.knobs.metric = metric;
        let is_compared = baseline.is_some();
        self.begin_with_baseline(baseline);
        if !filter.is_empty() {
            self.apply(Order::Filter(filter))?;
        }
        if is_compared {
            self.apply(Order::Difference(true))?;
        }
        Ok(())
    }

    /// Sets the baseline of the command line. It stays when the difference is undone.
    pub fn begin_with_baseline(&mut self, baseline: Option<Baseline>) {
        self.knobs.baseline = baseline.map(Arc::new);
    }
}
