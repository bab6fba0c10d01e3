//! Converts a probe to its form in snapshots.

use super::callers::Names;
use super::entry::{Entry, EntryState, Watched};
use crate::probes::expression::Expression;
use crate::probes::shown::{Latency, Probe, ProbeCost, ProbeValue, Seen, Shares, Site, Stage};
use probe::call::{Reading, Texts};
use profile::few;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use symbolize::sanitize;
use symbolize::sites::{Class, Language};

/// Number of values of each expression that are shown.
const VALUES_SHOWN: usize = 8;

/// Converts a probe of the list as it is at `now`. Its name is the ordered one until its function
/// was found.
pub fn of_entry(entry: &Entry, names: &Names, now: Instant) -> Probe {
    let watched = entry.watched();
    // What is read at the moment of placing does not count yet.
    let told = watched.filter(|watched| watched.is_looked_at || watched.gone.is_some());
    let seen = told.and_then(|watched| of_watched(watched, names));
    Probe {
        number: entry.number,
        name: match watched {
            // For a pattern, the function that matches.
            Some(watched) => watched.found.name.as_str().into(),
            None => Arc::clone(entry.shown()),
        },
        module: watched.map_or_else(Arc::default, |watched| watched.found.module.as_str().into()),
        place: entry.place.clone(),
        whose: entry.whose.clone(),
        stage: match &entry.state {
            EntryState::Sought if entry.missing_since.is_some() => Stage::Missing,
            EntryState::Sought => Stage::Sought,
            EntryState::InPlace(watched) => Stage::InPlace {
                left: watched.expires.saturating_duration_since(now),
            },
            EntryState::Gone(past) => Stage::Gone(Arc::clone(&past.why)),
        },
        seen,
    }
}

/// Converts the counts; `None` before the first reading.
fn of_watched(watched: &Watched, names: &Names) -> Option<Seen> {
    let reading = watched.reading.as_ref()?;
    let found = &watched.found;
    let is_stepped = found.sites.iter().any(|site| site.class == Class::Stepped);
    Some(Seen {
        site: Site {
            address: found.address,
            language: found.language.label().into(),
            copies: found.copies(),
            breakpoints: found.copies() + found.return_sites,
            is_point: found.point.is_some(),
            arguments: found
                .point
                .iter()
                .flat_map(|point| &point.arguments)
                .map(|name| symbolize::sanitize(name.as_bytes()).as_ref().into())
                .collect(),
            is_stepped: is_stepped || found.return_sites > 0,
            is_timed: watched.is_timed,
            repeats: found.sites.iter().any(|site| site.repeats),
        },
        time: watched.time(),
        calls: reading.calls,
        returns: reading.returns,
        others: reading.others,
        calls_per_second: watched.calls_per_second(),
        trend: watched.trend(),
        cost: ProbeCost {
            hit_ns: watched.guard.cost_ns,
            floor_ns: watched.guard.floor_ns,
            share: watched.hits_per_second() * watched.guard.cost_ns as f64 / 1e9,
            share_max: watched.limits.share(),
        },
        latency: latency(reading),
        // Samples are counted elsewhere.
        on_cpu: None,
        values: found
            .values
            .iter()
            .enumerate()
            .map(|(slot, expression)| {
                value(slot, expression, found.language, reading, &watched.texts)
            })
            .collect(),
        missed: reading.missed,
        values_lost: reading.values_lost,
        callers: watched.callers.shares(names),
        threads: match watched.callers.threads() {
            // A single thread is not listed, as the process already shows it.
            threads if threads.rows.len() < 2 => Shares::default(),
            threads => threads,
        },
        stacks_cut: watched.callers.cut,
        stacks_lost: reading.stacks_lost + watched.callers.lost,
    })
}

/// Quantiles of the durations of calls, in nanoseconds; `None` if none has ended. They come from a
/// histogram, so each is only as exact as its bucket is wide.
fn latency(reading: &Reading) -> Option<Latency> {
    let quantile = |share| reading.quantile_ns(share);
    Some(Latency {
        p50_ns: quantile(0.5)?,
        p90_ns: quantile(0.9)?,
        p99_ns: quantile(0.99)?,
        max_ns: reading.longest_ns(),
        sum_ns: reading.sum_ns,
        buckets: reading.buckets().collect(),
    })
}

/// The most frequent values of an expression; texts and numbers are made safe to print.
fn value(
    slot: usize,
    expression: &Expression,
    language: Language,
    reading: &Reading,
    texts: &Texts,
) -> ProbeValue {
    let as_text = texts
        .texts
        .iter()
        .filter(|text| text.slot == slot)
        .map(|text| {
            let cut = if text.is_cut { "…" } else { "" };
            let shown = format!("\"{}\"{cut}", sanitize(&text.bytes));
            (Arc::from(shown), text.count)
        });
    let numbers = texts
        .numbers
        .iter()
        .filter(|number| number.slot == slot)
        .map(|number| {
            let shown = expression.show(number.number);
            (Arc::from(shown), number.count)
        });
    // Two numbers may have the same text: variants of an enumeration, texts that are not UTF-8.
    let mut counts: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    for (shown, count) in as_text.chain(numbers) {
        *counts.entry(shown).or_default() += count;
    }
    let mut top: Vec<(Arc<str>, u64)> = counts.into_iter().collect();
    few::sort_by(&mut top, |a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let others = top.iter().skip(VALUES_SHOWN).map(|(_, count)| count).sum();
    top.truncate(VALUES_SHOWN);
    ProbeValue {
        expression: expression.text.as_str().into(),
        register: expression.register(language).into(),
        top,
        others,
        unreadable: reading.unreadable.get(slot).copied().unwrap_or(0),
    }
}
