//! The report for a person.

use super::Report;
use crate::cli::TraceConfig;
use crate::words::units::nanoseconds;
use std::fmt::Write as _;
use std::time::Duration;

/// How many characters the longest bar of a histogram has.
const BAR: u64 = 40;

/// Returns what was counted for each probe: calls, cost, times, values, callers. `time` is
/// how long was counted.
pub fn render(probes: &[Report<'_>], time: Duration, config: &TraceConfig) -> String {
    let mut text = String::new();
    for (number, report) in probes.iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        // Writing to a string never fails.
        let _ = write_probe(&mut text, report, time, config);
    }
    text
}

/// Returns a number with its noun, and no marks of thousands, as scripts may read it.
fn number_of(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Returns the verb for a number of things.
fn were(number: u64) -> &'static str {
    if number == 1 { "was" } else { "were" }
}

/// Writes what one probe has counted. Whatever limits what the numbers mean (removed early,
/// several copies, a loop, calls of others) stands above them.
fn write_probe(
    text: &mut String,
    report: &Report<'_>,
    time: Duration,
    config: &TraceConfig,
) -> std::fmt::Result {
    let (probe, reading) = (report.probe, &report.probe.reading);
    let found = &probe.found;
    writeln!(
        text,
        "{}  ({}+{:#x})",
        found.name, found.module, found.address
    )?;
    // A run that ended at once must not divide by zero.
    let seconds = time.as_secs_f64().max(1e-3);
    let per_second = reading.calls as f64 / seconds;
    writeln!(
        text,
        "  {} in {seconds:.1} s, {per_second:.1}/s; a hit costs {} ({} instruction), {:.2} % of a CPU",
        number_of(reading.calls, "call"),
        nanoseconds(probe.cost_ns),
        report.class().label(),
        // ns per second to percent of one CPU: 1 % is 10,000,000 ns in a second.
        per_second * probe.cost_ns as f64 / 1e7,
    )?;
    if let Some(why) = &probe.removed {
        writeln!(text, "  taken away before the end: {why}")?;
    }
    if found.sites.len() > 1 {
        writeln!(text, "  {} copies of it in the code", found.sites.len())?;
    }
    if found.sites.iter().any(|site| site.repeats) {
        writeln!(
            text,
            "  a loop begins at its first instruction: each round counts as a call"
        )?;
    }
    if reading.others > 0 {
        writeln!(
            text,
            "  {} by others, which are no target",
            number_of(reading.others, "call")
        )?;
    }
    if config.is_timed && !found.sees_ends {
        writeln!(
            text,
            "  counted only: where its calls end cannot be told from its code"
        )?;
    } else if config.is_timed {
        write_times(text, report)?;
    }
    for value in &report.values {
        writeln!(text, "  {} ({})", value.expression.text, value.register)?;
        let all = value.top.iter().map(|(_, count)| count).sum::<u64>() + value.others;
        for (shown, count) in &value.top {
            let share = *count as f64 / all.max(1) as f64 * 100.0;
            writeln!(text, "    {share:>5.1} %  {count:>10}  {shown}")?;
        }
        if value.others > 0 {
            writeln!(text, "             {:>10}  others", value.others)?;
        }
        if value.unreadable > 0 {
            writeln!(
                text,
                "             {:>10}  could not be read",
                value.unreadable
            )?;
        }
    }
    if reading.values_lost > 0 {
        writeln!(
            text,
            "  {} found no room",
            number_of(reading.values_lost, "value")
        )?;
    }
    write_callers(text, report, config)
}

/// Writes how long calls took: quantiles, what the probe itself adds, and a histogram in
/// which the fullest bucket has a bar of [`BAR`] characters.
fn write_times(text: &mut String, report: &Report<'_>) -> std::fmt::Result {
    let reading = &report.probe.reading;
    if let (Some(p50), Some(p90), Some(p99)) = (
        report.quantile(0.5),
        report.quantile(0.9),
        report.quantile(0.99),
    ) {
        writeln!(
            text,
            "  p50 {}  p90 {}  p99 {}  max {}",
            nanoseconds(p50),
            nanoseconds(p90),
            nanoseconds(p99),
            nanoseconds(reading.longest_ns())
        )?;
    }
    if reading.returns > 0 {
        let floor = nanoseconds(report.probe.floor_ns);
        writeln!(
            text,
            "  a call that does nothing would show as {floor}: so much is the probe's own"
        )?;
    }
    if report.unreturned() > 0 {
        let unreturned = report.unreturned();
        let have = if unreturned == 1 { "has" } else { "have" };
        writeln!(text, "  {unreturned} {have} not returned")?;
    }
    if reading.short > 0 {
        writeln!(
            text,
            "  {} {} shorter than --min",
            reading.short,
            were(reading.short)
        )?;
    }
    let most = reading.buckets().map(|bucket| bucket.2).max().unwrap_or(1);
    for (low, high, calls) in reading.buckets() {
        let bar = "#".repeat((calls * BAR).div_ceil(most) as usize);
        let range = format!("{} to {}", nanoseconds(low), nanoseconds(high));
        writeln!(text, "    {range:<22} {calls:>10}  {bar}")?;
    }
    Ok(())
}

/// Writes the stacks of calls, if stacks were asked for. Shares are of the stacks that were
/// taken and not of all calls, of which only some give their stack.
fn write_callers(text: &mut String, report: &Report<'_>, config: &TraceConfig) -> std::fmt::Result {
    if !config.stacks {
        return Ok(());
    }
    let reading = &report.probe.reading;
    write!(text, "  {}", number_of(reading.stacks, "stack"))?;
    if reading.stacks_lost > 0 {
        write!(text, ", {} could not be taken", reading.stacks_lost)?;
    }
    text.push('\n');
    for caller in &report.callers {
        let share = caller.count as f64 / reading.stacks.max(1) as f64 * 100.0;
        writeln!(text, "    {share:>5.1} %  {}", caller.stack.join(" < "))?;
    }
    Ok(())
}
