//! The end at any moment, by `kill -9` and other signals, of every mode that attaches something: no
//! BPF program, no process and no temporary file of ours is left, what was sampled goes on, and
//! recordings can be read.

use crate::common;

use common::pty::Pty;
use common::traced::can_trace;
use common::{burn_str, can_sample, child_of, children, is_sampling, proftop, run, side_by_side};
use common::{start_sampling, stat_fields, wait_for_work};
use probe::BpfPrograms;
use rustix::process::{Pid, Signal};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use symbolize::kernel::BpfKernel as _;
use test_support::{Process, Random, Scratch, cases, compile, wait_for, wait_until};

/// Returns the BPF programs that are loaded, by the kernel's own list.
fn loaded_programs() -> HashSet<u32> {
    let next = |after: &u32| BpfPrograms.next_program(*after);
    std::iter::successors(next(&0), next).collect()
}

/// Returns the BPF programs that this process holds, itself or by what they are attached to. None
/// are those of a process that has ended.
fn programs_of(pid: u32) -> HashSet<u32> {
    let opened = fs::read_dir(format!("/proc/{pid}/fdinfo"))
        .into_iter()
        .flatten();
    let told = opened.filter_map(|file| fs::read_to_string(file.ok()?.path()).ok());
    let number = |line: &str| line.strip_prefix("prog_id:")?.trim().parse().ok();
    told.flat_map(|told| told.lines().filter_map(number).collect::<Vec<_>>())
        .collect()
}

#[test]
fn killed_it_leaves_its_command_alone() {
    if !can_sample() {
        return;
    }
    let mut command = proftop(&["-b", "-d", "600", "--", burn_str(), "600"]);
    let mut child = start_sampling(command.stderr(Stdio::null()));
    let ours = programs_of(child.pid());
    assert!(!ours.is_empty(), "it samples by BPF programs");
    assert!(ours.is_subset(&loaded_programs()), "{ours:?}");
    let command = wait_for("the command runs", || child_of(child.pid(), "burn"));
    child.kill().expect("it runs");
    child.wait().expect("ours");
    wait_until("nothing is loaded", || loaded_programs().is_disjoint(&ours));
    let command = Pid::from_raw(command.cast_signed());
    rustix::process::kill_process(command.expect("a pid"), Signal::KILL).expect("it is unharmed");
}

/// A mode that attaches something.
struct Mode {
    /// The arguments, without those that name the target.
    words: &'static str,
    /// Whether it writes to a terminal.
    is_screen: bool,
    /// The names of the files that it leaves. The first one is a recording.
    files: &'static [&'static str],
    /// What is written to its standard input, which stays open. A mode that has this (Some) takes no
    /// target as an argument.
    request: Option<&'static str>,
}

const fn mode(words: &'static str) -> Mode {
    Mode {
        words,
        is_screen: false,
        files: &[],
        request: None,
    }
}

const fn screen(words: &'static str) -> Mode {
    Mode {
        is_screen: true,
        ..mode(words)
    }
}

const fn recording(words: &'static str, files: &'static [&'static str]) -> Mode {
    Mode {
        files,
        ..mode(words)
    }
}

/// The first message of a client of `mcp`: it asks to look at the machine for a minute.
const LOOK: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"#,
    r#""name":"look","arguments":{"seconds":60},"_meta":{"#,
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    "\n"
);

const MODES: [Mode; 17] = [
    screen("--engine bpf"),
    screen("--engine perf"),
    screen("--metric off-cpu"),
    mode("--plain"),
    mode("-b -d 600 --engine bpf"),
    mode("-b -d 600 --engine perf"),
    mode("-b -d 600 --metric off-cpu --engine bpf"),
    mode("-b -d 600 --metric off-cpu --engine perf"),
    recording("record --engine bpf -o a.pft", &["a.pft"]),
    recording("record --engine perf -o a.pft", &["a.pft"]),
    recording("record --format folded -o a.folded", &["a.folded"]),
    recording("record --ring 10s -o a.pft", &["a.pft"]),
    recording("record --probe counted -o a.pft", &["a.pft"]),
    recording(
        "agent --ring 10s -o a.pft --control control",
        &["a.pft", "control"],
    ),
    mode("trace counted"),
    mode("trace tracepoint:sched:sched_switch"),
    Mode {
        request: Some(LOOK),
        ..mode("mcp")
    },
];

