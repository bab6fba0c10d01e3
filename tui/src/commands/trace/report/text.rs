//! The report as text for people.

use super::{Manner, Report};
use crate::words::units::nanoseconds;
use profile::few;
use std::fmt::Write as _;

/// Length of the longest bar of a histogram, in characters.
const BAR: u64 = 40;

/// Returns the results of each probe: calls, cost, times, values, callers.
pub fn render(probes: &[Report<'_>], manner: Manner) -> String {
    let mut text = String::new();
    for (number, report) in probes.iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        // Writing to a string never fails.
        let _ = write_probe(&mut text, report, manner);
    }
    text
}

/// Returns a number with its noun, without separators of thousands, because scripts may read it.
fn number_of(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Returns the verb for a number of things.
fn were(number: u64) -> &'static str {
    if number == 1 { "was" } else { "were" }
}

/// Writes the results of one probe. Whatever limits their meaning (removed early, several copies, a
/// loop, calls of other processes) is written above them.
fn write_probe(text: &mut String, report: &Report<'_>, manner: Manner) -> std::fmt::Result {
    let (about, tally) = (report.about, &report.tally);
    if report.is_point() {
        writeln!(text, "{}", about.name)?
    } else {
        writeln!(
            text,
            "{}  ({}+{:#x})",
            about.name, about.module, about.address
        )?
    }
    let (noun, how) = if report.is_point() {
        ("hit", String::new())
    } else {
        ("call", format!(" ({})", how_it_is_hit(report)))
    };
    // A run that ended at once must not divide by zero.
    let seconds = report.time.as_secs_f64().max(1e-3);
    let per_second = tally.calls as f64 / seconds;
    writeln!(
        text,
        "  {} in {seconds:.1} s, {per_second:.1}/s; a hit costs {}{how}, {:.2} % of a CPU",
        number_of(tally.calls, noun),
        nanoseconds(about.hit_ns),
        // Hits of processes outside of the target cost as well. ns per second to percent of one
        // CPU: 1 % is 10,000,000 ns in a second.
        (tally.calls + tally.others) as f64 / seconds * about.hit_ns as f64 / 1e7,
    )?;
    if let Some(why) = report.removed {
        writeln!(text, "  taken away before the end: {why}")?;
    }
    if report.forgotten > 0 {
        let forgotten = number_of(report.forgotten, "second");
        writeln!(text, "  {forgotten} at the beginning found no room")?;
    }
    if let Some(late) = report.late {
        writeln!(
            text,
            "  placed when the command had run for {:.1} s: earlier calls are not counted",
            late.as_secs_f64()
        )?;
    }
    if about.copies > 1 {
        writeln!(text, "  {} copies of it in the code", about.copies)?;
    }
    if about.repeats {
        writeln!(
            text,
            "  a loop begins at its first instruction: each round counts as a call"
        )?;
    }
    if tally.others > 0 {
        writeln!(
            text,
            "  {} by others, which are no target",
            number_of(tally.others, noun)
        )?;
    }
    if tally.missed > 0 {
        writeln!(
            text,
            "  {} left out by the kernel: they came in the middle of another one",
            number_of(tally.missed, noun)
        )?;
    }
    match (about.is_timed, manner.is_timed) {
        (true, _) => write_times(text, report)?,
        // Such a site is not the start of a call.
        (false, Some(true)) if matches!(&*about.site, "marker" | "inside" | "tracepoint") => {}
        (false, Some(true)) => writeln!(
            text,
            "  counted only: where its calls end cannot be told from its code"
        )?,
        (false, None) if report.is_point() => {}
        (false, None) => writeln!(text, "  counted only")?,
        (false, Some(false)) => {}
    }
    for value in &report.values {
        writeln!(text, "  {} ({})", value.expression, value.register)?;
        let others = (value.others > 0).then_some(("others", value.others));
        let rows = value.top.iter().map(|(shown, count)| (&**shown, *count));
        let rows: Vec<(&str, u64)> = rows.chain(others).collect();
        let counts: Vec<u64> = rows.iter().map(|(_, count)| *count).collect();
        for ((shown, count), tenths) in rows.iter().zip(tenths_of_percent(&counts)) {
            let share = tenths as f64 / 10.0;
            writeln!(text, "    {share:>5.1} %  {count:>10}  {shown}")?;
        }
        if value.unreadable > 0 {
            writeln!(
                text,
                "             {:>10}  could not be read: no address, or memory not used yet",
                value.unreadable
            )?;
        }
    }
    if tally.values_lost > 0 {
        writeln!(
            text,
            "  {} found no room",
            number_of(tally.values_lost, "value")
        )?;
    }
    write_callers(text, report)
}

/// Names the instruction at which calls are seen, on which their cost depends: `emulated
/// instruction`.
fn how_it_is_hit(report: &Report<'_>) -> String {
    if report.has_breakpoints_at_returns() && !report.about.is_stepped {
        // The site itself is cheap. The breakpoint at the end of the call is expensive.
        "emulated instruction, and a stepped one at its return".into()
    } else {
        format!("{} instruction", report.class())
    }
}

