//! What a message's numbers mean: which value of its samples counts, in which
//! unit, how often they were taken.

use super::tables::{Tables, ValueType, damaged};
use crate::formats::FormatError;
use crate::{Info, Metric, Rates};

/// Which value of each sample counts, what it means, and what all of them are called.
pub(super) struct Meaning {
    pub(super) value: usize,
    pub(super) info: Info,
    pub(super) metrics: Vec<String>,
}

/// Of the values, that of the metric that is wanted; else what is usual.
///
/// Profiles of a CPU have two values as a rule, how many samples and how much time.
/// Both say the same, so they are offered as one metric, our own; other types are one
/// each.
///
/// 1. the wanted metric, if one is: an error if there is none of its name
/// 2. samples of the CPU, where time is told too or there is no other type
/// 3. the default that the file names
/// 4. the last type, as `pprof` does
pub(super) fn meaning(
    tables: &mut Tables<'_>,
    wanted: Option<&str>,
) -> Result<Meaning, FormatError> {
    let types = tables.types.clone();
    if types.is_empty() {
        return Err(damaged("it says not what it counts"));
    }
    let is = |at: &ValueType, name: &[u8], unit: &[u8]| {
        Ok::<_, FormatError>(tables.bytes(at.name)? == name && tables.bytes(at.unit)? == unit)
    };
    let mut ticks = None;
    let mut time = None;
    for (number, at) in types.iter().enumerate() {
        if is(at, b"samples", b"count")? {
            ticks.get_or_insert(number);
        }
        if is(at, b"cpu", b"nanoseconds")? {
            time.get_or_insert(number);
        }
    }
    // The rate is 1 s / period, if the period is one of time on a CPU.
    let has_rate = is(&tables.period_type, b"cpu", b"nanoseconds")? && tables.period > 0;
    // Ticks on a CPU: their number and not their time, if both are told.
    let ticks = ticks.filter(|_| time.is_some() || types.len() == 1);
    let mut choices: Vec<(usize, Metric)> = Vec::new();
    for (number, at) in types.iter().enumerate() {
        if ticks == Some(number) {
            choices.push((number, Metric::default()));
        } else if ticks.is_none() || time != Some(number) {
            let name = tables.text(at.name)?.to_string();
            let unit = tables.text(at.unit)?.to_string();
            // One name, one metric.
            if choices.iter().all(|(_, metric)| metric.name != name) {
                choices.push((number, Metric { name, unit }));
            }
        }
    }
    // What a type without a default says: the last one.
    let default = types
        .iter()
        .position(|at| tables.default_type != 0 && at.name == tables.default_type);
    let usual = ticks.or(default).unwrap_or(types.len() - 1);
    let usual = choices
        .iter()
        .find(|(number, _)| *number == usual)
        .or(choices.last());
    let metrics: Vec<String> = choices
        .iter()
        .map(|(_, metric)| metric.name.clone())
        .collect();
    let chosen = match wanted {
        None => usual,
        Some(wanted) => Some(
            choices
                .iter()
                .find(|(_, metric)| metric.name == wanted)
                .ok_or_else(|| FormatError::no_metric(wanted, &metrics))?,
        ),
    };
    let (value, metric) = chosen.cloned().expect("there is a type");
    let rate_hz = if has_rate {
        // Not rounded down: 99 Hz are 10,101,010 ns.
        (1_000_000_000 + tables.period / 2) / tables.period.max(1)
    } else {
        0
    };
    let mut info = Info {
        metric,
        rates: Rates::always(u32::try_from(rate_hz).unwrap_or(0)),
        epoch_unix_ms: (tables.time_ns / 1_000_000).min(i64::MAX as u64) as i64,
        ..Info::default()
    };
    for comment in std::mem::take(&mut tables.comments) {
        note(&mut info, &tables.text(comment)?);
    }
    Ok(Meaning {
        value,
        info,
        metrics,
    })
}

/// A comment, which may be what our writer told of the machine.
fn note(info: &mut Info, comment: &str) {
    match comment.split_once(": ") {
        Some(("host", text)) => info.host.name = text.into(),
        Some(("kernel", text)) => info.host.kernel = text.into(),
        Some(("arch", text)) => info.host.arch = text.into(),
        Some(("scope", text)) => info.scope = text.into(),
        Some(("cpus", text)) => info.host.cpus = text.parse().unwrap_or(0),
        Some(("lost samples", text)) => info.lost = text.parse().unwrap_or(0),
        _ if comment.starts_with("proftop ") => {}
        _ => info.notes.push(comment.into()),
    }
}
