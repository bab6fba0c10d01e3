//! What is counted, in words.

use crate::context::Context;
use crate::words::text;
use profile::Metric;

/// What is counted: time on CPUs, or as the file calls it.
pub fn metric(cx: &Context<'_>) -> String {
    match metric_told(cx) {
        None => "on-CPU".into(),
        Some(metric) => text::clean(&metric.name).into_owned(),
    }
}

/// The metric of what is shown, if it is not time on CPUs.
pub fn metric_told<'a>(cx: &Context<'a>) -> Option<&'a Metric> {
    let metric = &cx.shown.view.as_ref()?.info().metric;
    (*metric != Metric::default()).then_some(metric)
}
