//! The words for the metric.

use crate::context::Context;
use crate::words::{text, units};
use profile::Metric;
use std::borrow::Cow;

/// Returns the name of the metric: `on-CPU` for time on CPUs, else its name in the file.
pub fn metric(cx: &Context<'_>) -> String {
    match metric_told(cx) {
        None => "on-CPU".into(),
        Some(metric) => text::clean(&metric.name).into_owned(),
    }
}

/// Returns the metric of the shown samples. None for time on CPUs.
pub fn metric_told<'a>(cx: &Context<'a>) -> Option<&'a Metric> {
    unless_default(Some(&cx.shown.view.as_ref()?.info().metric))
}

/// Returns the metric if it is not time on CPUs, which is counted in samples.
fn unless_default(metric: Option<&Metric>) -> Option<&Metric> {
    metric.filter(|metric| **metric != Metric::default())
}

/// Returns an amount for a sentence: `3,277 samples`, or as [`amount`] does.
pub fn counted(cx: &Context<'_>, count: u64) -> String {
    counted_by(metric_told(cx), count)
}

/// Returns the same as [`counted`] for this metric. None also means time on CPUs.
pub fn counted_by(metric: Option<&Metric>, count: u64) -> String {
    match unless_default(metric) {
        None => units::counted(count, "sample"),
        Some(metric) => of_metric(metric, count),
    }
}

/// Returns an amount: `3,277 smp`, or `12.4s` and `52,428,800 bytes` for other metrics.
pub fn amount(cx: &Context<'_>, count: u64) -> String {
    amount_by(metric_told(cx), count)
}

/// Returns the same as [`amount`] for this metric. None also means time on CPUs.
pub fn amount_by(metric: Option<&Metric>, count: u64) -> String {
    match unless_default(metric) {
        None => format!("{} smp", units::count(count)),
        Some(metric) => of_metric(metric, count),
    }
}

/// Returns an amount of another metric than time on CPUs: `12.4s`, `52,428,800 bytes`.
fn of_metric(metric: &Metric, count: u64) -> String {
    match metric.per_second() {
        0 => number_of(metric, count),
        per_second => {
            let ns = u128::from(count) * 1_000_000_000 / u128::from(per_second);
            units::nanoseconds(u64::try_from(ns).unwrap_or(u64::MAX))
        }
    }
}

/// Returns an amount for a column: milliseconds if time is counted, else the number itself.
pub fn in_column(metric: &Metric, count: u64) -> String {
    match metric.per_second() {
        0 => count.to_string(),
        per_second => format!("{:.1}", count as f64 * 1e3 / f64::from(per_second)),
    }
}

/// Returns the head of a column of amounts.
pub fn column_head(metric: &Metric) -> &'static str {
    match metric.per_second() {
        0 if *metric == Metric::default() => "SMP",
        0 => "COUNT",
        _ => "MS",
    }
}

/// Returns a count with its unit, such as `52,428,800 bytes` or `1,203 page faults`.
pub fn number_of(metric: &Metric, count: u64) -> String {
    format!("{} {}", units::count(count), unit_of(metric))
}

/// Returns the unit of amounts: `bytes`, `page faults`, `sched_switch passes`.
pub fn unit_of(metric: &Metric) -> String {
    let unit = match &*metric.unit {
        "count" | "" => Cow::Borrowed(&*metric.name),
        _ if metric.counts_events() => events(&metric.name),
        unit => Cow::Borrowed(unit),
    };
    text::cut_middle(&text::clean(&unit), 24).into_owned()
}

/// Returns the words for events: `page faults`, `sched_switch passes`.
fn events(name: &str) -> Cow<'_, str> {
    match name.strip_prefix("tracepoint:") {
        Some(place) => Cow::Owned(format!(
            "{} passes",
            place.rsplit(':').next().unwrap_or(place)
        )),
        None => Cow::Owned(name.replace('-', " ")),
    }
}

/// Returns the same as [`amount`], but samples without a unit: for a text that has named them.
pub fn bare_amount(cx: &Context<'_>, count: u64) -> String {
    bare_amount_by(metric_told(cx), count)
}

/// Returns the same as [`bare_amount`] for this metric. None also means time on CPUs.
pub fn bare_amount_by(metric: Option<&Metric>, count: u64) -> String {
    match unless_default(metric) {
        None => units::count(count),
        Some(metric) => of_metric(metric, count),
    }
}
