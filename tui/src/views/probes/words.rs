//! Texts about a probe.

use crate::action::Action;
use crate::context::Context;
use crate::words::keys::{and, hint};
use crate::words::units;
use engine::probes::{Probe, Seen, Stage, Whose};
use std::time::Duration;

/// Returns a number of calls per second: `12,345`, `0.4`.
pub fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate <= 0.0 => "0".into(),
        rate if rate < 9.95 => format!("{rate:.1}"),
        rate => units::count(rate.round() as u64),
    }
}

/// Returns a share of one CPU: `0.81%`, `12%`.
pub fn cost(share: f64) -> String {
    match share * 100.0 {
        percent if percent <= 0.0 => "0%".into(),
        percent if percent < 0.01 => "<0.01%".into(),
        percent if percent < 1.0 => format!("{percent:.2}%"),
        percent if percent < 10.0 => format!("{percent:.1}%"),
        percent => format!("{percent:.0}%"),
    }
}

/// Returns which share of the time of its calls was spent on a CPU: `38%`, or `-` if that is not
/// known.
pub fn on_cpu(seen: &Seen) -> String {
    match seen.busy_share() {
        Some((share, _)) => format!("{:.0}%", share * 100.0),
        None => "-".into(),
    }
}

/// Returns how long the probe stays: `52s`, `gone`, or `...` while its function is searched for.
pub fn left(probe: &Probe) -> String {
    match &probe.stage {
        Stage::Sought | Stage::Missing => "...".into(),
        Stage::InPlace { left } => format!("{}s", left.as_secs_f64().ceil() as u64),
        Stage::Gone(_) => "gone".into(),
        Stage::Recorded(_) => "-".into(),
    }
}

/// Returns whose calls are counted: `every process`, `postgres[4121]`.
pub fn whose(cx: &Context<'_>, probe: &Probe) -> String {
    let run = &cx.shown.run;
    match &probe.whose {
        Whose::Processes { words, .. } => words.to_string(),
        Whose::Target if run.is_of_whole_machine() => "every process".into(),
        Whose::Target => run.scope.to_string(),
    }
}

/// Returns sentences about what was counted, for the lines below the list.
pub fn sentences(cx: &Context<'_>, probe: &Probe) -> Vec<String> {
    let Some(seen) = &probe.seen else {
        return vec![match &probe.stage {
            Stage::Gone(why) => format!("taken away: {why}"),
            Stage::Recorded(_) => "it was not in place in this time".into(),
            _ => "looking for its code, and where a breakpoint may stand ...".into(),
        }];
    };
    let mut lines = Vec::new();
    if let Stage::Gone(why) | Stage::Recorded(Some(why)) = &probe.stage {
        lines.push(format!("taken away: {why}"));
    }
    lines.extend([counted(cx, probe, seen), costs(probe, seen)]);
    // A marker is a place in the code. Passing it takes no time.
    if !probe.name.starts_with("usdt:") {
        lines.extend(lasted(seen));
    }
    lines.extend(but(seen));
    lines
}

/// Returns `12,345 calls in 12 s by postgres[4121], 3 not back yet; 7 by others`. Calls that have
/// not returned are mentioned only if returns can be seen.
fn counted(cx: &Context<'_>, probe: &Probe, seen: &Seen) -> String {
    let noun = if seen.site.is_point { "hit" } else { "call" };
    let calls = units::counted(seen.calls, noun);
    let whose = whose(cx, probe);
    let mut line = format!("{calls} in {} by {whose}", seconds(seen.time));
    let open = seen.calls.saturating_sub(seen.returns);
    if seen.site.is_timed && open > 0 {
        line += &format!(", {} not back yet", units::count(open));
    }
    if seen.others > 0 {
        line += &format!("; {} by others", units::count(seen.others));
    }
    line
}

/// Returns a time as `12 s` or `3 min 5 s`.
fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s => format!("{} min {} s", s as u64 / 60, s as u64 % 60),
    }
}

/// Returns the sentence that says what a hit costs by measurement, and at which share of a CPU the
/// probe is removed. A stepped instruction is executed by the kernel at another place, which costs
/// more than an instruction that it emulates.
fn costs(probe: &Probe, seen: &Seen) -> String {
    let how = match (seen.site.is_stepped, seen.site.breakpoints) {
        (false, 1) => String::new(),
        (false, many) => format!(" at {many} breakpoints"),
        (true, 1) => " (stepped)".into(),
        (true, many) => format!(" at {many} breakpoints (stepped)"),
    };
    let (hit, share) = (units::nanoseconds(seen.cost.hit_ns), cost(seen.cost.share));
    match &probe.stage {
        Stage::Recorded(_) => format!("measured: a hit cost {hit}{how}, {share} of a CPU"),
        _ => format!(
            "measured: a hit costs {hit}{how}, now {share} of a CPU; taken away above {}",
            cost(seen.cost.share_max),
        ),
    }
}

