//! The texts about the selected cell.

use super::rows;
use crate::action::Action;
use crate::calendar::{self, SECOND_NS};
use crate::context::Context;
use crate::views::time::{Spot, Time};
use crate::words::keys::hint;
use crate::words::units::Scale;
use crate::words::{metric, names, text, waits};
use profile::query::{HeatBy, HeatRow};

/// Returns the sentence that says why there is no map: no answer yet, or no samples at all.
pub fn why_empty(time: &Time, cx: &Context<'_>) -> &'static str {
    match time.answer() {
        _ if cx.shown.view.is_none() => "no samples",
        None => "counting…",
        Some(_) => "no samples in all that is kept",
    }
}

/// Returns the detail line: `14:02:40.100 UTC   29 samples in 100 ms   v: mark   Enter: this
/// second`.
pub fn detail(time: &Time, cx: &Context<'_>, width: usize) -> String {
    let (Some(answer), Some(spot)) = (time.answer(), time.selected()) else {
        return String::new();
    };
    let map = &answer.all;
    let mut parts = vec![clock(time, spot, answer.epoch_unix_ms)];
    let column = (spot.second - map.first_second) as usize;
    // The numbers of the marked stretch if there is one, else of the selected cell.
    let (count, ms) = match time.marked() {
        Some((from, to)) => (sum(time, from, to), marked_ms(time)),
        None => (map.cell(column, spot.row), time.row_ns() / 1_000_000),
    };
    let span = span(ms);
    let unit = in_unit(time, cx, ms * 1_000_000).beside(count);
    let unit = unit.map_or_else(String::new, |unit| format!(" = {unit}"));
    let samples = metric::counted(cx, count);
    parts.push(match not_counted(time, cx, spot) {
        Some(why) if count == 0 => why,
        _ => format!("{samples} in {span}{unit}"),
    });
    if let (None, Some(row)) = (time.marked(), people(time, spot)) {
        parts.push(rows::name(&row));
    }
    if let (Some((own, name)), None) = (&answer.own, time.marked()) {
        let own = own.cell(column, spot.row);
        let own = metric::bare_amount(cx, own);
        parts.push(format!("{own} of {}", text::clean(name)));
    }
    let keys = match time.marked() {
        Some(_) if !time.is_marking() => [None, hint(cx, Action::UseTime, "as the window")],
        Some(_) => [
            hint(cx, Action::MarkTime, "to here"),
            hint(cx, Action::UseTime, "as the window"),
        ],
        None => [
            hint(cx, Action::MarkTime, "mark"),
            hint(cx, Action::UseTime, "this second"),
        ],
    };
    let keys = keys.into_iter().flatten().collect::<Vec<_>>().join("  ");
    let used = |parts: &[String]| parts.iter().map(|p| text::width(p) + 3).sum::<usize>();
    if !keys.is_empty() && used(&parts) + keys.len() <= width {
        parts.push(keys);
    }
    parts.join("   ")
}

/// Returns `waits are counted since 03:12:44 CET` if the cell is before that time, otherwise
/// `None`.
fn not_counted(time: &Time, cx: &Context<'_>, spot: Spot) -> Option<String> {
    let since_ns = cx.shown.waits_since_ns().filter(|_| cx.counts_time())?;
    let is_before = time.start_ns(spot) + time.row_ns() <= since_ns;
    let since = waits::since(cx.shown).filter(|_| is_before)?;
    Some(format!("waits are counted since {since}"))
}

/// Returns the unit for samples that were taken within `ns` nanoseconds.
pub fn in_unit(time: &Time, cx: &Context<'_>, ns: u64) -> Scale {
    let rate_hz = time.answer().map_or(0, |map| map.all.rate_hz);
    Scale::new(cx, 0).over(rate_hz, ns as f64 / SECOND_NS as f64)
}

/// Returns what differs in the marked time: `in it, against the rest: heap_hot_search_buffer +38.0,
/// hash_search +21.0 pp`.
pub fn apart(time: &Time, width: usize) -> Option<String> {
    time.marked()?;
    let Some(apart) = time.apart() else {
        return Some("in it, against the rest: counting…".into());
    };
    if apart.is_empty() {
        return Some("in it nothing is surely different from the rest".into());
    }
    let mut line = String::from("in it, against the rest:");
    for (at, each) in apart.iter().enumerate() {
        let name = text::cut_middle(&names::short(&each.name), 30).into_owned();
        let more = format!(
            "{} {name} {:+.1}",
            if at > 0 { "," } else { "" },
            each.points
        );
        if text::width(&line) + text::width(&more) + 3 > width {
            break;
        }
        line += &more;
    }
    Some(line + " pp")
}

/// Returns the number of samples from one cell to another, both included, second by second.
fn sum(time: &Time, from: Spot, to: Spot) -> u64 {
    let Some(map) = time.answer().map(|answer| &answer.all) else {
        return 0;
    };
    let cells = (0..map.columns()).flat_map(|column| (0..map.rows).map(move |row| (column, row)));
    let is_in = |(column, row): &(usize, usize)| {
        let second = map.first_second + *column as u64;
        (from..=to).contains(&Spot { second, row: *row })
    };
    cells
        .filter(is_in)
        .map(|(column, row)| map.cell(column, row))
        .sum()
}

/// Returns a duration as `100 ms` or `1.70 s`.
pub fn span(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        _ if ms.is_multiple_of(1_000) => format!("{} s", ms / 1_000),
        _ => format!("{:.2} s", ms as f64 / 1_000.0),
    }
}

