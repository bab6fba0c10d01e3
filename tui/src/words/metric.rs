//! What is counted, in words.

use crate::context::Context;
use crate::words::{text, units};
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

/// Returns how much is counted in a sentence: `3,277 samples`, or as [`amount`] does.
pub fn counted(cx: &Context<'_>, count: u64) -> String {
    counted_by(metric_told(cx), count)
}

/// Like [`counted`], of this metric; None is time on CPUs, too.
pub fn counted_by(metric: Option<&Metric>, count: u64) -> String {
    match metric.filter(|metric| **metric != Metric::default()) {
        None => units::counted(count, "sample"),
        Some(metric) => of_metric(metric, count),
    }
}

/// Returns how much is counted: `3,277 smp`, or `12.4s` and `52,428,800 bytes` where it is
/// not samples that count.
pub fn amount(cx: &Context<'_>, count: u64) -> String {
    match metric_told(cx) {
        None => format!("{} smp", units::count(count)),
        Some(metric) => of_metric(metric, count),
    }
}

/// Returns how much is counted of something else than time on CPUs: `12.4s`,
/// `52,428,800 bytes`.
fn of_metric(metric: &Metric, count: u64) -> String {
    match metric.per_second() {
        0 => number_of(metric, count),
        per_second => {
            let ns = u128::from(count) * 1_000_000_000 / u128::from(per_second);
            units::nanoseconds(u64::try_from(ns).unwrap_or(u64::MAX))
        }
    }
}

/// Returns what stands in a column of amounts: milliseconds where time is counted, else the
/// number itself.
pub fn in_column(metric: &Metric, count: u64) -> String {
    match metric.per_second() {
        0 => count.to_string(),
        per_second => format!("{:.1}", count as f64 * 1e3 / f64::from(per_second)),
    }
}

/// Returns the head of such a column.
pub fn column_head(metric: &Metric) -> &'static str {
    match metric.per_second() {
        0 => "SMP",
        _ => "MS",
    }
}

/// Returns a count with its unit, such as `52,428,800 bytes`.
pub fn number_of(metric: &Metric, count: u64) -> String {
    let unit = match &*metric.unit {
        "count" | "" => &metric.name,
        unit => unit,
    };
    let unit = text::clean(unit);
    format!("{} {}", units::count(count), text::cut_middle(&unit, 20))
}

/// Like [`amount`], but samples are a number alone: for a text that has named them already.
pub fn bare_amount(cx: &Context<'_>, count: u64) -> String {
    match metric_told(cx) {
        None => units::count(count),
        Some(_) => amount(cx, count),
    }
}
