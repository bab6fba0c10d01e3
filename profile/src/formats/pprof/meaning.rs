//! What the values of a message mean: which value of each sample counts, in which unit, and how
//! often samples were taken.

use super::tables::{Tables, ValueType, damaged};
use crate::formats::FormatError;
use crate::{Info, Metric, Rates};

/// Which value of each sample is used, what it means, and the names of all of them.
pub(super) struct Meaning {
    /// Index of the value in each sample.
    pub(super) value: usize,
    /// Description of the recording, with metric and rate of that value.
    pub(super) info: Info,
    /// Names of all metrics of the file.
    pub(super) metrics: Vec<String>,
}

/// Chooses the value of the wanted metric, or else a default.
///
/// CPU profiles usually have two values, the number of samples and their time. Both say the same,
/// so they are offered as one metric, our own; every other type is a metric of its own.
///
/// 1. the wanted metric; an error if the file has none of that name
/// 2. samples of the CPU, if their time is a value too or there is no other type
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
    // The rate is 1 s / period, if the period is time on a CPU.
    let has_rate = is(&tables.period_type, b"cpu", b"nanoseconds")? && tables.period > 0;
    // Ticks on a CPU: if both number and time are there, the number is used.
    let ticks = ticks.filter(|_| time.is_some() || types.len() == 1);
    let mut choices: Vec<(usize, Metric)> = Vec::new();
    for (number, at) in types.iter().enumerate() {
        if ticks == Some(number) {
            choices.push((number, Metric::default()));
        } else if ticks.is_none() || time != Some(number) {
            let name = tables.text(at.name)?.to_string();
            let unit = tables.text(at.unit)?.to_string();
            // Metrics with the same name are one metric.
            if choices.iter().all(|(_, metric)| metric.name != name) {
                choices.push((number, Metric { name, unit }));
            }
        }
    }
    // Without a default in the file, the last type is it.
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
        // Rounded to nearest: 99 Hz are 10,101,010 ns.
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

/// Handles a comment. Our writer stores the description of the machine in comments.
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
