//! What a message's numbers mean: which value of its samples counts, in which
//! unit, how often they were taken.

use super::tables::{Tables, ValueType, damaged};
use crate::formats::FormatError;
use crate::{Info, Metric};

/// Which value of each sample counts, and what it means.
pub(super) fn meaning(tables: &mut Tables<'_>) -> Result<(usize, Info), FormatError> {
    let types = tables.types.clone();
    let is = |at: &ValueType, name: &[u8], unit: &[u8]| {
        Ok::<_, FormatError>(tables.bytes(at.name)? == name && tables.bytes(at.unit)? == unit)
    };
    // Ticks on a CPU: their number and not their time, if both are told.
    let mut ticks = None;
    let mut is_cpu = false;
    for (number, at) in types.iter().enumerate() {
        if is(at, b"samples", b"count")? {
            ticks.get_or_insert(number);
        }
        is_cpu |= is(at, b"cpu", b"nanoseconds")?;
    }
    // What a type without a default says: the last one.
    let default = types
        .iter()
        .position(|at| tables.default_type != 0 && at.name == tables.default_type);
    let last = types
        .len()
        .checked_sub(1)
        .ok_or_else(|| damaged("it says not what it counts"))?;
    let has_rate = is(&tables.period_type, b"cpu", b"nanoseconds")? && tables.period > 0;
    let (value, metric) = match ticks {
        Some(at) if is_cpu || types.len() == 1 => (at, Metric::default()),
        _ => {
            let at = default.unwrap_or(last);
            let name = tables.text(types[at].name)?.to_string();
            let unit = tables.text(types[at].unit)?.to_string();
            (at, Metric { name, unit })
        }
    };
    let rate_hz = match has_rate {
        // Not rounded down: 99 Hz are 10,101,010 ns.
        true => (1_000_000_000 + tables.period / 2) / tables.period.max(1),
        false => 0,
    };
    let mut info = Info {
        metric,
        rate_hz: u32::try_from(rate_hz).unwrap_or(0),
        epoch_unix_ms: (tables.time_ns / 1_000_000).min(i64::MAX as u64) as i64,
        ..Info::default()
    };
    for comment in std::mem::take(&mut tables.comments) {
        note(&mut info, &tables.text(comment)?);
    }
    Ok((value, info))
}

/// A comment, which may be what our writer told of the machine.
fn note(info: &mut Info, comment: &str) {
    match comment.split_once(": ") {
        Some(("host", text)) => info.host = text.into(),
        Some(("kernel", text)) => info.kernel = text.into(),
        Some(("arch", text)) => info.arch = text.into(),
        Some(("scope", text)) => info.scope = text.into(),
        Some(("cpus", text)) => info.cpus = text.parse().unwrap_or(0),
        Some(("lost samples", text)) => info.lost = text.parse().unwrap_or(0),
        _ if comment.starts_with("proftop ") => {}
        _ => info.notes.push(comment.into()),
    }
}
