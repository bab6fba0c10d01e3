//! Writes the counts of probes as markers of an extra thread: one marker for each second of each
//! probe.

use super::tables::Tables;
use super::{EMPTY_SYMBOLS, Libs};
use crate::Selection;
use crate::formats::FormatError;
use crate::formats::json::Text;
use foldhash::{HashMap, HashMapExt as _};
use std::io::Write;

const SECOND_NS: u64 = 1_000_000_000;

/// Tells the viewer which fields of such a marker to show.
pub(super) const SCHEMA: &str = r#"[{"name":"Probe","display":["marker-chart","marker-table","timeline-overview"],
"chartLabel":"{marker.name}: {marker.data.calls} calls, p99 {marker.data.p99}",
"tableLabel":"{marker.data.calls} calls, p50 {marker.data.p50}, p99 {marker.data.p99}",
"data":[{"key":"calls","label":"Calls","format":"integer"},
{"key":"p50","label":"p50","format":"nanoseconds"},
{"key":"p99","label":"p99","format":"nanoseconds"},
{"key":"max","label":"Longest","format":"nanoseconds"},
{"key":"time","label":"Time of all calls","format":"nanoseconds"}]}]"#;

/// Writes the extra thread, if there were probes.
pub(super) fn write(
    selection: &Selection,
    begin_ns: u64,
    is_first: bool,
    libs: &mut Libs,
    out: &mut impl Write,
) -> Result<(), FormatError> {
    let log = selection.view().probes();
    if log.is_empty() {
        return Ok(());
    }
    let files = HashMap::new();
    let mut tables = Tables::new(selection.view(), &files, libs);
    let mut data = Vec::new();
    let mut names = Vec::new();
    let mut times = Vec::new();
    for probe in log.probes() {
        let name = tables.string(&probe.about().name);
        for (second, tally) in probe.seconds(selection.query().window) {
            let [p50, p99] = [0.5, 0.99].map(|share| tally.quantile_ns(share).unwrap_or(0));
            data.push(format!(
                "{{\"type\":\"Probe\",\"calls\":{},\"p50\":{p50},\"p99\":{p99},\"max\":{},\"time\":{}}}",
                tally.calls, tally.max_ns, tally.sum_ns
            ));
            names.push(name);
            times.push(second.saturating_mul(SECOND_NS).saturating_sub(begin_ns) as f64 / 1e6);
        }
    }
    let list = |texts: Vec<String>| texts.join(",");
    let count = names.len();
    let comma = if is_first { "" } else { "," };
    let (starts, ends) = (
        list(times.iter().map(f64::to_string).collect()),
        list(times.iter().map(|ms| (ms + 1000.0).to_string()).collect()),
    );
    // Phase 1 is an interval.
    write!(
        out,
        "{comma}\n{{\"name\":{},\"isMainThread\":true,\"processName\":{},\"pid\":\"0\",\"tid\":0,\
         \"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,\
         \"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[],\
         \"markers\":{{\"data\":[{}],\"name\":[{}],\"startTime\":[{starts}],\"endTime\":[{ends}],\
         \"phase\":[{}],\"category\":[{}],\"length\":{count}}},\
         \"nativeSymbols\":{EMPTY_SYMBOLS},\
         \"samples\":{{\"stack\":[],\"time\":[],\"weight\":null,\"weightType\":\"samples\",\"length\":0}}",
        Text("probes"),
        Text("probes"),
        list(data),
        list(names.iter().map(|name| name.to_string()).collect()),
        vec!["1"; count].join(","),
        vec!["0"; count].join(","),
    )?;
    tables.write(out)?;
    write!(out, "}}")?;
    Ok(())
}
