//! Applies the command line, before the first event.

use super::App;
use crate::notice::Notice;
use crate::order::Order;
use engine::snapshot::Baseline;
use profile::Filter;
use std::sync::Arc;

impl App {
    /// Applies the filter, metric and baseline of the command line as if the user had chosen them:
    /// Backspace undoes the filter. The error says why one of them cannot be shown.
    pub fn begin_with(
        &mut self,
        filter: Filter,
        metric: usize,
        baseline: Option<Baseline>,
    ) -> Result<(), Notice> {
        // The metric is set without an order: an order would look it up in the first snapshot,
        // which is still to come, and there is no other metric to go back to.
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