/// A way to end a run: its name, and signals with a pause between them.
type End = (&'static str, &'static [Signal]);

const KILL: End = ("kill -9", &[Signal::KILL]);
const TERM: End = ("TERM", &[Signal::TERM]);

/// The ways to end a run, each at any moment.
const ENDS: [End; 4] = [
    KILL,
    TERM,
    ("HUP", &[Signal::HUP]),
    (
        "STOP, and TERM once it goes on",
        &[Signal::STOP, Signal::CONT, Signal::TERM],
    ),
];

/// The pause between two signals.
const PAUSE: Duration = Duration::from_millis(200);

/// A program whose function is called all the time.
const CALLS: &str = "
static volatile unsigned sum;
__attribute__((noinline)) void counted(unsigned rounds) { while (rounds--) sum += rounds; }
int main(void) { for (;;) counted(1000000); }
";

/// The longest time from the start to a signal that does not wait until it samples.
const LONGEST: Duration = Duration::from_millis(1200);

/// Each mode is killed once when it samples; then those that record are terminated when they sample,
/// and all are ended in all ways in turn at random moments.
#[test]
fn ended_at_any_moment_it_leaves_nothing_attached() {
    if !can_sample() || !can_trace() {
        return;
    }
    let scratch = Scratch::new();
    let (source, program) = (scratch.write("calls.c", CALLS), scratch.join("calls"));
    if compile(&source, &program, ["-O1", "-g"]).is_none() {
        return;
    }
    let calls = Process::start_load(&mut Command::new(&program));
    let pid = calls.pid();
    let before = kept_by_the_kernel();
    let rounds: Vec<(usize, usize)> = (0..cases(2) as usize)
        .flat_map(|round| (0..MODES.len()).map(move |mode| (round, mode)))
        .collect();
    let readable = AtomicU64::new(0);
    side_by_side(&rounds, |(round, number)| {
        let mode = &MODES[*number];
        let mut random = Random::new((1 + round * MODES.len() + number) as u64);
        let (end, moment) = match round {
            0 => (KILL, None),
            1 if !mode.files.is_empty() => (TERM, None),
            _ => {
                let moment = Duration::from_millis(random.below(LONGEST.as_millis() as u64));
                (ENDS[(round + number) % ENDS.len()], Some(moment))
            }
        };
        let is_readable = end_one(mode, pid, end, moment);
        readable.fetch_add(u64::from(is_readable), Ordering::Relaxed);
    });
    println!("{} recordings were readable", readable.into_inner());
    wait_for_work(pid, Duration::from_millis(20));
    assert_eq!(kept_by_the_kernel(), before);
}

