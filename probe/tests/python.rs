//! Stacks of real interpreters, of all versions on this machine, compared with what the programs
//! report about themselves. Needs rights; a test that lacks them prints that and is skipped.

#[expect(dead_code, reason = "the other tests burn")]
mod burn;
mod common;

use common::{Seen, only, unless_forbidden};
use probe::{
    BpfSource, Config, Ending, Event, Missing, ModuleKind, PerfSource, PythonStats, Sample, Source,
    Target, WaitState,
};
use probe_ebpf::python::{AWAITING_MAX, TASK_STEPS};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use symbolize::Reason;
use symbolize::python::module_of;
use test_support::{NO_PYTHON, Process, Scratch, compile, pythons, skip, wait_for, wait_until};

/// A frame: function, file and line.
type Frame = (String, String, u32);

/// The beginning of the frame of an asyncio task, which continues with the name of the task and
/// `›`. In the program's report the name is empty, and that of the coroutine follows, if both are
/// the same.
const TASK: &str = "task ‹";

/// The end of the frame of a task that awaits another one.
const AWAITS: &str = " awaits";

/// What a thread reports: it stood on this stack between these times.
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
            let module = module_of(parts[1]);
            let name = match parts[0].strip_prefix(TASK) {
                None if parts[1].is_empty() => parts[0].into(),
                None => format!("{module}.{}", parts[0]),
                Some(rest) => match rest.strip_prefix('›') {
                    Some(coroutine) => match coroutine.strip_suffix(AWAITS) {
                        Some(coroutine) => format!("{TASK}{module}.{coroutine}›{AWAITS}"),
                        None => format!("{TASK}{module}.{coroutine}›"),
                    },
                    None => parts[0].into(),
                },
            };
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

/// Returns the Python frames of a sample, innermost first.
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

/// Whether a stack has frames in code that `-X perf` makes: it is not in the memory of any file.
fn has_trampolines(sample: &Sample, modules: &HashMap<u32, ModuleKind>) -> bool {
    let is_made =
        |frame: &probe::Frame| matches!(modules[&frame.module.0], ModuleKind::Anonymous { .. });
    sample.frames.iter().any(is_made)
}

/// Replaces frames whose code a program has made and freed before its name was read: such a frame
/// has no name, instead of a wrong one. All other code must have its name.
fn with_freed(mut found: Vec<Frame>, truth: &[Frame]) -> Vec<Frame> {
    for (frame, told) in found.iter_mut().zip(truth) {
        if frame.0 == Reason::CodeGone.label() && told.1.starts_with("<made ") {
            frame.clone_from(told);
        }
    }
    found
}

/// What is special about the run of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Nothing,
    /// The program runs tasks of asyncio.
    Tasks,
    /// `-X perf` makes a piece of code for each function.
    Trampolines,
    /// The interpreter makes code for functions that run often.
    Jit,
}

impl Made {
    fn options(self) -> &'static [&'static str] {
        match self {
            Made::Trampolines => &["-X", "perf"],
            Made::Nothing | Made::Tasks | Made::Jit => &[],
        }
    }

    fn program(self) -> &'static str {
        match self {
            Made::Tasks => "tests/python/tasks.py",
            Made::Nothing | Made::Trampolines | Made::Jit => "tests/python/program.py",
        }
    }
}

/// Returns the number of stacks on which a program stands still; measurements request more.
fn stacks(engine: Engine) -> String {
    let few = match engine {
        Engine::Bpf | Engine::BpfWithoutLoop => "60",
        Engine::Perf => "24",
    };
    std::env::var("PROFTOP_PYTHON_STACKS").unwrap_or_else(|_| few.into())
}

/// How samples are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Engine {
    Bpf,
    /// By the object for kernels before Linux 5.17.
    BpfWithoutLoop,
    /// By perf: frames of Python are read a moment after the sample.
    Perf,
}

