//! The columns of each table. Names and types are those of docs/fleet.md.

use super::Known;
use crate::config::Labels;
use crate::window::{Frame, Service, Window};
use arrow::array::{
    ArrayRef, BinaryBuilder, Float32Array, Int64Array, ListBuilder, RecordBatch, StringBuilder,
    TimestampMillisecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array, UInt64Builder,
};
use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use std::io;
use std::iter::once;
use std::sync::Arc;

/// The time zone of a table's times.
const UTC: &str = "UTC";

fn batch(columns: Vec<(&str, ArrayRef)>) -> io::Result<RecordBatch> {
    RecordBatch::try_from_iter(columns).map_err(io::Error::other)
}

fn texts<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    // The buffer has room for a byte, so that it has an address in any case. Where all texts are empty
    // it would have none, and glibc compares them with AVX-512 from an address at which there is
    // nothing: it reads no bytes there, but the CPU takes ten times as long.
    let mut texts = StringBuilder::with_capacity(values.size_hint().0, 1);
    values.for_each(|it| texts.append_value(it));
    Arc::new(texts.finish())
}

fn times(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(TimestampMillisecondArray::from_iter_values(values).with_timezone(UTC))
}

/// A row of samples.
struct Row<'a> {
    window: &'a Window,
    service: &'a Service,
    stack: u64,
    value: u64,
}

/// Returns the texts of a service by which rows are sorted first. Its container is not one of them, as
/// containers of a service mostly have the same stacks.
fn texts_of(service: &Service) -> [&str; 2] {
    [&service.name, &service.version]
}

/// Makes a row for each window, service and stack, sorted by [`super::SORTED_BY`]. All rows are
/// of one host.
pub fn samples(windows: &[Window], labels: &Labels) -> io::Result<RecordBatch> {
    // Only the services of windows are compared by their texts: comparing those of all rows took half of
    // the time of writing.
    let mut services: Vec<(&Window, &Service)> = Vec::new();
    for window in windows {
        services.extend(window.services.iter().map(|it| (window, it)));
    }
    services.sort_by(|a, b| texts_of(a.1).cmp(&texts_of(b.1)));
    let mut rows: Vec<Row> = Vec::new();
    for same in services.chunk_by(|a, b| texts_of(a.1) == texts_of(b.1)) {
        let first = rows.len();
        for (window, service) in same {
            rows.extend(service.samples.iter().map(|(stack, value)| Row {
                window,
                service,
                stack: window.stacks[*stack as usize].id,
                value: *value,
            }));
        }
        rows[first..].sort_by_key(|it| (it.stack, it.window.begin_ms));
    }
    let of_window = |number: fn(&Window) -> u64| {
        UInt64Array::from_iter_values(rows.iter().map(|it| number(it.window)))
    };
    let duration = rows.iter().map(|it| it.window.duration_ms as u32);
    batch(vec![
        (
            "begin_ms",
            Arc::new(Int64Array::from_iter_values(
                rows.iter().map(|it| it.window.begin_ms),
            )),
        ),
        ("dur_ms", Arc::new(UInt32Array::from_iter_values(duration))),
        ("host", texts(rows.iter().map(|it| &*it.window.host.name))),
        ("service", texts(rows.iter().map(|it| &*it.service.name))),
        ("namespace", texts(rows.iter().map(|_| &*labels.namespace))),
        ("version", texts(rows.iter().map(|it| &*it.service.version))),
        (
            "container",
            texts(rows.iter().map(|it| &*it.service.container)),
        ),
        ("event", texts(rows.iter().map(|it| &*it.window.event))),
        (
            "stack_id",
            Arc::new(UInt64Array::from_iter_values(
                rows.iter().map(|it| it.stack),
            )),
        ),
        (
            "value",
            Arc::new(UInt64Array::from_iter_values(
                rows.iter().map(|it| it.value),
            )),
        ),
        ("period_ns", Arc::new(of_window(|it| it.period_ns))),
        (
            "weight",
            Arc::new(Float32Array::from_iter_values(
                rows.iter().map(|it| it.window.weight.0),
            )),
        ),
    ])
}

/// Makes a row for each stack that the day's files do not have yet, with its frames innermost
/// first. Stacks with common outer frames are adjacent, which compresses best.
pub fn stacks(windows: &[Window], written: &Known) -> io::Result<RecordBatch> {
    let mut known = HashSet::new();
    let mut rows: Vec<(Vec<u64>, u64)> = Vec::new();
    for window in windows {
        for stack in &window.stacks {
            if written.has_stack(stack) || !known.insert(stack.id) {
                continue;
            }
            let frames = stack.frames.iter().rev();
            let outermost_first = frames.map(|it| window.frames[*it as usize].id).collect();
            rows.push((outermost_first, stack.id));
        }
    }
    rows.sort_unstable();
    let mut ids = UInt64Builder::new();
    let mut lists = ListBuilder::new(UInt64Builder::new());
    for (frames, id) in rows {
        ids.append_value(id);
        for frame in frames.iter().rev() {
            lists.values().append_value(*frame);
        }
        lists.append(true);
    }
    batch(vec![
        ("stack_id", Arc::new(ids.finish())),
        ("frames", Arc::new(lists.finish())),
    ])
}

