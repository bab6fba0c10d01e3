//! Whether Python functions of a process will be shown.

use super::maps::CodeMapping;
use super::one_per_file;
use super::sampled::SampledFacts;
use crate::words::units::{count, counted};
use probe::PerfSource;
use probe::features::Finding;
use std::fs::File;
use symbolize::parser::{ProcessMemory, python_order};
use symbolize::python::{Build, Interpreter, Lack, Version};
use symbolize::{FileSource, Files, Reason};

/// The maximum number of threads that are counted.
const THREADS_MAX: u32 = 16_384;

/// If more samples than this are taken and none of them has a Python function, that is a warning.
const SAMPLES_MIN: u64 = 20;

/// The Python interpreter of a process.
#[derive(Debug, PartialEq, Eq)]
pub struct PythonFacts {
    version: Version,
    build: Build,
    /// The number of threads that run Python, or why it is not known.
    threads: Result<u32, Lack>,
}

/// Looks for an interpreter among the mapped files. None if there is none of a version that proftop
/// knows.
pub fn inspect(pid: u32, mappings: &[CodeMapping], way: &Files) -> Option<PythonFacts> {
    one_per_file(mappings).find_map(|mapping| {
        let name = mapping.path.as_ref()?.file_name()?.as_encoded_bytes();
        let file = file_that_may_be(pid, mapping, name, way)?;
        let interpreter = python_order::ask(file, name, way).ok()?.interpreter?;
        let of_file = mappings
            .iter()
            .filter(|other| other.is_of_same_file(mapping));
        let runtime = of_file
            .map(CodeMapping::place)
            .find_map(|place| interpreter.runtime_at(&place))?;
        Some(PythonFacts {
            version: interpreter.version,
            build: interpreter.build,
            threads: threads(pid, interpreter.version, runtime, way),
        })
    })
}

/// Opens a mapped file, unless its headers say that it is no interpreter. Those of a file whose path
/// is gone are not read.
fn file_that_may_be(pid: u32, mapping: &CodeMapping, name: &[u8], way: &Files) -> Option<File> {
    let source = FileSource {
        pid: Some(pid),
        range: Some(mapping.range),
        ..FileSource::new(mapping.path.as_ref()?)
    };
    match way.open_summarized(&source) {
        Ok((file, Ok(summary))) => Interpreter::may_be(&summary, name).then_some(file),
        Ok((_, Err(_))) => None,
        Err(_) => way.open_mapping(pid, mapping.range).ok(),
    }
}

/// Counts the threads that the interpreter lists in the memory of the process.
fn threads(pid: u32, version: Version, runtime: u64, way: &Files) -> Result<u32, Lack> {
    let memory = ProcessMemory::open(pid, way)?;
    memory.count_threads(version, runtime, THREADS_MAX, way)
}

/// Says which Python it is, whether its functions will be shown, and in how many samples there were
/// some; or why they will not be shown.
pub fn judge(facts: &PythonFacts, sampled: Option<&SampledFacts>) -> Finding {
    const ID: &str = "process-python";
    let PythonFacts { threads, .. } = facts;
    let name = name(facts);
    match threads {
        Ok(threads) => {
            let threads = counted(u64::from(*threads), "thread");
            let shown = sampled
                .filter(|sampled| sampled.samples > 0)
                .map(|sampled| {
                    let (python, all) = (count(sampled.python), count(sampled.samples));
                    format!(", {python} of {all} samples have some")
                });
            let what = format!(
                "{name}, {threads}: its functions are shown by name and line{}",
                shown.unwrap_or_default()
            );
            match sampled {
                Some(sampled) if sampled.python == 0 && sampled.samples > SAMPLES_MIN => {
                    Finding::warn(ID, what)
                }
                _ => Finding::ok(ID, what),
            }
        }
        Err(lack @ Lack::Unreadable(Reason::NoPermission)) => {
            let what = format!("{name}: its functions are not shown: {lack}");
            Finding::warn(ID, what).fix("run as root, or give proftop cap_sys_ptrace")
        }
        Err(lack) => {
            let what = format!("{name}: its functions are not shown: {lack}");
            Finding::warn(ID, what)
        }
    }
}

/// Says what is different without BPF. None if the functions are not shown with BPF either.
pub fn judge_without_bpf(facts: &PythonFacts) -> Option<Finding> {
    facts.threads.as_ref().ok()?;
    let what = if PerfSource::READS_PYTHON {
        "without BPF (--engine perf) its functions are read a moment after each sample: those \
             that had gone on by then are left out and counted, and nothing is told of the global lock"
    } else {
        "without BPF (--engine perf) its functions are not shown on this architecture"
    };
    Some(Finding::ok("process-python-perf", what))
}

/// Returns the name of the interpreter, as in `Python 3.14.0 (shared library, debug build)`.
fn name(facts: &PythonFacts) -> String {
    let PythonFacts { version, build, .. } = facts;
    let micro = build.micro.map(|micro| format!(".{micro}"));
    let kind = if build.is_shared {
        "shared library"
    } else {
        "in the program itself"
    };
    let parts = [
        (true, kind),
        (build.is_debug, "debug build"),
        (build.has_tail_calls, "with tail calls"),
        (build.has_jit, "with a JIT"),
    ];
    let parts: Vec<&str> = parts
        .into_iter()
        .filter_map(|(is_so, words)| is_so.then_some(words))
        .collect();
    let micro = micro.unwrap_or_default();
    format!("Python {version}{micro} ({})", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::features::Level;

    #[test]
    fn it_says_whether_functions_are_shown() {
        let version = Version {
            major: 3,
            minor: 16,
        };
        let build = Build {
            micro: Some(2),
            is_shared: true,
            has_jit: true,
            ..Build::default()
        };
        let facts = |build, threads| PythonFacts {
            version,
            build,
            threads,
        };
        let sampled = SampledFacts {
            samples: 190,
            python: 188,
            ..SampledFacts::default()
        };
        assert_eq!(
            judge(&facts(build, Ok(1)), Some(&sampled)).what,
            "Python 3.16.2 (shared library, with a JIT), 1 thread: its functions are shown by \
             name and line, 188 of 190 samples have some"
        );
        let none = SampledFacts {
            python: 0,
            ..sampled
        };
        let level = |sampled| judge(&facts(build, Ok(1)), sampled).level;
        assert_eq!((level(Some(&none)), level(None)), (Level::Warn, Level::Ok));
        assert!(judge_without_bpf(&facts(build, Ok(1))).is_some());
        let lack = Err(Lack::UnknownVersion(version));
        assert_eq!(judge_without_bpf(&facts(build, lack)), None);
        assert_eq!(
            judge(&facts(Build::default(), lack), None).what,
            "Python 3.16 (in the program itself): its functions are not shown: \
             the structures of Python 3.16 are not known"
        );
    }
}
