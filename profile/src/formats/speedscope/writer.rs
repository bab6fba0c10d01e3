//! Writes a selection as a document.

use super::SCHEMA;
use crate::few;
use crate::formats::FormatError;
use crate::formats::json::Text;
use crate::query::{CallTree, Cancel, Direction, GroupBy, NodeKind};
use crate::{Info, Role, Selection};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io::Write;

/// The stacks of one thread name as numbers of frames, each with its samples.
type Stacks = Vec<(Vec<u32>, u64)>;

/// Writes the stacks of a selection, grouped by thread or by thread name.
pub fn write(selection: &Selection, by: GroupBy, mut out: impl Write) -> Result<(), FormatError> {
    // A call tree merges equal stacks of a thread, so that each is written once.
    let tree = selection
        .tree(Direction::TopDown, by, &Cancel::new())
        .expect("nobody cancels it");
    let mut frames = Frames::default();
    let mut by_thread: BTreeMap<u32, Stacks> = BTreeMap::new();
    for (path, samples) in tree.stacks() {
        let Some((NodeKind::Group(thread), path)) = path.split_first() else {
            continue;
        };
        let path = path.iter().map(|kind| frames.add(&tree, *kind)).collect();
        by_thread.entry(*thread).or_default().push((path, samples));
    }
    let mut threads: Vec<(String, u64, Stacks)> = by_thread
        .into_iter()
        .map(|(thread, stacks)| {
            let name = tree.group_name(thread).map(|name| name.to_string());
            let samples = stacks.iter().map(|(_, samples)| samples).sum();
            (name.unwrap_or_default(), samples, stacks)
        })
        .collect();
    // Threads with most samples first, as the viewer shows the first one; then by name, so that the
    // same selection gives the same bytes.
    few::sort_by(&mut threads, |a, b| {
        (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0))
    });

    let info = &selection.info();
    let version = env!("CARGO_PKG_VERSION");
    let rate = match Scale::of(info).unit {
        // The rate lets our reader convert times back to counts.
        "milliseconds" => format!(" at {} Hz", info.rates.first_hz),
        _ => String::new(),
    };
    write!(
        out,
        "{{\"$schema\":\"{SCHEMA}\",\"exporter\":\"proftop {version}{rate}\""
    )?;
    write!(out, ",\"name\":{}", Text(&title(info)))?;
    write!(out, ",\"activeProfileIndex\":0,\"shared\":{{\"frames\":[")?;
    for (number, frame) in frames.told.iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        write!(out, "{comma}\n{frame}")?;
    }
    write!(out, "]}},\"profiles\":[")?;
    let scale = Scale::of(info);
    for (number, (name, samples, stacks)) in threads.iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        write!(
            out,
            "{comma}\n{{\"type\":\"sampled\",\"name\":{}",
            Text(name)
        )?;
        write!(out, ",\"unit\":\"{}\",\"startValue\":0", scale.unit)?;
        write!(out, ",\"endValue\":{},\"samples\":[", scale.value(*samples))?;
        list(&mut out, stacks, |(path, _)| format!("{path:?}"))?;
        write!(out, "],\"weights\":[")?;
        list(&mut out, stacks, |(_, samples)| scale.value(*samples))?;
        write!(out, "]}}")?;
    }
    writeln!(out, "]}}")?;
    out.flush()?;
    Ok(())
}

/// Writes the inside of a JSON list.
fn list<T>(
    out: &mut impl Write,
    things: &[T],
    text: impl Fn(&T) -> String,
) -> Result<(), FormatError> {
    for (number, thing) in things.iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        write!(out, "{comma}{}", text(thing))?;
    }
    Ok(())
}

/// Returns the document's title: what was sampled and where, as far as known.
fn title(info: &Info) -> String {
    let words = [info.scope.as_str(), "on", info.host.name.as_str()];
    match (info.scope.is_empty(), info.host.name.is_empty()) {
        (false, false) => words.join(" "),
        (false, true) => info.scope.clone(),
        (true, false) => info.host.name.clone(),
        (true, true) => "proftop".into(),
    }
}

/// The conversion from counts to the unit of the viewer's axis.
struct Scale {
    unit: &'static str,
    /// Number of units that one sample stands for.
    each: f64,
}

impl Scale {
    /// Samples of the CPU clock become milliseconds if their rate is known, as times are easier to
    /// read than counts. Other units that the viewer has are kept.
    fn of(info: &Info) -> Self {
        let (unit, each) = match (&*info.metric.unit, info.rates.first_hz) {
            ("samples", hz @ 1..) if info.metric.name == "cpu" => {
                ("milliseconds", 1000.0 / f64::from(hz))
            }
            ("nanoseconds", _) => ("nanoseconds", 1.0),
            ("bytes", _) => ("bytes", 1.0),
            _ => ("none", 1.0),
        };
        Self { unit, each }
    }

    /// Converts a count to that unit, as JSON.
    fn value(&self, samples: u64) -> String {
        format!("{}", samples as f64 * self.each)
    }
}

/// The functions, each once, as JSON.
#[derive(Default)]
struct Frames {
    numbers: HashMap<NodeKind, u32>,
    told: Vec<String>,
}

impl Frames {
    fn add(&mut self, tree: &CallTree, kind: NodeKind) -> u32 {
        let next = self.told.len() as u32;
        let number = *self.numbers.entry(kind).or_insert(next);
        if number == next {
            self.told.push(frame(tree, kind));
        }
        number
    }
}

/// Writes a function as JSON: its name, and its source location as far as known.
fn frame(tree: &CallTree, kind: NodeKind) -> String {
    let mut json = format!("{{\"name\":{}", Text(&tree.name(kind)));
    if let NodeKind::Function { id, .. } = kind {
        let function = tree.function(id);
        // The viewer colors by file; for a function without a file the module takes its place.
        let file = match (&function.file, function.role) {
            (Some(file), _) => Some(file),
            (None, Role::Function) => Some(&function.module_path),
            _ => None,
        };
        if let Some(file) = file.filter(|file| !file.is_empty()) {
            json += &format!(",\"file\":{}", Text(file));
        }
        if function.line > 0 {
            json += &format!(",\"line\":{}", function.line);
        }
    }
    json + "}"
}