/// Returns the sentence that says how long calls took and which part of that time they ran, or that
/// their ends cannot be seen. Returns `None` until a call has returned.
fn lasted(seen: &Seen) -> Option<String> {
    if seen.site.is_point {
        return None;
    }
    if !seen.site.is_timed {
        return Some("counted only: where its calls end cannot be told from its code".into());
    }
    let latency = seen.latency.as_ref()?;
    let mut line = format!(
        "p50 {}  p90 {}  p99 {}  max {}",
        units::nanoseconds(latency.p50_ns),
        units::nanoseconds(latency.p90_ns),
        units::nanoseconds(latency.p99_ns),
        units::nanoseconds(latency.max_ns)
    );
    if let Some((share, off)) = seen.busy_share() {
        let busy = share * 100.0;
        line += &format!(
            "   on a CPU {busy:.0}% ±{:.0}, waiting {:.0}%",
            (off * 100.0).ceil(),
            100.0 - busy
        );
    }
    Some(line)
}

/// Returns reservations that a reader of the numbers has to know, or `None` if there are none.
fn but(seen: &Seen) -> Option<String> {
    let mut all = Vec::new();
    if seen.site.repeats {
        all.push("a loop begins at its first instruction: each round counts".to_owned());
    }
    if let Some(latency) = &seen.latency
        // The time of the probe itself matters if half of the calls take less than twice that time.
        && latency.p50_ns < seen.cost.floor_ns.saturating_mul(2)
    {
        let floor = units::nanoseconds(seen.cost.floor_ns);
        all.push(format!(
            "an empty call shows as {floor}: so much is the probe's own"
        ));
    }
    if seen.missed > 0 {
        let hits = units::counted(seen.missed, "hit");
        all.push(format!("{hits} left out, in the middle of another one"));
    }
    if seen.stacks_cut > 0 {
        let cut = units::count(seen.stacks_cut);
        let stacks = units::counted(seen.callers.all, "stack");
        all.push(format!(
            "{cut} of {stacks} are cut: outer functions are missing"
        ));
    }
    if seen.values_lost > 0 {
        let lost = units::counted(seen.values_lost, "value");
        all.push(format!("{lost} found no room"));
    }
    (!all.is_empty()).then(|| all.join("; "))
}

/// Returns the detail line: how long the selected probe stays or why it is gone, and the keys for
/// it.
pub fn detail(cx: &Context<'_>, probe: &Probe) -> String {
    let renew = hint(cx, Action::Renew, "60 s more");
    let again = hint(cx, Action::Renew, "again");
    let value = hint(cx, Action::Value, "read a value");
    let away = hint(cx, Action::Unprobe, "take away");
    match &probe.stage {
        Stage::Sought => and("it is being placed", "   ", [away]),
        Stage::Missing => and("there is no such function yet", "   ", [away]),
        Stage::InPlace { .. } => {
            let left = left(probe);
            and(&format!("{left} left"), "   ", [renew, value, away])
        }
        Stage::Gone(why) => and(&format!("taken away: {why}"), "   ", [again]),
        Stage::Recorded(None) => "as it was recorded".into(),
        Stage::Recorded(Some(why)) => format!("as it was recorded; taken away: {why}"),
    }
}

/// Returns the sentence that explains how the numbers of a probe were measured.
pub fn explain(probe: &Probe) -> String {
    let Some(seen) = &probe.seen else {
        return "nothing was counted yet".into();
    };
    let site = &seen.site;
    if site.is_point {
        return "Each time that the kernel passes this place is counted by a program of the \
                kernel's own virtual machine; whose it is, is who runs on that CPU then."
            .into();
    }
    let copies = match site.copies {
        0 | 1 => String::new(),
        many => format!(", in {many} copies"),
    };
    let times = if site.is_timed {
        "times are from a call to its return, with all that it waits for, in buckets of \
                 at most 25%; ON-CPU are samples with it on the stack, as a share of that"
    } else {
        "its ends are not seen"
    };
    format!(
        "Each call of the {} function at {}+{:#x}{copies} is counted by a breakpoint; {times}.",
        site.language, probe.module, site.address
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let shown = [0.0, 0.44, 12.3, 12_345.0].map(rate);
        assert_eq!(shown, ["0", "0.4", "12", "12,345"]);
        let shown = [0.0, 0.000_01, 0.008_1, 0.05, 0.123].map(cost);
        assert_eq!(shown, ["0%", "<0.01%", "0.81%", "5.0%", "12%"]);
    }
}
