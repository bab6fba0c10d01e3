//! Chooses the metric: the next one, or one by its name.

use super::apply::Applied;
use super::{App, Effect, waits};
use crate::app::mode::Detail;
use crate::lists::motion::Motion;
use crate::notice::Notice;
use crate::view_id::ViewId;
use crate::views::PaneId;
use profile::Metric;
use std::sync::Arc;

impl App {
    /// Switches to the next metric. In a run that counts only time on CPUs, waits are recorded from
    /// now on. In a file without another metric, a notice says so.
    pub(super) fn next_metric(&mut self) -> Vec<Effect> {
        let next = match self.feed.base.metrics.len() {
            0 | 1 => self.count_more(),
            several => self.set_metric((self.knobs.metric + 1) % several),
        };
        match next {
            Ok(applied) => self.show_applied(applied),
            Err(why) => {
                self.lines.detail = Detail::Notice(Notice::OneMetric(why));
                Vec::new()
            }
        }
    }

    /// Starts to record waits if there is only one metric. The error says why that is not possible.
    fn count_more(&mut self) -> Result<Applied, String> {
        if self.feed.base.source.recording.is_some() {
            return Err("this file counts nothing else".into());
        }
        let [first, ..] = waits::metrics();
        self.count_waits(&first)
    }

    /// Counts by the metric with this number. The error says why that is not possible.
    fn set_metric(&mut self, metric: usize) -> Result<Applied, String> {
        match self.feed.base.metrics.get(metric) {
            Some(other) if metric > 0 && other.view.is_none() => {
                Err(format!("{} is still being read", other.name))
            }
            _ => {
                self.feed.asking.waits = None;
                self.count_by(metric);
                Ok(Notice::MetricSet.into())
            }
        }
    }

    /// Counts by the metric with this number, and scrolls the lists to the top: rows that were at
    /// the top by the old metric may be far down by the new one, and following them would hide the
    /// new top.
    pub(super) fn count_by(&mut self, metric: usize) {
        self.turn(|knobs| knobs.metric = metric);
        for list in [ViewId::Functions, ViewId::Processes, ViewId::Threads] {
            self.with(PaneId::of(list), |view, cx| view.go(cx, Motion::Top));
        }
    }

    /// Counts by the metric with this name. The error says why that is not possible.
    pub(super) fn choose_metric(&mut self, name: &str) -> Result<Applied, String> {
        let metrics = Arc::clone(&self.feed.base.metrics);
        if let Some(number) = metrics.iter().position(|metric| *metric.name == *name) {
            return self.set_metric(number);
        }
        let is_live = self.feed.base.source.recording.is_none();
        if is_live && name == "on-cpu" {
            return self.set_metric(0);
        }
        if is_live && name == Metric::kept_waiting().name && self.is_without_wakers() {
            return Err("kept-waiting needs BPF, and samples are taken by perf".into());
        }
        let waits = waits::metrics();
        if is_live && waits.iter().any(|metric| metric == name) {
            return self.count_waits(name);
        }
        let known = metrics.iter().map(|metric| &*metric.name);
        match (metrics.is_empty(), is_live) {
            (true, true) => Err(format!("there are on-cpu, {}", waits.join(", "))),
            (true, false) => Err("this file counts nothing else".into()),
            (false, _) => Err(format!(
                "it counts {}",
                known.collect::<Vec<_>>().join(", ")
            )),
        }
    }
}