/// Writes how long calls took: quantiles, the time that the probe itself adds, and a histogram in
/// which the fullest bucket has a bar of [`BAR`] characters.
fn write_times(text: &mut String, report: &Report<'_>) -> std::fmt::Result {
    let (about, tally) = (report.about, &report.tally);
    if let (Some(p50), Some(p90), Some(p99)) = (
        tally.quantile_ns(0.5),
        tally.quantile_ns(0.9),
        tally.quantile_ns(0.99),
    ) {
        writeln!(
            text,
            "  p50 {}  p90 {}  p99 {}  max {}",
            nanoseconds(p50),
            nanoseconds(p90),
            nanoseconds(p99),
            nanoseconds(tally.max_ns)
        )?;
    }
    if tally.returns > 0 {
        let floor = nanoseconds(about.floor_ns);
        writeln!(
            text,
            "  a call that does nothing would show as {floor}: so much is the probe's own"
        )?;
    }
    let unreturned = tally.unreturned();
    if unreturned > 0 {
        let have = if unreturned == 1 { "has" } else { "have" };
        writeln!(text, "  {unreturned} {have} not returned")?;
    }
    if tally.short > 0 {
        // When the arguments are read, it is not known yet how long the call takes.
        let values = if report.values.is_empty() {
            ""
        } else {
            ": only values of arguments are of these, too"
        };
        writeln!(
            text,
            "  {} {} shorter than --min{values}",
            tally.short,
            were(tally.short)
        )?;
    }
    let most = tally.buckets.values().copied().max().unwrap_or(1);
    for ((low, high), calls) in &tally.buckets {
        let bar = "#".repeat(calls.saturating_mul(BAR).div_ceil(most.max(1)) as usize);
        let range = format!("{} to {}", nanoseconds(*low), nanoseconds(*high));
        writeln!(text, "    {range:<22} {calls:>10}  {bar}")?;
    }
    Ok(())
}

/// Returns the share of each count in their sum, in tenths of a percent that add up to 1,000. All
/// shares are rounded down, and the rest is given to those that lost most. All are 0 if the sum is
/// 0.
fn tenths_of_percent(counts: &[u64]) -> Vec<u64> {
    const WHOLE: u128 = 1_000;
    let all: u128 = counts.iter().map(|count| u128::from(*count)).sum();
    if all == 0 {
        return vec![0; counts.len()];
    }
    let exact = counts.iter().map(|count| u128::from(*count) * WHOLE);
    let mut shares: Vec<u64> = exact.clone().map(|share| (share / all) as u64).collect();
    let mut by_loss: Vec<(usize, u128)> = exact.map(|share| share % all).enumerate().collect();
    few::sort_by_key(&mut by_loss, |(at, loss)| (std::cmp::Reverse(*loss), *at));
    let left = WHOLE as u64 - shares.iter().sum::<u64>();
    for (at, _) in by_loss.into_iter().take(left as usize) {
        shares[at] += 1;
    }
    shares
}

/// Writes the stacks of calls, if there are any. Shares are relative to the taken stacks and not to
/// all calls, because only some calls give their stack.
fn write_callers(text: &mut String, report: &Report<'_>) -> std::fmt::Result {
    if !report.has_stacks {
        return Ok(());
    }
    let (about, tally) = (report.about, &report.tally);
    write!(text, "  {}", number_of(tally.stacks, "stack"))?;
    if tally.stacks_lost > 0 {
        write!(
            text,
            ", {} could not be taken: too many at once, or the process was new and its unwind \
             tables not ready",
            tally.stacks_lost
        )?;
    }
    text.push('\n');
    if report.stacks_cut > 0 {
        writeln!(
            text,
            "  {} {} cut at [cut: …], which says why: outer functions are missing there",
            number_of(report.stacks_cut, "stack"),
            were(report.stacks_cut),
        )?;
    }
    for (callers, count) in &report.callers.rows {
        let share = *count as f64 / tally.stacks.max(1) as f64 * 100.0;
        // A tracepoint is not a function, so the stack begins with its first caller.
        let own = (!report.is_point()).then_some(&*about.name);
        let names = own.into_iter().chain(callers.iter().map(|name| &**name));
        let names: Vec<&str> = names.collect();
        writeln!(text, "    {share:>5.1} %  {}", names.join(" < "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_values_add_up_to_all_of_them() {
        // Rounded up separately, 16.7 % six times would be 100.2 %.
        assert_eq!(tenths_of_percent(&[5; 6]), [167, 167, 167, 167, 166, 166]);
        assert_eq!(tenths_of_percent(&[1, 0, 2]), [333, 0, 667]);
        assert_eq!(tenths_of_percent(&[0, 0]), [0, 0]);
        assert!(tenths_of_percent(&[]).is_empty());
        let huge = tenths_of_percent(&[u64::MAX, u64::MAX, 1]);
        assert_eq!(huge.iter().sum::<u64>(), 1_000);
    }
}