impl Engine {
    /// Returns for how long a program stands still on a stack: longer if the stack is read later.
    fn stands_still_ns(self) -> &'static str {
        match self {
            Engine::Bpf | Engine::BpfWithoutLoop => "8000000",
            Engine::Perf => "20000000",
        }
    }

    /// Starts sampling; `None` if rights are missing.
    fn start(self, config: &Config) -> Option<Box<dyn Source>> {
        match self {
            Engine::Bpf => {
                let source = start_with(config)?;
                Some(Box::new(source))
            }
            Engine::BpfWithoutLoop => {
                let source = start_with(&Config {
                    without_loop: true,
                    ..config.clone()
                })?;
                Some(Box::new(source))
            }
            Engine::Perf => {
                let source = unless_forbidden(PerfSource::start(config), "needs CAP_PERFMON")?;
                Some(Box::new(source))
            }
        }
    }
}

/// Samples by BPF. `None` if rights are missing.
fn start_with(config: &Config) -> Option<BpfSource> {
    unless_forbidden(BpfSource::start(config), "needs CAP_BPF and CAP_PERFMON")
}

/// Samples one process by BPF. `None` if rights are missing.
fn start(pid: u32, rate_hz: u32) -> Option<BpfSource> {
    start_with(&Config {
        target: only(pid),
        rate_hz,
        ..Config::default()
    })
}

