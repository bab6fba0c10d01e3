//! Explains numbers: what was counted, and relative to what.

use crate::context::Context;
use crate::knobs::Window;
use crate::words::metric::metric_told;
use crate::words::{metric, states, units, waits};
use profile::Activity;

/// Explains the number of a process or thread in CPUs.
pub fn cpus(cx: &Context<'_>, samples: u64, who: &str) -> String {
    let seconds = cx.shown.report.window.seconds();
    let rate = cx.shown.report.rate_hz;
    let cpus = units::cpus(samples, rate, seconds).unwrap_or(0.0);
    if cx.counts_time() {
        let threads = samples as f64 / 1e9 / seconds.max(1e-9);
        let time = metric::amount(cx, samples);
        return format!("{threads:.2} threads that waited = {time} of {who} / {seconds:.1} s");
    }
    format!(
        "{cpus:.2} CPU = {} of {who} / ({rate} per second and CPU x {seconds:.1} s)",
        units::counted(samples, "sample")
    )
}

/// Explains the states of a process or thread, if they are known exactly.
pub fn activity(cx: &Context<'_>, samples: u64, who: &str, activity: &Activity) -> String {
    let open = states::open_wait(activity);
    // If time is counted, `base_words` says since when waits are counted.
    let since = waits::missing_before(cx.shown).filter(|_| !cx.counts_time());
    format!(
        "{who}: {} by stacks, and by every switch of its threads in {}{}: {}{}{}; {}",
        metric::counted(cx, samples),
        base_words(cx),
        since.map_or_else(String::new, |since| format!(" since {since}")),
        states::sums(activity),
        states::delays(activity).map_or_else(String::new, |delays| format!("; {delays}")),
        open.map_or_else(String::new, |open| format!(
            "; now {open} (> if it did when we came); the stack of such a wait counts from 2 s on"
        )),
        states::LEGEND,
    )
}

/// Explains the row of a process or thread that no longer has samples.
pub fn gone(cx: &Context<'_>, samples: u64, who: &str) -> String {
    format!(
        "{who} has no samples in {}; when it was last seen it had {}",
        base_words(cx),
        metric::bare_amount(cx, samples)
    )
}

/// Returns what shares refer to, as in `system, last 10.0 s`.
pub fn base_words(cx: &Context<'_>) -> String {
    let seconds = cx.shown.report.window.seconds();
    let time = match cx.knobs.window {
        Window::Last(_) => "last",
        Window::Since { .. } => "since the mark,",
        Window::Between { .. } => "marked",
    };
    let rates = match cx.shown.report.reweighed {
        Some(told) if cx.counts_time() => format!(
            " ({} taken; that of a short wait stands for others like it)",
            units::counted(told.taken, "stack")
        ),
        Some(told) if metric_told(cx).is_some() => format!(
            " ({} taken, each for as many as there had been since the one before)",
            units::counted(told.taken, "sample")
        ),
        Some(told) => format!(
            " (the rate changed: {} taken, counted as if all were at {} Hz)",
            units::count(told.taken),
            cx.shown.report.rate_hz
        ),
        None if cx.shown.report.hides_samples => {
            " (the file does not say how many samples there were: no band is known)".into()
        }
        None => String::new(),
    };
    let filter = if cx.knobs.filter.is_empty() {
        String::new()
    } else {
        format!(
            ", filter {}{}",
            cx.knobs.filter,
            waits::idle_rule(&cx.knobs.filter)
        )
    };
    let since = if cx.counts_time() {
        waits::since(cx.shown)
    } else {
        None
    };
    let since = since.map_or_else(String::new, |since| {
        format!(" (waits counted since {since})")
    });
    format!(
        "{}, {time} {seconds:.1} s{since}{rates}{filter}",
        cx.scope_words()
    )
}
