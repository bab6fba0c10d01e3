//! The probes of a recording, in the form of snapshots.

use super::order::{ProbedFunction, Whose};
use super::shown::{
    Latency, OnCpu, Probe, ProbeCost, ProbeValue, Probes, Seen, Shares, Site, Stage, TREND_MAX,
    folded,
};
use profile::few;
use profile::probes::{CallTally, ProbeAbout, ProbeLog, ProbeRecord};
use profile::{TimeRange, View, Window};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The site of a tracepoint of the kernel in recordings.
const POINT: &str = "tracepoint";

const SECOND_NS: u64 = 1_000_000_000;

/// Number of values, stacks and threads of a probe that are shown.
const VALUES_SHOWN: usize = 8;
const STACKS_SHOWN: usize = 12;
const THREADS_SHOWN: usize = 6;

/// Returns the counts of probes in a time range. Those that were not in place then are listed
/// without counts.
pub fn recorded(view: &View, range: TimeRange) -> Probes {
    let (log, window) = (view.probes(), view.window(range));
    let probes = log.probes().iter().zip(1..);
    Probes {
        suggested: None,
        list: probes
            .map(|(record, number)| Probe {
                number,
                name: Arc::clone(&record.about().name),
                module: Arc::clone(&record.about().module),
                place: ProbedFunction::Named(Arc::clone(&record.about().name)),
                whose: match &record.about().whose {
                    words if words.is_empty() => Whose::Target,
                    words => Whose::Processes {
                        pids: Vec::new(),
                        words: Arc::clone(words),
                    },
                },
                stage: Stage::Recorded(record.end().map(|end| Arc::clone(&end.why))),
                seen: seen(log, record, range, window),
            })
            .collect(),
        ..Probes::default()
    }
}

/// Converts the counts; `None` for a probe that was not in place in that time.
fn seen(log: &ProbeLog, record: &ProbeRecord, range: TimeRange, window: Window) -> Option<Seen> {
    let about = record.about();
    let begin = about.placed_ns.max(window.start_ns);
    let end = record
        .end()
        .map_or(u64::MAX, |end| end.at_ns)
        .min(window.end_ns);
    // The last counts of a second may be later than the end of the samples.
    let tally = record.total(range);
    if end <= begin && tally.calls == 0 {
        return None;
    }
    let time = Duration::from_nanos(end.saturating_sub(begin).max(1));
    let per_second = |count: u64| count as f64 / time.as_secs_f64().max(1e-3);
    let hits = tally.calls.saturating_add(tally.others);
    Some(Seen {
        site: site(about),
        time,
        calls: tally.calls,
        returns: tally.returns,
        others: tally.others,
        calls_per_second: per_second(tally.calls),
        trend: trend(record, window),
        cost: ProbeCost {
            hit_ns: about.hit_ns,
            floor_ns: about.floor_ns,
            share: per_second(hits) * about.hit_ns as f64 / 1e9,
            share_max: 0.0,
        },
        latency: latency(&tally),
        on_cpu: Some(OnCpu {
            samples: tally.cpu_samples,
            cpu_ns: tally.cpu_ns,
        }),
        values: values(record, &tally),
        missed: tally.missed,
        values_lost: tally.values_lost,
        callers: callers(log, record, &tally, STACKS_SHOWN, folded),
        threads: threads(record, &tally),
        stacks_cut: super::cut_stacks(log, record, &tally),
        stacks_lost: tally.stacks_lost,
    })
}

fn site(about: &ProbeAbout) -> Site {
    Site {
        address: about.address,
        language: Arc::clone(&about.language),
        copies: about.copies as usize,
        breakpoints: about.breakpoints as usize,
        is_stepped: about.is_stepped || about.breakpoints > about.copies,
        is_timed: about.is_timed,
        repeats: about.repeats,
        is_point: &*about.site == POINT,
        arguments: Vec::new(),
    }
}

