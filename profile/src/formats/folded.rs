//! *Folded stacks*: one line for each stack, `comm;outermost;…;innermost COUNT`, the input of flame
//! graph tools.
//!
//! Kernel frames end in `_[k]`, inlined ones in `_[i]`, frames of code made at run time in `_[j]`.
//! A stack that was cut begins with `[stopped: cause]` after the name.

use super::FormatError;
use super::wire::clean;
use crate::query::{CallTree, Cancel, Direction, GroupBy, NodeKind};
use crate::{
    Ending, Frame, FrameKind, Info, Limits, Metric, ModuleId, NameState, NewSample, ProcessId,
    Role, Selection, Store,
};
use std::collections::HashMap;
use std::io::{BufRead, Write};

/// Writes the stacks of a selection, sorted and grouped by thread name.
///
/// There is one line for each stack; times, addresses and lines of source are lost.
pub fn write(selection: &Selection, out: impl Write) -> Result<(), FormatError> {
    write_by(selection, GroupBy::Comm, out)
}

/// Writes the stacks of a selection, sorted. The first step of each line is the thread,
/// the process or the name of threads, as `by` says.
pub fn write_by(
    selection: &Selection,
    by: GroupBy,
    mut out: impl Write,
) -> Result<(), FormatError> {
    let tree = selection
        .tree(Direction::TopDown, by, &Cancel::new())
        .expect("nobody cancels it");
    let mut names: HashMap<NodeKind, String> = HashMap::new();
    let mut line = String::new();
    let mut lines: Vec<(Box<str>, u64)> = tree
        .stacks()
        .map(|(path, samples)| {
            line.clear();
            for (depth, kind) in path.into_iter().enumerate() {
                // The depth decides, not the text: a name may be empty.
                if depth > 0 {
                    line.push(';');
                }
                let name = names.entry(kind).or_insert_with(|| step(&tree, kind));
                line.push_str(name);
            }
            if line.starts_with('#') {
                // The line would be read as a comment.
                line.replace_range(..1, r"\x23");
            }
            // Long recordings have gigabytes of lines: these have no room to grow.
            (line.as_str().into(), samples)
        })
        .collect();
    lines.sort_unstable();
    for (line, samples) in lines {
        writeln!(out, "{line} {samples}")?;
    }
    out.flush()?;
    Ok(())
}

/// Returns one step of a line. Semicolons in names are replaced, as they separate steps.
fn step(tree: &CallTree, kind: NodeKind) -> String {
    let mut name = tree.name(kind).replace(';', ":").replace(['\n', '\r'], " ");
    if let NodeKind::Function { id, inlined } = kind {
        let function = tree.function(id);
        if function.role == Role::Function {
            name.push_str(match function.kind {
                _ if inlined => "_[i]",
                FrameKind::Kernel => "_[k]",
                FrameKind::Jit => "_[j]",
                FrameKind::Python => "_[p]",
                FrameKind::User => "",
            });
        }
    }
    name
}

/// Longest line that is read as one, in bytes.
const LINE_BYTES_MAX: u64 = 1 << 20;
const WEIGHT_MAX: u64 = 1 << 53;

/// Largest count that is taken for samples: a CPU would have to be sampled 10,000 times a second
/// for more than a day to exceed it.
const SAMPLES_MAX: u64 = 1_000_000_000;

/// The note of a file whose counts are too large for samples.
const AMOUNTS: &str = "its counts are too large for samples, so they are times or bytes, of which \
    the file does not say what they are";