/// Ends a run at this moment after its start, or soon after it samples. Returns whether it left a
/// recording, which can be read then.
fn end_one(mode: &Mode, target: u32, end: End, moment: Option<Duration>) -> bool {
    let (end, signals) = end;
    let scratch = Scratch::new();
    let temporary = scratch.join("tmp");
    fs::create_dir(&temporary).expect("a folder");
    let words: Vec<&str> = mode.words.split(' ').collect();
    let mut command = proftop(&words);
    if mode.request.is_none() {
        command.args(["-p", &target.to_string()]);
    }
    command
        .current_dir(scratch.path())
        .env("TMPDIR", &temporary);
    command.stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut terminal = Pty::open(80, 24);
    if mode.is_screen {
        terminal.attach(&mut command);
    }
    let begun = Instant::now();
    let mut proftop = Process::start(&mut command);
    // Held open until the end.
    let mut input = proftop.stdin.take();
    if let (Some(input), Some(request)) = (&mut input, mode.request) {
        input
            .write_all(request.as_bytes())
            .expect("a pipe has room");
    }
    if mode.is_screen && moment.is_none() {
        terminal.read_until(b"calls");
    }
    let (mut programs, mut processes) = (HashSet::new(), BTreeMap::new());
    let mut look = |proftop: &Process| {
        programs.extend(programs_of(proftop.pid()));
        processes.extend(descendants(proftop.pid()));
        programs.clone()
    };
    match moment {
        Some(moment) => {
            while begun.elapsed() < moment {
                look(&proftop);
                std::thread::sleep(Duration::from_millis(1));
            }
            look(&proftop);
        }
        None => wait_until("it is attached", || {
            let ended = proftop.try_wait().expect("ours");
            assert!(ended.is_none(), "{}: {ended:?}", mode.words);
            let is_by_bpf = !mode.words.contains("perf");
            let has_programs = !look(&proftop).is_empty();
            is_sampling(&proftop)
                && has_programs == is_by_bpf
                && !descendants(proftop.pid()).is_empty()
        }),
    }
    let what = |left: &str| format!("{}, {end} after {moment:?}: {left}", mode.words);
    let ended = proftop.try_wait().expect("ours");
    assert!(ended.is_none(), "{}", what(&format!("{ended:?}")));
    for (number, signal) in signals.iter().enumerate() {
        if number > 0 {
            std::thread::sleep(PAUSE);
        }
        proftop.signal(*signal);
    }
    wait_until(&what("it ends"), || {
        look(&proftop);
        proftop.try_wait().expect("ours").is_some()
    });
    wait_until(&what("no process is left"), || {
        let begun = |(pid, since): (&u32, &u64)| started(*pid) == Some(*since);
        !processes.iter().any(begun)
    });
    wait_until(&what("no program is left"), || {
        loaded_programs().is_disjoint(&programs)
    });
    let mut left = names(scratch.path());
    // A run that is terminated while it samples leaves its recording, and nothing else.
    let is_in_order = (end, moment) == (TERM.0, None);
    let has_socket = left.contains("control");
    assert!(!is_in_order || !has_socket, "{}", what("the socket"));
    left.retain(|name| name != "tmp" && !mode.files.contains(&name.as_str()));
    assert_eq!(left, BTreeSet::new(), "{}", what("files"));
    assert_eq!(
        names(&temporary),
        BTreeSet::new(),
        "{}",
        what("temporary files")
    );
    let recording = mode.files.first().map(|name| scratch.join(name));
    let Some(recording) = recording.filter(|path| path.exists()) else {
        assert!(!is_in_order, "{}", what("no recording"));
        return false;
    };
    let report = run(common::proftop(&["report", "--format", "json"]).arg(recording));
    // 5: it has no samples.
    let is_read = matches!(report.status.code(), Some(0 | 5));
    assert!(is_read, "{}: {report:?}", what("a recording"));
    true
}

/// Returns the names in a folder.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.collect()
}

/// Returns all processes below this one, each with the time at which it started.
fn descendants(pid: u32) -> BTreeMap<u32, u64> {
    let of_all_threads = |pid: u32| -> Vec<u32> {
        let tids = names(&Path::new("/proc").join(pid.to_string()).join("task"));
        let tids = tids.iter().filter_map(|tid| tid.parse().ok());
        tids.flat_map(|tid| children(pid, tid)).collect()
    };
    let mut found = BTreeMap::new();
    let mut waiting = of_all_threads(pid);
    while let Some(next) = waiting.pop() {
        if let Some(since) = started(next) {
            found.insert(next, since);
            waiting.extend(of_all_threads(next));
        }
    }
    found
}

/// Returns when a process started, in ticks since the start of the machine (field 22 of
/// proc_pid_stat(5)). None if it has ended.
fn started(pid: u32) -> Option<u64> {
    stat_fields(pid)?.get(19)?.parse().ok()
}

/// Returns what lives in the kernel without a process: what is pinned, and breakpoints with names.
fn kept_by_the_kernel() -> Vec<String> {
    let mut all: Vec<String> = names(Path::new("/sys/fs/bpf")).into_iter().collect();
    for list in ["uprobe_events", "kprobe_events", "dynamic_events"] {
        for folder in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
            let told = fs::read_to_string(Path::new(folder).join(list));
            all.extend(told.unwrap_or_default().lines().map(str::to_owned));
        }
    }
    all
}
