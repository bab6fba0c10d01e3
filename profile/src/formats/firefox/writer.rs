//! Writes a selection as a document, one thread after the other.

mod probes;
mod tables;

use super::breakpad_id;
use crate::formats::FormatError;
use crate::formats::json::Text;
use crate::tables::{Module, Thread};
use crate::{Info, ModuleId, ProcessId, Selection, View};
use std::collections::{HashMap, HashSet};
use std::io::Write;
use tables::Tables;

/// Version of the processed format: see the module above.
const VERSION: u32 = 48;
/// Version of Firefox's own format, from which the processed format is derived.
const GECKO_VERSION: u32 = 28;

/// Categories with the viewer's colors. Functions refer to a category by its index in this list.
const CATEGORIES: &str = r#"[{"name":"Other","color":"grey","subcategories":["Other"]},
{"name":"User","color":"yellow","subcategories":["Other"]},
{"name":"Kernel","color":"orange","subcategories":["Other"]},
{"name":"JIT","color":"green","subcategories":["Other"]},
{"name":"Python","color":"yellow","subcategories":["Other"]}]"#;

/// Empty tables that the viewer requires.
const EMPTY_MARKERS: &str =
    r#"{"data":[],"name":[],"startTime":[],"endTime":[],"phase":[],"category":[],"length":0}"#;
const EMPTY_SYMBOLS: &str =
    r#"{"libIndex":[],"address":[],"name":[],"functionSize":[],"length":0}"#;

/// Writes the samples of a selection, by thread.
pub fn write(selection: &Selection, mut out: impl Write) -> Result<(), FormatError> {
    let samples = selection.timed();
    let begin_ns = selection.window().start_ns;
    let mut libs = Libs::default();
    write!(out, "{{\"meta\":{}", meta(&selection.info(), begin_ns))?;
    write!(out, ",\"pages\":[],\"counters\":[],\"profilerOverhead\":[]")?;
    write!(out, ",\"threads\":[")?;
    let (weight_type, scale) = weights(&selection.view().info().metric.unit);
    let mut heads: HashSet<ProcessId> = HashSet::new();
    let files = selection.view().files();
    let threads = samples.chunk_by(|a, b| a.trace.thread == b.trace.thread);
    for (number, samples) in threads.enumerate() {
        let comma = if number > 0 { ",\n" } else { "\n" };
        let mut tables = Tables::new(selection.view(), &files, &mut libs);
        let columns = tables.add_samples(selection, samples, begin_ns, scale);
        let thread = selection
            .view()
            .tables
            .processes
            .thread(samples[0].trace.thread);
        // The viewer attaches the tracks of a process to its one main thread.
        let is_main = heads.insert(thread.process);
        let head = thread_head(
            selection.view(),
            thread,
            is_main,
            samples[0].time_ns.saturating_sub(begin_ns),
        );
        write!(out, "{comma}{{{head},\"samples\":{{")?;
        columns.write(&mut out)?;
        write!(out, ",\"weightType\":\"{weight_type}\"}}")?;
        tables.write(&mut out)?;
        write!(out, "}}")?;
    }
    let is_first = samples.is_empty();
    probes::write(selection, begin_ns, is_first, &mut libs, &mut out)?;
    write!(out, "],\n\"libs\":[{}]}}", libs.told.join(",\n"))?;
    out.flush()?;
    Ok(())
}

/// Returns the viewer's type for weights of this unit, and the factor from our weights to theirs.
fn weights(unit: &str) -> (&'static str, f64) {
    match unit {
        "bytes" => ("bytes", 1.0),
        "nanoseconds" => ("tracing-ms", 1e-6),
        "microseconds" => ("tracing-ms", 1e-3),
        "milliseconds" => ("tracing-ms", 1.0),
        _ => ("samples", 1.0),
    }
}

/// Returns the properties of the whole document. Times of samples count from `startTime`, ms since
/// 1970. The interval is in ms; it is 1 if the rate is unknown.
fn meta(info: &Info, begin_ns: u64) -> String {
    let start = info.epoch_unix_ms as f64 + begin_ns as f64 / 1e6;
    let interval = match info.rates.first_hz {
        0 => 1.0,
        hz => 1000.0 / f64::from(hz),
    };
    let product = if info.scope.is_empty() {
        "proftop".into()
    } else {
        info.scope.clone()
    };
    let system = [
        info.host.name.as_str(),
        info.host.kernel.as_str(),
        info.host.arch.as_str(),
    ]
    .join(" ");
    let cpus = match info.host.cpus {
        0 => String::new(),
        cpus => format!(",\"logicalCPUs\":{cpus}"),
    };
    // "symbolicated" keeps the viewer from asking a server for names.
    format!(
        "{{\"preprocessedProfileVersion\":{VERSION},\"version\":{GECKO_VERSION},\
         \"product\":{},\"importedFrom\":\"proftop\",\"interval\":{interval},\
         \"startTime\":{start},\"processType\":0,\"stackwalk\":1,\"debug\":false,\
         \"symbolicated\":true,\"oscpu\":{}{cpus},\"markerSchema\":{},\
         \"sampleUnits\":{{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"µs\"}},\
         \"extensions\":{{\"id\":[],\"name\":[],\"baseURL\":[],\"length\":0}},\
         \"categories\":{CATEGORIES}}}",
        Text(&product),
        Text(system.trim()),
        probes::SCHEMA,
    )
}

/// Returns the head of a thread: its name and its start, which is its first sample. A thread of an
/// unknown process counts as a process of its own.
fn thread_head(view: &View, thread: &Thread, is_main: bool, begin_ns: u64) -> String {
    let process = view.tables.processes.get(thread.process);
    let (name, pid) = process.map_or((&thread.comm, thread.tid), |p| (&p.comm, p.pid));
    let begin = begin_ns as f64 / 1e6;
    format!(
        "\"name\":{},\"isMainThread\":{is_main},\"processName\":{},\"pid\":\"{pid}\",\
         \"tid\":{},\"processType\":\"default\",\"processStartupTime\":0,\
         \"processShutdownTime\":null,\"registerTime\":{begin},\"unregisterTime\":null,\
         \"pausedRanges\":[],\"markers\":{EMPTY_MARKERS},\"nativeSymbols\":{EMPTY_SYMBOLS}",
        Text(&thread.comm),
        Text(name),
        thread.tid,
    )
}

/// The files that contain code of the frames, shared by all threads.
#[derive(Default)]
struct Libs {
    numbers: HashMap<ModuleId, usize>,
    told: Vec<String>,
}

impl Libs {
    /// Returns the number of a module among the libraries; adds it if it is new.
    fn add(&mut self, id: ModuleId, module: &Module) -> usize {
        let next = self.told.len();
        let number = *self.numbers.entry(id).or_insert(next);
        if number == next {
            let code_id: String = module.build_id.iter().map(|b| format!("{b:02x}")).collect();
            let code_id = if code_id.is_empty() {
                "null".to_string()
            } else {
                format!("\"{code_id}\"")
            };
            let (name, path) = (Text(&module.name), Text(&module.path));
            self.told.push(format!(
                "{{\"arch\":\"\",\"name\":{name},\"path\":{path},\"debugName\":{name},\
                 \"debugPath\":{path},\"breakpadId\":\"{}\",\"codeId\":{code_id}}}",
                breakpad_id(&module.build_id)
            ));
        }
        number
    }
}