/// Reads folded stacks, written by proftop or by another tool. Each line becomes one sample with
/// its count as weight, all at the same time; the first step is the name of a thread.
pub fn read(mut input: impl BufRead, limits: Limits) -> Result<Store, FormatError> {
    let mut store = Store::new(limits);
    let mut names: HashMap<String, (u64, FrameKind, bool)> = HashMap::new();
    let mut comms: HashMap<String, u32> = HashMap::new();
    let mut told: Vec<(Frame, String)> = Vec::new();
    let mut weight_sum = 0u64;
    store.add_module(ModuleId(0), "", "");
    let mut number = 0u64;
    let mut has_begun = false;
    loop {
        let mut bytes = Vec::new();
        let mut limited = std::io::Read::take(&mut input, LINE_BYTES_MAX);
        if limited.read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        number += 1;
        // A longer line is read as several, of which only the last has the count.
        let line = String::from_utf8_lossy(&bytes);
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // Any text could be read as folded stacks. If even the first line does not look like one,
        // it is another format.
        let damaged = |what: &str| {
            if has_begun {
                FormatError::Damaged(format!("line {number}: {what}"))
            } else {
                FormatError::Unknown
            }
        };
        let (stack, count) = line
            .rsplit_once(' ')
            .ok_or_else(|| damaged("it has no count"))?;
        let weight: u64 = count
            .parse()
            .map_err(|_| damaged("its last word is no count"))?;
        has_begun = true;
        weight_sum = weight_sum.saturating_add(weight);
        if weight_sum > WEIGHT_MAX {
            return Err(FormatError::TooLarge("its counts add up to more than 2^53"));
        }
        if weight == 0 {
            continue;
        }
        let mut steps = stack.split(';');
        let comm = clean(steps.next().unwrap_or_default());
        let mut ending = Ending::Root;
        let mut frames: Vec<Frame> = Vec::new();
        for step in steps {
            // A step that stands for a missing part is not a frame.
            if let Some(cause) = stopped(step) {
                ending = cause;
                continue;
            }
            if step == "[no stack]" {
                continue;
            }
            // There are no addresses, so each name gets a number in place of an address. Equal
            // names become one place, unless their marks of the kind of code differ.
            let next = names.len() as u64 + 1;
            let (address, kind, _) = *names.entry(step.to_string()).or_insert_with(|| {
                let (name, kind) = plain(step);
                let frame = Frame {
                    module: ModuleId(0),
                    address: next,
                    kind,
                };
                told.push((frame, clean(name)));
                (next, kind, true)
            });
            frames.push(Frame {
                module: ModuleId(0),
                address,
                kind,
            });
        }
        frames.reverse();
        // There are no pids either: each name becomes a process with one thread.
        let next = comms.len() as u32 + 1;
        let tid = *comms.entry(comm.clone()).or_insert(next);
        if tid == next {
            store.add_process(ProcessId(tid), tid, &comm);
        }
        store.add_sample(NewSample {
            time_ns: 0,
            cpu: 0,
            process: ProcessId(tid),
            tid,
            comm: &comm,
            kernel_frames: usize::from(frames.first().is_some_and(|f| f.kind == FrameKind::Kernel)),
            frames: &frames,
            ending,
            weight,
        });
    }
    if weight_sum > SAMPLES_MAX {
        store.set_info(Info {
            metric: Metric {
                name: "amount".into(),
                unit: "units".into(),
            },
            notes: vec![AMOUNTS.into()],
            ..Info::default()
        });
    }
    // A store takes names only of frames that it has.
    for (frame, name) in told {
        if let Some(id) = store.find_frame(&frame) {
            store.set_name(id, NameState::Named(name.into()));
        }
    }
    Ok(store)
}

/// Returns the ending that a step `[stopped: cause]` stands for, if there is one with that cause.
fn stopped(step: &str) -> Option<Ending> {
    let cause = step.strip_prefix("[stopped: ")?.strip_suffix(']')?;
    Ending::ALL
        .into_iter()
        .find(|ending| ending.label() == cause)
}

/// Splits a step into its name without the mark, and the kind of code that the mark stands for.
fn plain(step: &str) -> (&str, FrameKind) {
    for (mark, kind) in [
        ("_[k]", FrameKind::Kernel),
        ("_[j]", FrameKind::Jit),
        ("_[p]", FrameKind::Python),
        ("_[i]", FrameKind::User),
    ] {
        if let Some(name) = step.strip_suffix(mark) {
            return (name, kind);
        }
    }
    (step, FrameKind::User)
}