/// Samples a program until it ends, from the moment when its Python frames are walked.
fn sample(python: &Path, made: Made, engine: Engine) -> Option<(Seen, PythonStats, Vec<Truth>)> {
    let scratch = Scratch::new();
    let (go, out) = (scratch.join("go"), scratch.join("out"));
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join(made.program());
    let mut command = Command::new(python);
    command
        .args(made.options())
        .env("PYTHON_JIT", if made == Made::Jit { "1" } else { "0" })
        .arg(program)
        .args(["7", &stacks(engine), engine.stands_still_ns()]);
    let process = Process::start(command.arg(&go).arg(&out));
    let config = Config {
        target: only(process.pid()),
        rate_hz: match engine {
            Engine::Bpf | Engine::BpfWithoutLoop => 997,
            // This test's own build walks the copies, which is slow.
            Engine::Perf => 199,
        },
        ..Config::default()
    };
    let mut source = engine.start(&config)?;
    let mut seen = Seen::until(&mut *source, "frames of Python", |seen| {
        let last = seen.samples.last();
        last.is_some_and(|last| {
            let frames = python_frames(last, &seen.modules);
            let mut tasks = frames.iter().filter(|frame| frame.0.starts_with(TASK));
            !frames.is_empty()
                && (made != Made::Tasks || tasks.next().is_some())
                && (made == Made::Jit
                    || !has_trampolines(last, &seen.modules) && last.ending == Ending::Root)
        })
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
    let interpreters = pythons();
    if interpreters.is_empty() {
        skip(NO_PYTHON);
    }
    for (version, python) in interpreters {
        if check(&format!("Python {version}"), &python, Made::Nothing).is_none() {
            return;
        }
    }
}

#[test]
fn a_program_with_an_interpreter_inside_is_known_by_what_it_is() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/embedded.c");
    let mut programs = 0;
    for (version, python) in pythons() {
        let scratch = Scratch::new();
        let worker = scratch.join("worker");
        let home = python.parent().and_then(Path::parent).unwrap();
        let minor = version.split('.').nth(1).unwrap();
        let config = format!("lib/python3.{minor}/config-3.{minor}-x86_64-linux-gnu");
        let archive = home.join(config).join(format!("libpython3.{minor}.a"));
        // The system's own archive needs libraries that need not be installed.
        if !archive.exists() || home == Path::new("/usr") {
            continue;
        }
        let flags =
            ["-no-pie", "-rdynamic", "-lm", "-ldl", "-lpthread", "-lutil"].map(PathBuf::from);
        if compile(&source, &worker, [archive].into_iter().chain(flags)).is_none() {
            return;
        }
        let run = scratch.join("run");
        let (home, worker) = (home.display(), worker.display());
        let text = format!("#!/bin/sh\nPYTHONHOME={home} exec {worker} \"$@\"\n");
        std::fs::write(&run, text).unwrap();
        std::fs::set_permissions(&run, Permissions::from_mode(0o700)).unwrap();
        let what = format!("a program with Python {version} inside");
        if check(&what, &run, Made::Nothing).is_none() {
            return;
        }
        programs += 1;
    }
    if programs == 0 {
        skip("no archive of a Python to build a program with is here");
    }
}

#[test]
fn what_perf_has_made_of_functions_is_walked_and_shown_once() {
    let has_it = |python: &PathBuf| {
        let told = "import sys; sys.exit(not sys.is_stack_trampoline_active())";
        let mut command = Command::new(python);
        let command = command.args(["-X", "perf", "-c", told]);
        let child = Process::try_start(command.stderr(Stdio::null()));
        child.is_ok_and(|mut child| child.wait().is_ok_and(|status| status.success()))
    };
    let mut interpreters = pythons();
    interpreters.retain(|_, python| has_it(python));
    if interpreters.is_empty() {
        skip("no Python here has -X perf");
    }
    for (version, python) in interpreters {
        let what = format!("Python {version} with -X perf");
        if check(&what, &python, Made::Trampolines).is_none() {
            return;
        }
    }
}

#[test]
fn what_a_jit_runs_has_its_functions_and_lines() {
    let has_it = |python: &PathBuf| {
        let told = "import sys; sys.exit(not sys._jit.is_enabled())";
        let mut command = Command::new(python);
        let command = command.args(["-c", told]).env("PYTHON_JIT", "1");
        let status = command.stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let mut interpreters = pythons();
    interpreters.retain(|_, python| has_it(python));
    if interpreters.is_empty() {
        skip("no Python here has a JIT");
    }
    for (version, python) in interpreters {
        if check(
            &format!("Python {version} with its JIT"),
            &python,
            Made::Jit,
        )
        .is_none()
        {
            return;
        }
    }
}

#[test]
fn tasks_are_what_the_program_says_of_them() {
    let mut interpreters = pythons();
    interpreters.retain(|version, _| tells_of_tasks(version));
    if interpreters.is_empty() {
        skip("no Python here tells of its tasks");
    }
    for (version, python) in interpreters {
        let what = format!("Python {version} with asyncio");
        if check(&what, &python, Made::Tasks).is_none() {
            return;
        }
    }
}

/// With the programs for kernels that have no `bpf_loop`.
#[cfg(target_arch = "x86_64")]
#[test]
fn stacks_and_tasks_are_right_without_bpf_loop() {
    let interpreters = pythons();
    if interpreters.is_empty() {
        skip(NO_PYTHON);
    }
    for (version, python) in interpreters {
        let mut kinds = vec![Made::Nothing];
        kinds.extend(tells_of_tasks(&version).then_some(Made::Tasks));
        for made in kinds {
            let what = format!("Python {version} without bpf_loop, {made:?}");
            if check_by(Engine::BpfWithoutLoop, &what, &python, made).is_none() {
                return;
            }
        }
    }
}

/// Whether tasks are walked in this version: from 3.12 on.
fn tells_of_tasks(version: &str) -> bool {
    let minor = version.split('.').nth(1);
    minor.is_some_and(|minor| minor.parse::<u32>().unwrap() >= 12)
}

/// Without BPF frames are read while their thread continues: frames of two moments are never mixed,
/// and frames that cannot be read are missing.
#[test]
fn what_is_read_later_is_of_one_moment() {
    let interpreters = pythons();
    if interpreters.is_empty() {
        skip(NO_PYTHON);
    }
    for (version, python) in interpreters {
        let Some((seen, stats, truths)) = sample(&python, Made::Nothing, Engine::Perf) else {
            return;
        };
        let functions: HashSet<(&str, &str)> = truths
            .iter()
            .flat_map(|truth| &truth.frames)
            .map(|(name, file, _)| (name.as_str(), file.as_str()))
            .collect();
        let (mut right, mut outer, mut other, mut without) = (0u64, 0, 0, 0);
        for sample in &seen.samples {
            let truth = truths.iter().find(|truth| {
                let times = truth.start_ns + 50_000..truth.end_ns;
                truth.tid == sample.tid && times.contains(&sample.time_ns)
            });
            let Some(truth) = truth else {
                continue;
            };
            let found = python_frames(sample, &seen.modules);
            // The thread that reads names got no CPU for a second.
            if found.iter().any(|frame| frame.0 == Reason::Remote.label()) {
                continue;
            }
            let found = if found.len() == truth.frames.len() {
                with_freed(found, &truth.frames)
            } else {
                found
            };
            if found.is_empty() {
                without += 1;
            } else if found == truth.frames {
                right += 1;
            } else if truth.frames.ends_with(&found) {
                outer += 1;
            } else {
                other += 1;
                // When the frames were read, the thread was on its way to the next stack, or there.
                for (name, file, _) in &found {
                    let is_known = functions.contains(&(name.as_str(), file.as_str()));
                    let is_made = *name == Reason::CodeGone.label() || file.starts_with("<made ");
                    let is_other = ["program.", "threading.", "random.", "re.", "functools."]
                        .iter()
                        .any(|start| name.starts_with(start));
                    assert!(is_known || is_made || is_other, "{version}: {found:?}");
                }
            }
        }
        println!(
            "Python {version}: {right} right, {outer} outer ones only, {other} of another moment, \
             {without} without, {stats:?}"
        );
        assert!(right > 10, "Python {version}: {right} right");
        // These samples are counted as such.
        assert!(other <= stats.later, "Python {version}: {other}, {stats:?}");
    }
}

#[test]
fn a_process_is_known_before_it_is_sampled() {
    let Some((_, python)) = pythons().pop_last() else {
        skip(NO_PYTHON);
        return;
    };
    let scratch = Scratch::new();
    let go = scratch.join("go");
    let wait =
        "while [ ! -e \"$1\" ]; do sleep 0.05; done; exec \"$0\" -c 'import time; time.sleep(600)'";
    let process = Process::start(Command::new("sh").args(["-c", wait]).arg(python).arg(&go));
    // At a rate of 0, nothing is sampled.
    let Some(mut source) = start(process.pid(), 0) else {
        return;
    };
    source.poll(Duration::from_millis(20)).unwrap();
    std::fs::write(&go, "").unwrap();
    wait_for("a process that runs Python", || {
        let batch = source.poll(Duration::from_millis(20)).unwrap();
        assert!(batch.samples.is_empty());
        (batch.python.processes == 1).then_some(())
    });
}

/// The program is a server that starts a thread for each request.
#[test]
fn threads_of_a_few_milliseconds_have_functions() {
    let interpreters = pythons();
    if interpreters.is_empty() {
        skip(NO_PYTHON);
    }
    for (version, python) in interpreters {
        let text = "import threading, time\n\
                    def request():\n\
                    \x20until = time.thread_time() + 0.004\n\
                    \x20while time.thread_time() < until: sum(range(100))\n\
                    while True:\n\
                    \x20one = threading.Thread(target=request)\n\
                    \x20one.start(); one.join()";
        let process = Process::start(Command::new(python).args(["-c", text]));
        let Some(mut source) = start(process.pid(), 499) else {
            return;
        };
        let is_request = |sample: &&Sample| sample.tid != process.pid();
        let has_function = |sample: &&Sample, modules: &HashMap<u32, ModuleKind>| {
            let frames = python_frames(sample, modules);
            frames.iter().any(|frame| frame.0.ends_with("request"))
        };
        // It may take a moment until the process is known.
        let mut seen = Seen::until(&mut source, "functions of threads", |seen| {
            let mut requests = seen.samples.iter().rev().filter(is_request);
            requests
                .next()
                .is_some_and(|sample| has_function(&sample, &seen.modules))
        });
        seen.samples.clear();
        wait_until("samples of threads", || {
            seen.take(&mut source);
            seen.samples.iter().filter(is_request).count() >= 100
        });
        let requests: Vec<_> = seen.samples.iter().filter(is_request).collect();
        let threads: BTreeSet<_> = requests.iter().map(|sample| sample.tid).collect();
        let with = requests
            .iter()
            .filter(|sample| has_function(sample, &seen.modules));
        let (with, all) = (with.count(), requests.len());
        println!(
            "Python {version}: {with} of {all} in {} threads",
            threads.len()
        );
        assert!(with * 4 >= all * 3, "{version}: {with} of {all}");
        assert!(
            threads.len() * 10 >= all,
            "{version}: {} threads",
            threads.len()
        );
    }
}

#[test]
fn functions_of_other_interpreters_are_shown() {
    let has_them = |python: &PathBuf| {
        let mut command = Command::new(python);
        let status = command
            .args(["-c", "import _interpreters"])
            .stderr(Stdio::null());
        status.status().is_ok_and(|status| status.success())
    };
    let mut interpreters = pythons();
    interpreters.retain(|_, python| has_them(python));
    if interpreters.is_empty() {
        skip("no Python here has _interpreters, as 3.13 and later do");
    }
    for (version, python) in interpreters {
        let text = "import _interpreters as them\n\
                    code = 'def inner():\\n while True: pass\\ninner()'\n\
                    def calls(): them.exec(them.create(), code)\n\
                    calls()";
        let process = Process::start(Command::new(python).args(["-c", text]));
        let Some(mut source) = start(process.pid(), 499) else {
            return;
        };
        Seen::until(&mut source, "a function of another interpreter", |seen| {
            seen.samples.iter().any(|sample| {
                let frames = python_frames(sample, &seen.modules);
                let names: Vec<_> = frames.iter().map(|frame| frame.0.as_str()).collect();
                let is_it = names.len() == 2 && names[0].ends_with(".inner");
                is_it && sample.ending == Ending::Root
            })
        });
        println!("Python {version}: found");
    }
}

#[test]
fn threads_are_called_as_their_programs_call_them() {
    let interpreters = pythons();
    if interpreters.is_empty() {
        skip(NO_PYTHON);
    }
    for (version, python) in interpreters {
        let scratch = Scratch::new();
        let out = scratch.join("names");
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/names.py");
        let process = Process::start(Command::new(python).arg(program).arg(&out));
        let Some(mut source) = start(process.pid(), 199) else {
            return;
        };
        let mut told = HashMap::new();
        let mut named_ns = u64::MAX;
        let mut shown: HashMap<u32, String> = HashMap::new();
        wait_for("names of all threads", || {
            if let Ok(text) = std::fs::read_to_string(&out) {
                let (since, names) = text.split_once('\n').unwrap();
                let pair = |line: &str| {
                    let (tid, name) = line.split_once('\t').unwrap();
                    (tid.parse().unwrap(), name.to_string())
                };
                named_ns = since.parse().unwrap();
                told = names.lines().map(pair).collect();
            }
            let batch = source.poll(Duration::from_millis(20)).unwrap();
            // Before that, a thread may not have had its name yet.
            let are_named = |sample: &Sample| sample.time_ns >= named_ns;
            for sample in batch.samples.into_iter().filter(are_named) {
                let native = ["python3", "ld-linux-x86-64"];
                let is_known = told.get(&sample.tid) == Some(&sample.comm.to_string());
                let is_early = native.iter().any(|name| sample.comm.starts_with(name));
                let is_cut = |name: &String| name.starts_with(&*sample.comm);
                assert!(
                    is_known || is_early || told.get(&sample.tid).is_some_and(is_cut),
                    "{version}: {} for {told:?}",
                    sample.comm
                );
                shown.insert(sample.tid, sample.comm.to_string());
            }
            (!told.is_empty() && shown == told).then_some(())
        });
        println!("Python {version}: {shown:?}");
        assert_eq!(told.len(), 8, "{version}");
    }
}

#[test]
fn who_has_the_global_lock_is_told_to_who_waits_for_it() {
    let interpreters = pythons();
    if interpreters.is_empty() {
        skip(NO_PYTHON);
    }
    for (version, python) in interpreters {
        let scratch = Scratch::new();
        let out = scratch.join("tids");
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/gil.py");
        let process = Process::start(Command::new(python).arg(program).arg(&out));
        let config = Config {
            target: only(process.pid()),
            waits: true,
            ..Config::default()
        };
        let Some(mut source) = start_with(&config) else {
            return;
        };
        let text = wait_for("two threads", || std::fs::read_to_string(&out).ok());
        let tids: Vec<u32> = text.split(' ').map(|tid| tid.parse().unwrap()).collect();
        let [holds, wants] = tids[..] else {
            panic!("{text}");
        };
        let (mut told, mut untold, mut unowned) = (0, 0, 0);
        wait_for("waits for the lock", || {
            for sample in source.poll(Duration::from_millis(20)).unwrap().samples {
                // If this thread ends a wait of the other one, the sample is of another event.
                let is_its_own = sample.tid == wants && sample.event == Event::Wait;
                let Some(wait) = sample.wait.filter(|_| is_its_own) else {
                    continue;
                };
                match (wait.state, wait.owner) {
                    (WaitState::Gil, Some(owner)) => {
                        assert_eq!(owner, (process.pid(), holds), "{version}");
                        told += 1;
                    }
                    // Who takes the lock notes that a moment later: until then the lock names who
                    // had it before, which is the thread that waits.
                    (WaitState::Gil, None) => unowned += 1,
                    // Before the process is known, which takes longer the busier the machine is,
                    // the wait has this state.
                    (WaitState::Lock, _) if told == 0 => {}
                    (WaitState::Lock, _) => untold += 1,
                    _ => {}
                }
            }
            (told > 30).then_some(())
        });
        println!("Python {version}: {told} told, {untold} not");
        assert!(untold * 10 <= told, "{version}: {told} told, {untold} not");
        assert!(unowned * 10 <= told, "{version}: {unowned} without owner");
    }
}

#[test]
fn samples_say_whether_their_thread_had_the_global_lock() {
    let interpreters = pythons();
    if interpreters.is_empty() {
        skip(NO_PYTHON);
    }
    for (version, python) in interpreters {
        for what in ["python", "native"] {
            let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/lock.py");
            let process = Process::start(Command::new(&python).arg(program).arg(what));
            let Some(mut source) = start(process.pid(), 499) else {
                return;
            };
            let stats = wait_for("samples of which that is known", || {
                let stats = source.poll(Duration::from_millis(20)).unwrap().python;
                (stats.lock_known >= 150).then_some(stats)
            });
            let (held, known) = (stats.lock_held, stats.lock_known);
            println!("Python {version}, {what}: {held} of {known} had the lock");
            let is_right = match what {
                "python" => held * 100 >= known * 95,
                _ => held * 100 <= known * 20,
            };
            assert!(is_right, "{version}, {what}: {held} of {known}");
        }
    }
}

#[test]
fn who_only_says_that_it_is_python_harms_nobody() {
    let scratch = Scratch::new();
    let (program, go) = (scratch.join("worker"), scratch.join("go"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/pretends.c");
    if compile(&source, &program, ["-O1", "-rdynamic", "-pthread"]).is_none() {
        return;
    }
    let pretends = Process::start(Command::new(&program).arg(&go));
    let text = "def honest():\n    while True: pass\nhonest()";
    let python = pythons().into_values().next_back();
    let honest = python.map(|python| Process::start(Command::new(python).args(["-S", "-c", text])));
    let pids = [&pretends].into_iter().chain(&honest).map(Process::pid);
    let config = Config {
        target: Target {
            pids: pids.collect(),
            ..Target::default()
        },
        rate_hz: 997,
        ..Config::default()
    };
    let Some(mut source) = start_with(&config) else {
        return;
    };
    let pid = pretends.pid();
    let names = |seen: &Seen, sample: &Sample| {
        let frames = python_frames(sample, &seen.modules).into_iter();
        frames.map(|frame| frame.0).collect::<Vec<_>>()
    };
    let mut told = vec![r"no\nfile.pretended\u{1b}[31m", r"task ‹no\u{1b}]0;task›"];
    // The task awaits itself; the number of steps is limited.
    told.extend([r"task ‹no\u{1b}]0;task› awaits"; AWAITING_MAX]);
    told.push("more tasks await");
    let mut seen = Seen::until(&mut source, "functions of both", |seen| {
        let last = |pid| {
            seen.samples
                .iter()
                .rfind(|it| seen.pids[&it.process.0] == pid)
        };
        let is_known =
            |honest: &Process| last(honest.pid()).is_some_and(|last| names(seen, last).len() == 2);
        last(pid).is_some_and(|last| names(seen, last) == told) && honest.iter().all(is_known)
    });
    std::fs::write(&go, "").unwrap();
    seen.samples.clear();
    wait_for("samples of both", || {
        seen.take(&mut source);
        let of = |pid| {
            let is_its = |sample: &&Sample| seen.pids[&sample.process.0] == pid;
            seen.samples.iter().filter(is_its).count()
        };
        let is_enough = of(pid) > 1000 && honest.iter().all(|it| of(it.pid()) > 200);
        is_enough.then_some(())
    });
    let mut kinds: HashMap<Vec<String>, u32> = HashMap::new();
    for sample in &seen.samples {
        let names = names(&seen, sample);
        let is_safe = |name: &String| !name.chars().any(char::is_control);
        assert!(names.iter().all(is_safe), "{names:?}");
        if seen.pids[&sample.process.0] == pid {
            let tasks = names.iter().filter(|name| name.contains("task")).count();
            assert!(
                names.len() - tasks <= 512 && tasks <= TASK_STEPS,
                "{names:?}"
            );
            *kinds.entry(names).or_default() += 1;
            continue;
        }
        // The thread that reads names may have got no CPU for a second.
        let own = ["honest", "<module>", Reason::Remote.label()];
        let is_own = |name: &String| own.iter().any(|own| name.ends_with(own));
        assert!(names.len() == 2 && names.iter().all(is_own), "{names:?}");
    }
    println!("{kinds:#?}");
    assert!(kinds.len() > 3, "little was spoiled: {kinds:?}");
}

/// Compares the stacks of a program with its own report, sampling by BPF. `None` if rights are
/// missing.
fn check(what: &str, python: &Path, made: Made) -> Option<()> {
    check_by(Engine::Bpf, what, python, made)
}

/// Does the same with any engine.
fn check_by(engine: Engine, what: &str, python: &Path, made: Made) -> Option<()> {
    let (seen, stats, truths) = sample(python, made, engine)?;
    let (mut right, mut without, mut late, mut through_made) = (0u32, 0, 0, 0);
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
            // A new thread is not known at its first samples.
            if met.contains(&sample.tid) {
                without += 1;
                if made != Made::Jit {
                    println!("without: {:?}, of {:?}", sample.ending, truth.frames);
                }
            }
            continue;
        }
        met.insert(sample.tid);
        // The thread that reads names got no CPU for a second.
        if found.iter().any(|frame| frame.0 == Reason::Remote.label()) {
            late += 1;
            continue;
        }
        let found = with_freed(found, &truth.frames);
        assert_eq!(found, truth.frames, "{what}");
        right += 1;
        if made == Made::Jit {
            // Not all versions make code that stacks can be walked through.
            through_made += u32::from(has_trampolines(sample, &seen.modules));
            continue;
        }
        assert_eq!(sample.ending, Ending::Root, "{what}");
        assert!(!has_trampolines(sample, &seen.modules), "{what}");
        // No frame of the interpreter is left outside of the first function.
        let is_python = |frame: &probe::Frame| {
            matches!(seen.modules[&frame.module.0], ModuleKind::Python { .. })
        };
        let outside = sample
            .frames
            .iter()
            .rev()
            .take_while(|frame| !is_python(frame));
        let mut libraries = outside.filter(|frame| is_library(frame, &seen.modules));
        assert_eq!(libraries.next(), None, "{what}");
    }
    println!("{what}: {right} right, {without} without, {late} late, {stats:?}");
    assert!(right > 100, "{what}: {right} right, {without} without");
    assert_eq!(through_made > 0, made == Made::Jit, "{what}");
    if made == Made::Jit {
        // In 3.14 such code has no frame pointers: the walk may miss calls of the loop; then the
        // functions are left out, which is counted.
        return Some(());
    }
    assert!(
        without * 50 <= right,
        "{what}: {right} right, {without} without"
    );
    let mismatches = stats.missing.get(&Missing::Mismatch).copied();
    assert!(
        mismatches.unwrap_or(0) * 100 <= stats.whole,
        "{what}: {stats:?}"
    );
    Some(())
}