/// Number of calls in each of the last seconds of the window in which it was in place.
fn trend(record: &ProbeRecord, window: Window) -> Vec<u32> {
    let mut calls: BTreeMap<u64, u64> = BTreeMap::new();
    for (second, tally) in record.counts() {
        *calls.entry(second).or_default() += tally.calls;
    }
    let first = record.about().placed_ns.max(window.start_ns) / SECOND_NS;
    let end = record.end().map_or(u64::MAX, |end| end.at_ns);
    // The second in which it ended, if anything was counted there.
    let last = end.min(window.end_ns.saturating_sub(1)) / SECOND_NS;
    let Some(newest) = calls.range(first..=last.max(first)).next_back() else {
        return Vec::new();
    };
    let last = *newest.0;
    let from = first.max(last.saturating_sub(TREND_MAX as u64 - 1));
    let each = (from..=last).map(|second| calls.get(&second).copied().unwrap_or(0));
    each.map(|calls| u32::try_from(calls).unwrap_or(u32::MAX))
        .collect()
}

/// Quantiles of durations; `None` if no call has ended.
pub fn latency(tally: &CallTally) -> Option<Latency> {
    Some(Latency {
        p50_ns: tally.quantile_ns(0.5)?,
        p90_ns: tally.quantile_ns(0.9)?,
        p99_ns: tally.quantile_ns(0.99)?,
        max_ns: tally.max_ns,
        sum_ns: tally.sum_ns,
        buckets: tally
            .buckets
            .iter()
            .map(|((from, below), calls)| (*from, *below, *calls))
            .collect(),
    })
}

/// The values that were read, most frequent first.
fn values(record: &ProbeRecord, tally: &CallTally) -> Vec<ProbeValue> {
    let about = record.about().values.iter().enumerate();
    about
        .map(|(slot, about)| {
            let (top, others) = top_values(record, tally, slot, VALUES_SHOWN);
            ProbeValue {
                expression: Arc::clone(&about.text),
                register: Arc::clone(&about.register),
                top,
                others,
                unreadable: tally.values.get(slot).map_or(0, |value| value.unreadable),
            }
        })
        .collect()
}

/// The most frequent texts of a value, and the number of all others.
pub fn top_values(
    record: &ProbeRecord,
    tally: &CallTally,
    slot: usize,
    count: usize,
) -> (Vec<(Arc<str>, u64)>, u64) {
    let texts = tally
        .values
        .get(slot)
        .into_iter()
        .flat_map(|value| &value.texts);
    let shown = texts.filter_map(|(text, count)| {
        let text = record.texts().get(*text as usize)?;
        Some((Arc::clone(text), *count))
    });
    let mut top: Vec<(Arc<str>, u64)> = shown.collect();
    few::sort_by(&mut top, |a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let others = top.iter().skip(count).map(|(_, count)| count).sum();
    top.truncate(count);
    (top, others)
}

/// The most frequent stacks; those with the same names are merged. `fold` may shorten them.
pub fn callers(
    log: &ProbeLog,
    record: &ProbeRecord,
    tally: &CallTally,
    count: usize,
    fold: impl Fn(Vec<Arc<str>>) -> Vec<Arc<str>>,
) -> Shares {
    let mut by_names: BTreeMap<Vec<Arc<str>>, u64> = BTreeMap::new();
    let mut all = 0u64;
    for (stack, count) in &tally.callers {
        all = all.saturating_add(*count);
        if let Some(frames) = record.stacks().get(*stack as usize) {
            let names = frames.iter().map(|frame| log.frame_name(*frame));
            *by_names.entry(fold(names.collect())).or_default() += count;
        }
    }
    let rows = by_names
        .into_iter()
        .map(|(names, count)| (names.into(), count));
    top(rows, count, all)
}

/// Returns the threads that call most, each with the name of its process.
fn threads(record: &ProbeRecord, tally: &CallTally) -> Shares {
    let rows = tally.threads.iter().filter_map(|(thread, count)| {
        let thread = record.threads().get(*thread as usize)?;
        let who: Arc<str> = format!("{}[{}]", thread.comm, thread.tid).into();
        Some((Arc::from([who]), *count))
    });
    let all = tally.threads.values().sum();
    match top(rows, THREADS_SHOWN, all) {
        threads if threads.rows.len() < 2 => Shares::default(),
        threads => threads,
    }
}

/// The most frequent rows, falling; equally frequent rows are sorted by name.
fn top(rows: impl Iterator<Item = (Arc<[Arc<str>]>, u64)>, count: usize, all: u64) -> Shares {
    let mut rows: Vec<_> = rows.collect();
    few::sort_by(&mut rows, |a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    rows.truncate(count);
    Shares { rows, all }
}
