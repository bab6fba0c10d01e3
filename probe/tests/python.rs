//! Stacks of real interpreters, of all versions that are here, held against what the
//! programs say of themselves. Needs the rights to sample; says so where they are missing.

#[expect(dead_code, reason = "the other tests burn")]
mod burn;
mod common;

use common::{Seen, alone, only, unless_forbidden};
use probe::{BpfSource, Config, Ending, Missing, ModuleKind, PythonStats, Sample, Source as _};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use symbolize::Reason;
use symbolize::python::module_of;
use test_support::{NO_PYTHON, Process, Scratch, pythons, skip, wait_for};

/// Function, file and line.
type Frame = (String, String, u32);

/// A thread stood on this stack, between these times.
struct Truth {
    tid: u32,
    start_ns: u64,
    end_ns: u64,
    frames: Vec<Frame>,
}

fn read_truths(file: &Path) -> Vec<Truth> {
    let text = std::fs::read_to_string(file).unwrap();
    let truth = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let frame = |frame: &str| {
            let parts: Vec<&str> = frame.split('\x1f').collect();
            let name = format!("{}.{}", module_of(parts[1]), parts[0]);
            (name, parts[1].into(), parts[2].parse().unwrap())
        };
        Truth {
            tid: fields[0].parse().unwrap(),
            start_ns: fields[1].parse().unwrap(),
            end_ns: fields[2].parse().unwrap(),
            frames: fields[3].split('\x1e').map(frame).collect(),
        }
    };
    text.lines().map(truth).collect()
}

/// The Python frames of a sample, innermost first.
fn python_frames(sample: &Sample, modules: &HashMap<u32, ModuleKind>) -> Vec<Frame> {
    let name = |frame: &probe::Frame| match &modules[&frame.module.0] {
        ModuleKind::Python { names, .. } => Some(match names.get(frame.address) {
            Ok(name) => (name.function.to_string(), name.file.to_string(), name.line),
            Err(reason) => (reason.label().into(), String::new(), 0),
        }),
        _ => None,
    };
    sample.frames.iter().filter_map(name).collect()
}

fn is_library(frame: &probe::Frame, modules: &HashMap<u32, ModuleKind>) -> bool {
    match &modules[&frame.module.0] {
        ModuleKind::File { path, .. } => path.to_string_lossy().contains("/libpython3."),
        _ => false,
    }
}

/// Code that a program makes and frees may be gone when its name is read: that is said, and
/// no other name is given. Of all other code the name is there.
fn with_freed(mut found: Vec<Frame>, truth: &[Frame]) -> Vec<Frame> {
    for (frame, told) in found.iter_mut().zip(truth) {
        if frame.0 == Reason::CodeGone.label() && told.1.starts_with("<made ") {
            frame.clone_from(told);
        }
    }
    found
}

/// Samples a program until it ends, from when its Python frames are walked on.
fn sample(python: &Path, seed: u32) -> Option<(Seen, PythonStats, Vec<Truth>)> {
    let scratch = Scratch::new();
    let (go, out) = (scratch.join("go"), scratch.join("out"));
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/program.py");
    let mut command = Command::new(python);
    command
        .arg(program)
        .args([&seed.to_string(), "60", "8000000"]);
    let process = Process::start(command.arg(&go).arg(&out));
    let config = Config {
        target: only(process.pid()),
        rate_hz: 997,
        ..Config::default()
    };
    let needs = "needs CAP_BPF and CAP_PERFMON";
    let mut source = unless_forbidden(BpfSource::start(&config), needs)?;
    let mut seen = Seen::until(&mut source, "frames of Python", |seen| {
        let last = seen.samples.last();
        last.is_some_and(|last| !python_frames(last, &seen.modules).is_empty())
    });
    std::fs::write(&go, "").unwrap();
    let stats = wait_for("the end of the program", || {
        let batch = source.poll(Duration::from_millis(20)).unwrap();
        seen.samples.extend(batch.samples);
        let modules = batch.modules.into_iter();
        seen.modules
            .extend(modules.map(|module| (module.id.0, module.kind)));
        (batch.targets_alive == Some(0)).then_some(batch.python)
    });
    Some((seen, stats, read_truths(&out)))
}

#[test]
fn stacks_are_what_the_program_says_of_itself() {
    let _alone = alone();
    let interpreters = pythons();
    if interpreters.is_empty() {
        skip(NO_PYTHON);
    }
    for (version, python) in interpreters {
        let Some((seen, stats, truths)) = sample(&python, 7) else {
            return;
        };
        let (mut right, mut without) = (0u32, 0);
        let mut met = HashSet::new();
        for sample in &seen.samples {
            let truth = truths.iter().find(|truth| {
                let times = truth.start_ns + 50_000..truth.end_ns;
                truth.tid == sample.tid && times.contains(&sample.time_ns)
            });
            let Some(truth) = truth else {
                continue;
            };
            let found = python_frames(sample, &seen.modules);
            if found.is_empty() {
                // A new thread is met by its first samples.
                if met.contains(&sample.tid) {
                    without += 1;
                    println!("without: {:?}, of {:?}", sample.ending, truth.frames);
                }
                continue;
            }
            met.insert(sample.tid);
            let found = with_freed(found, &truth.frames);
            assert_eq!(found, truth.frames, "Python {version}");
            assert_eq!(sample.ending, Ending::Root, "Python {version}");
            right += 1;
            // Nothing of the interpreter is left outside of the first function.
            let is_python = |frame: &probe::Frame| {
                matches!(seen.modules[&frame.module.0], ModuleKind::Python { .. })
            };
            let outside = { sample.frames.iter().rev() }.take_while(|frame| !is_python(frame));
            let mut libraries = outside.filter(|frame| is_library(frame, &seen.modules));
            assert_eq!(libraries.next(), None, "Python {version}");
        }
        println!("Python {version}: {right} right, {without} without, {stats:?}");
        assert!(
            right > 100,
            "Python {version}: {right} right, {without} without"
        );
        assert!(
            without * 50 <= right,
            "Python {version}: {right} right, {without} without"
        );
        let mismatches = stats.missing.get(&Missing::Mismatch).copied();
        assert!(
            mismatches.unwrap_or(0) * 100 <= stats.whole,
            "Python {version}: {stats:?}"
        );
    }
}