/// Returns the CPUs or the thread of a cell's row, or `None` if rows are parts of a second.
fn people(time: &Time, spot: Spot) -> Option<HeatRow> {
    let row = time.answer()?.rows.row(spot.row)?;
    (time.by() != HeatBy::Parts).then_some(row)
}

/// Returns the length of the marked stretch in milliseconds; 0 without an answer.
fn marked_ms(time: &Time) -> u64 {
    let stretch = time.stretch().map(|(from, to)| to - from);
    stretch.unwrap_or(0) / 1_000_000
}

/// Returns the time of a cell: `14:02:40.100 UTC`.
fn clock(time: &Time, spot: Spot, epoch_unix_ms: i64) -> String {
    let ms = (time.start_ns(spot) / 1_000_000) as i64 + epoch_unix_ms;
    let (of_day, zone) = (calendar::of_day(ms), calendar::zone(ms));
    format!("{of_day}.{:03} {zone}", ms.rem_euclid(1_000))
}

/// Returns how many CPUs the scope can keep busy: as many as it has threads, but not more than are
/// sampled.
pub fn cpus_of_scope(cx: &Context<'_>) -> u64 {
    let all = u64::from(cx.shown.source.host.cpus_sampled());
    if cx.knobs.scope.is_empty() {
        all
    } else {
        all.min((cx.shown.report.threads.len() as u64).max(1))
    }
}

/// Explains the number of the selected cell in one sentence. Returns `None` without an answer.
pub fn explain(time: &Time, cx: &Context<'_>) -> Option<String> {
    let (answer, spot) = (time.answer()?, time.selected()?);
    let map = &answer.all;
    let column = (spot.second - map.first_second) as usize;
    let rate = map.rate_hz;
    let host = &cx.shown.source.host;
    let of_all = cpus_of_scope(cx);
    let all_busy = match (of_all < u64::from(host.cpus_sampled()), of_all) {
        (true, 1) => "its thread had run all the time",
        (true, _) => "its threads had run all the time",
        (false, _) if host.sampled_cpus.is_empty() => "all CPUs had been busy",
        (false, _) => "all CPUs that are sampled had been busy",
    };
    let (whose, cpus) = match people(time, spot) {
        None => (String::new(), Some((of_all, all_busy))),
        Some(row @ HeatRow::Cpus { first, last }) => {
            let cpus = (first..=last).filter(|cpu| host.is_sampled(*cpu)).count() as u64;
            let busy = if cpus == 1 {
                "it had been busy"
            } else {
                "they had been busy"
            };
            (rows::name(&row), Some((cpus, busy)))
        }
        Some(row @ HeatRow::Thread { .. }) => (
            format!("thread {}", rows::name(&row)),
            Some((1, "it had run all the time")),
        ),
        Some(row) => (rows::name(&row), None),
    };
    // The largest number that is possible: a timer ticks `rate` times a second on each busy CPU.
    let most = cpus.filter(|_| rate > 0).map(|(cpus, busy)| {
        let most = u64::from(rate) * time.row_ns() * cpus / SECOND_NS;
        format!("; if {busy}, there would be about {most}, as each CPU has {rate} a second")
    });
    let whose = match whose.as_str() {
        "" => whose,
        whose => format!(" of {whose}"),
    };
    let from = clock(time, spot, answer.epoch_unix_ms);
    let all = "the map shows all that is kept, also what is before the window";
    if let Some(why) = not_counted(time, cx, spot) {
        return Some(format!("nothing was counted at {from}: {why}; {all}"));
    }
    Some(format!(
        "{}{whose} in the {} from {from}{}; {all}",
        metric::counted(cx, map.cell(column, spot.row)),
        span(time.row_ns() / 1_000_000),
        most.unwrap_or_default(),
    ))
}
