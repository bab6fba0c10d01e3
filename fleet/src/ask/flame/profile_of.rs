//! Converts rows of samples, stacks and frames to a profile.

use crate::rows::{Row, Rows};
use profile::{
    Ending, Frame, FrameKind, Host, Info, Limits, Metric, ModuleId, NameState, NewSample, NoName,
    ProcessId, Rates, SourceFrame, Store,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// A profile, and counts of its content.
pub struct Made {
    pub store: Store,
    pub hosts: usize,
    pub services: usize,
    /// Sentences about what the profile cannot express.
    pub notes: Vec<String>,
}

/// Kinds of frames, as stored in the column.
const KERNEL: u64 = 1;
const JIT: u64 = 2;
const PYTHON: u64 = 3;
const NOTE: u64 = 4;

/// A frame with the same module and address as another one gets an address from here on, beyond
/// those of any file.
const ELSEWHERE: u64 = 1 << 60;

/// Maximum memory of a profile. It is many times what the largest answer of an engine needs.
const MEMORY_BYTES: usize = 4 << 30;

/// The meaning of a frame's number.
enum Known {
    Frame(Frame),
    /// The frame is not a place, but the reason why a stack has no root.
    Ending(Ending),
}

/// Makes the profile.
pub fn rows(event: &str, samples: &Rows, stacks: &Rows, frames: &Rows) -> Made {
    let mut store = Store::new(Limits {
        // Keeps all samples, whatever their time range.
        keep: Duration::from_secs(u64::from(u32::MAX)),
        memory_bytes: MEMORY_BYTES,
    });
    let mut notes = vec![
        "what hosts send has no processes: each service of a host is shown as one, with a PID that is made up".into(),
    ];
    let begin_ms = samples
        .iter()
        .map(|it| it.number("begin_ms") as i64)
        .min()
        .unwrap_or(0);
    let end = |it: Row| it.number("begin_ms") as i64 + it.whole("window_ms") as i64;
    let end_ms = samples.iter().map(end).max().unwrap_or(begin_ms);
    let at_ns = |ms: i64| (ms - begin_ms).max(0) as u64 * 1_000_000;
    let hosts: HashSet<&str> = samples.iter().map(|it| it.text("host")).collect();
    let periods: HashSet<u64> = samples.iter().map(|it| it.whole("period_ns")).collect();
    let period = periods.iter().copied().min().unwrap_or(0);
    if periods.len() > 1 {
        notes.push(
            "hosts were sampled at different rates: samples are counted as at the highest one"
                .into(),
        );
    }
    let info = info(event, period, begin_ms, &hosts);
    store.set_info(info.clone());
    store.begin(0);
    let known = add_frames(&mut store, frames);
    let of_stack = |row: Row| (row.whole("stack_id"), row.list("frames").to_vec());
    let by_id: HashMap<u64, Vec<u64>> = stacks.iter().map(of_stack).collect();
    let mut processes: HashMap<(&str, &str), u32> = HashMap::new();
    let mut missing = 0;
    for row in samples.iter() {
        let (host, service) = (row.text("host"), row.text("service"));
        let next = processes.len() as u32 + 1;
        let pid = *processes.entry((host, service)).or_insert(next);
        if pid == next {
            let host: Arc<str> = crate::failure::safe(host).into();
            store.add_process_of(
                Some(&host),
                ProcessId(pid),
                pid,
                &crate::failure::safe(service),
            );
        }
        let (mut frames, mut ending) = (Vec::new(), Ending::Root);
        match by_id.get(&row.whole("stack_id")) {
            Some(ids) => {
                for id in ids {
                    match known.get(id) {
                        Some(Known::Frame(frame)) => frames.push(*frame),
                        Some(Known::Ending(why)) => ending = *why,
                        None => missing += 1,
                    }
                }
            }
            None => missing += 1,
        }
        let counted = row.number("counted");
        let weight = match period {
            0 => counted,
            _ => counted * row.number("period_ns") / period as f64,
        };
        store.add_sample(NewSample {
            time_ns: at_ns(row.number("begin_ms") as i64),
            cpu: 0,
            process: ProcessId(pid),
            tid: pid,
            comm: &crate::failure::safe(service),
            kernel_frames: frames
                .iter()
                .take_while(|it| it.kind == FrameKind::Kernel)
                .count(),
            frames: &frames,
            ending,
            weight: weight.round() as u64,
        });
    }
    store.end(at_ns(end_ms));
    if missing > 0 {
        notes.push(format!(
            "{missing} times a stack or a frame of a sample is in no file: those stacks are shorter here"
        ));
    }
    name_frames(&mut store, frames, &known);
    store.set_info(Info {
        notes: notes.clone(),
        ..info
    });
    Made {
        hosts: hosts.len(),
        services: processes.len(),
        store,
        notes,
    }
}

fn info(event: &str, period_ns: u64, begin_ms: i64, hosts: &HashSet<&str>) -> Info {
    let (unit, hz) = match period_ns {
        0 => ("events", 0),
        1 => ("nanoseconds", 0),
        period => ("samples", (1e9 / period as f64).round() as u32),
    };
    let name = match hosts.len() {
        1 => crate::failure::safe(hosts.iter().next().copied().unwrap_or_default()),
        many => format!("{many} hosts"),
    };
    Info {
        metric: Metric {
            name: crate::failure::safe(event),
            unit: unit.into(),
        },
        host: Host {
            name,
            ..Host::default()
        },
        rates: Rates::always(hz),
        scope: "fleet".into(),
        epoch_unix_ms: begin_ms,
        ..Info::default()
    }
}

/// Assigns an address to each frame. Names are set when the store has the frames.
fn add_frames(store: &mut Store, frames: &Rows) -> HashMap<u64, Known> {
    let mut modules: HashMap<&str, ModuleId> = HashMap::new();
    let mut taken: HashSet<(ModuleId, u64)> = HashSet::new();
    let mut known = HashMap::new();
    for row in frames.iter() {
        let id = row.whole("frame_id");
        if known.contains_key(&id) {
            continue;
        }
        if row.whole("frame_kind") == NOTE {
            known.insert(id, Known::Ending(ending(row.text("name"))));
            continue;
        }
        let name = row.text("module_name");
        let next = ModuleId(modules.len() as u32 + 1);
        let module = *modules.entry(name).or_insert(next);
        if module == next {
            store.add_module(module, &crate::failure::safe(name), "");
        }
        let mut address = row.whole("offset_in_file");
        if !taken.insert((module, address)) {
            // There is another build of a file of that name, or the function has no address in a
            // file.
            address = ELSEWHERE + taken.len() as u64;
            taken.insert((module, address));
        }
        let kind = match row.whole("frame_kind") {
            KERNEL => FrameKind::Kernel,
            JIT => FrameKind::Jit,
            PYTHON => FrameKind::Python,
            _ => FrameKind::User,
        };
        let frame = Frame {
            module,
            address,
            kind,
        };
        known.insert(id, Known::Frame(frame));
    }
    known
}

/// Returns the ending for a note.
fn ending(note: &str) -> Ending {
    let cause = note
        .strip_prefix("[stopped: ")
        .and_then(|it| it.strip_suffix(']'));
    let all = (0..=u8::MAX).map_while(Ending::of_number);
    let found = cause.and_then(|cause| all.into_iter().find(|it| it.label() == cause));
    // The note is from a newer version, or `[no stack]`: something is missing in any case.
    found.unwrap_or(Ending::BrokenChain)
}

fn name_frames(store: &mut Store, frames: &Rows, known: &HashMap<u64, Known>) {
    let mut chains: HashMap<u64, Vec<Row>> = HashMap::new();
    for row in frames.iter() {
        chains.entry(row.whole("frame_id")).or_default().push(row);
    }
    for (id, mut chain) in chains {
        let Some(Known::Frame(frame)) = known.get(&id) else {
            continue;
        };
        let Some(place) = store.find_frame(frame) else {
            continue;
        };
        // Innermost first.
        chain.sort_by_key(|it| std::cmp::Reverse(it.whole("inline_depth")));
        let outermost = chain.last().map_or("", |it| it.text("name"));
        if outermost.is_empty() {
            store.set_name(place, NameState::Unnamed(NoName::NotTold));
            continue;
        }
        store.set_name(
            place,
            NameState::Named(crate::failure::safe(outermost).into()),
        );
        let texts: Vec<(String, String, u32)> = chain
            .iter()
            .map(|row| {
                let safe = |column: &str| crate::failure::safe(row.text(column));
                (
                    safe("name"),
                    safe("source_file"),
                    row.whole("source_line") as u32,
                )
            })
            .collect();
        let links: Vec<SourceFrame> = texts
            .iter()
            .map(|(function, file, line)| SourceFrame {
                function,
                file,
                line: *line,
            })
            .collect();
        if links.len() > 1 || !links[0].file.is_empty() {
            store.set_source(place, &links);
        }
    }
}