/// Makes rows for each frame that the day's files do not have yet, sorted by file and address, with
/// a row for each function that is inlined there: 0 is the function that contains the code, 1 a
/// function that is inlined in it, and so on. If one window has a name and another does not, the
/// name is used.
pub fn frames(windows: &[Window], written: &Known) -> io::Result<RecordBatch> {
    let all = windows.iter().flat_map(|it| &it.frames);
    let mut best: HashMap<u64, &Frame> = HashMap::new();
    for frame in all.filter(|it| !written.has_frame(it)) {
        let known = best.entry(frame.id).or_insert(frame);
        if frame.functions.len() > known.functions.len() {
            *known = frame;
        }
    }
    let mut frames: Vec<&Frame> = best.into_values().collect();
    frames.sort_by_key(|it| (&it.module, &it.build_id, it.address, it.id));
    let mut ids = Vec::new();
    let mut build_ids = BinaryBuilder::new();
    let mut offsets = Vec::new();
    let [mut modules, mut functions, mut files] = [(); 3].map(|()| StringBuilder::new());
    let (mut lines, mut depths, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
    for frame in frames {
        let mut add = |function: &str, file: &str, line, depth: usize| {
            ids.push(frame.id);
            build_ids.append_value(&frame.build_id);
            offsets.push(frame.address);
            modules.append_value(&frame.module);
            functions.append_value(function);
            files.append_value(file);
            lines.push(line);
            depths.push(depth.min(usize::from(u8::MAX)) as u8);
            kinds.push(frame.kind as u8);
        };
        for (depth, function) in frame.functions.iter().rev().enumerate() {
            add(&function.name, &function.file, function.line, depth);
        }
        if frame.functions.is_empty() {
            add("", "", 0, 0);
        }
    }
    batch(vec![
        ("frame_id", Arc::new(UInt64Array::from(ids))),
        ("build_id", Arc::new(build_ids.finish())),
        ("file_off", Arc::new(UInt64Array::from(offsets))),
        ("module", Arc::new(modules.finish())),
        ("function", Arc::new(functions.finish())),
        ("file", Arc::new(files.finish())),
        ("line", Arc::new(UInt32Array::from(lines))),
        ("inline_depth", Arc::new(UInt8Array::from(depths))),
        ("kind", Arc::new(UInt8Array::from(kinds))),
    ])
}

/// Makes a row with the host in the time of the windows.
pub fn hosts(windows: &[Window], lost_windows: u64) -> io::Result<RecordBatch> {
    let ends = windows.iter().map(|it| it.begin_ms + it.duration_ms as i64);
    let begin = windows.iter().map(|it| it.begin_ms).min();
    let (begin, end) = (begin.unwrap_or(0), ends.max().unwrap_or(0));
    let last = windows
        .last()
        .ok_or_else(|| io::Error::other("there is no window"))?;
    let recorded: u64 = windows.iter().map(|it| it.duration_ms).sum();
    let lost_samples: u64 = windows.iter().map(|it| it.lost_samples).sum();
    batch(vec![
        ("host", texts(once(&*last.host.name))),
        ("first_seen", times(once(begin))),
        ("last_seen", times(once(end))),
        ("begin_ms", Arc::new(Int64Array::from(vec![begin]))),
        ("end_ms", Arc::new(Int64Array::from(vec![end]))),
        ("recorded_ms", Arc::new(UInt64Array::from(vec![recorded]))),
        (
            "cores",
            Arc::new(UInt16Array::from(vec![last.host.cpus.min(65_535) as u16])),
        ),
        ("kernel", texts(once(&*last.host.kernel))),
        ("arch", texts(once(&*last.host.arch))),
        ("agent_version", texts(once(env!("CARGO_PKG_VERSION")))),
        (
            "rate_hz",
            Arc::new(UInt16Array::from(vec![last.rate_hz.min(65_535) as u16])),
        ),
        (
            "lost_samples",
            Arc::new(UInt64Array::from(vec![lost_samples])),
        ),
        (
            "lost_windows",
            Arc::new(UInt32Array::from(vec![
                lost_windows.min(u32::MAX.into()) as u32
            ])),
        ),
    ])
}
