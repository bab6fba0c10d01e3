//! What the end-to-end tests share: the program under test, and programs to watch. Tests run
//! beside each other, and beside whatever else the machine does: each looks at programs of its own.

/// The dialog of `--plain`.
pub mod dialog;
/// A small file system.
pub mod disk;
/// A file system that a test can let hang.
pub mod fuse;
/// A control group.
pub mod group;
/// A control group with little memory.
pub mod memory_group;
/// Mistakes of proftop that a test causes.
pub mod mistakes;
/// A database under load.
pub mod postgres;
/// A pseudo-terminal whose other end the test reads and writes, byte by byte.
pub mod pty;
/// A real terminal, controlled from outside.
pub mod tmux;
/// Programs under `proftop trace`.
pub mod traced;

use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use test_support::{DEADLINE, Process, compile, skip, wait_until};

pub const PROFTOP: &str = env!("CARGO_BIN_EXE_proftop");

/// The recording that is built into the program.
pub const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/demo.pft");

pub fn proftop(args: &[&str]) -> Command {
    let mut command = Command::new(PROFTOP);
    command.args(args);
    // Settings of this machine's users must not change what a test sees.
    command.env("PROFTOP_CONFIG", "/dev/null");
    // Nor must their time zone.
    command.env("TZ", "UTC");
    // And their saved state must not be changed: no folder can be made there.
    command.env("XDG_STATE_HOME", "/dev/null");
    command
}

/// Runs a command to its end. What it printed is shown if the test fails.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().expect("it starts");
    println!("$ {command:?}\n{}", output.status);
    println!("{}", text(&output.stderr));
    output
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// Returns the processes that a thread has forked. None are left once it has ended.
pub fn children(pid: u32, tid: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{tid}/children"));
    let listed = listed.unwrap_or_default();
    let listed = listed.split_whitespace();
    listed.filter_map(|pid| pid.parse().ok()).collect()
}

/// Returns the processes without rights that the process which forks readers has forked.
pub fn parsers_of(pid: u32) -> Vec<u32> {
    let is_parser = |pid: &u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim() == "proftop-parser")
    };
    let all = children(pid, pid).into_iter();
    let all = all.flat_map(|spawner| children(spawner, spawner));
    all.filter(is_parser).collect()
}

/// Returns the child process with that name.
pub fn child_of(pid: u32, name: &str) -> Option<u32> {
    children(pid, pid).into_iter().find(|child| {
        let comm = fs::read_to_string(format!("/proc/{child}/comm"));
        comm.is_ok_and(|comm| comm.trim_end() == name)
    })
}

/// Returns whether the rights to sample are there. Prints it if they are missing.
pub fn can_sample() -> bool {
    static POSSIBLE: OnceLock<bool> = OnceLock::new();
    let is_possible = *POSSIBLE.get_or_init(|| {
        let doctor = proftop(&["doctor"]).output().expect("doctor runs");
        doctor.status.success()
    });
    if !is_possible {
        skip("needs root, or CAP_BPF and CAP_PERFMON: see `proftop doctor`");
    }
    is_possible
}

/// Calls `work` with each item, some at a time: work that mostly waits need not do so one after
/// the other. Fails if it fails with one of them.
pub fn side_by_side<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    const AT_ONCE: usize = 3;
    let next = AtomicUsize::new(0);
    let work_on = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(item);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(items.len()) {
            scope.spawn(work_on);
        }
    });
}

/// Compiles a program of `tests/programs/`, such as `crowd.c`, into a folder, and returns its path.
/// None where that is not possible.
pub fn compiled(folder: &Path, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let program = folder.join(source.trim_end_matches(".c"));
    compile(&sources.join(source), &program, flags)?;
    Some(program)
}

/// A script that takes the place of ssh: it runs the command on this machine.
pub const SSH_HERE: &str = r#"while [ "$1" != -- ]; do shift; done; shift 2; exec sh -c "exec $*""#;

pub const BURN_FUNCTIONS: [&str; 3] = ["burn::burn_sixty", "burn::burn_thirty", "burn::burn_ten"];
pub const BURN_SHARES: [f64; 3] = [0.6, 0.3, 0.1];
pub const BURN_THREADS: [&str; 2] = ["burn-even", "burn-odd"];

/// Returns the path of the example `burn`. Cargo builds examples with all tests, but not when it
/// is asked for a single one.
pub fn burn() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let folder = Path::new(PROFTOP).parent().expect("it is in a folder");
        let path = folder.join("examples/burn");
        if !path.exists() {
            let built = Command::new(env!("CARGO"))
                .args(["build", "--quiet", "--package", "proftop"])
                .args(["--example", "burn"])
                .status();
            assert!(built.expect("cargo starts").success() && path.exists());
        }
        path
    })
}

pub fn burn_str() -> &'static str {
    burn().to_str().expect("a path in UTF-8")
}

/// Starts the example `burn`, for longer than any test takes.
pub fn burning(threads: u32) -> Process {
    let mut command = Command::new(burn());
    command.args(["3600", &threads.to_string()]);
    Process::start_load(command.stdout(Stdio::null()))
}

/// Returns whether a process takes samples: it has open perf events.
pub fn is_sampling(process: &Process) -> bool {
    let folder = format!("/proc/{}/fd", process.pid());
    let Ok(entries) = fs::read_dir(folder) else {
        return false;
    };
    entries.flatten().any(|entry| {
        let target = fs::read_link(entry.path()).unwrap_or_default();
        target.to_string_lossy().contains("[perf_event]")
    })
}

/// Starts proftop, and waits until it samples.
pub fn start_sampling(command: &mut Command) -> Process {
    let mut process = Process::start(command);
    wait_until("it samples", || {
        let ended = process.try_wait().expect("ours");
        assert!(ended.is_none(), "{command:?}: {ended:?}");
        is_sampling(&process)
    });
    process
}

/// Returns the fields of proc_pid_stat(5) from the third one on. None if the process has ended.
pub fn stat_fields(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    Some(fields.split(' ').map(str::to_owned).collect())
}

/// Returns the CPU time that a process has used: fields 14 and 15 of proc_pid_stat(5), in
/// hundredths of a second.
fn cpu_time(pid: u32) -> Duration {
    let fields = stat_fields(pid).expect("it lives");
    let ticks = |field: &String| field.parse::<u64>().expect("a number");
    let sum: u64 = fields.iter().skip(11).take(2).map(ticks).sum();
    Duration::from_millis(10 * sum)
}

/// Waits until a process has used this much more CPU time, however long that takes.
pub fn wait_for_work(pid: u32, time: Duration) {
    let end = cpu_time(pid) + time;
    wait_until("it has worked", || cpu_time(pid) >= end);
}

/// Runs a command that prints reports of `--format json`, and interrupts it when the reports so
/// far are enough. Returns all of them; fails if there are not enough within [`DEADLINE`].
#[track_caller]
pub fn reports_until(
    command: &mut Command,
    what: &str,
    enough: impl Fn(&[Value]) -> bool,
) -> Vec<Value> {
    reports_and_errors_until(command, what, enough).0
}

/// Does what [`reports_until`] does, and returns what was written to standard error as well.
#[track_caller]
pub fn reports_and_errors_until(
    command: &mut Command,
    what: &str,
    enough: impl Fn(&[Value]) -> bool,
) -> (Vec<Value>, String) {
    let mut errors = tempfile::tempfile().expect("a file");
    command.stderr(errors.try_clone().expect("a second descriptor"));
    let mut running = Process::start(command.stdout(Stdio::piped()));
    let output = running.stdout.take().expect("a pipe");
    let mut reports: Vec<Value> = Vec::new();
    let mut is_enough = false;
    let end = Instant::now() + DEADLINE;
    for line in BufReader::new(output).lines() {
        let line = line.expect("output is UTF-8");
        reports.push(serde_json::from_str(&line).expect("each line is JSON"));
        // Reports between the interrupt and the end are read as well.
        if !is_enough {
            is_enough = enough(&reports);
            assert!(
                is_enough || Instant::now() < end,
                "waited in vain: {what}; the last report: {line}"
            );
            if is_enough {
                running.interrupt();
            }
        }
    }
    let status = running.wait().expect("ours");
    errors.rewind().expect("from the start");
    let said = std::io::read_to_string(errors).expect("UTF-8");
    println!("$ {command:?}\n{status}\n{said}");
    assert!(is_enough, "{status} before {what}: {reports:?}");
    // A command that proftop has started is interrupted as well, and its status is passed on.
    assert!(matches!(status.code(), Some(0 | 130)), "{status}");
    (reports, said)
}

/// Parses the reports of `--format json`.
pub fn reports(stdout: &[u8]) -> Vec<Value> {
    text(stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect()
}

pub fn number(value: &Value, field: &str) -> u64 {
    value[field]
        .as_u64()
        .unwrap_or_else(|| panic!("{field} is a number in {value}"))
}

/// Returns the sum of a field over all reports.
pub fn sum(reports: &[Value], field: &str) -> u64 {
    reports.iter().map(|report| number(report, field)).sum()
}

pub fn list<'a>(report: &'a Value, field: &str) -> &'a [Value] {
    report[field]
        .as_array()
        .unwrap_or_else(|| panic!("{field} is a list"))
}

/// Returns the self samples of a function over all reports.
pub fn self_samples(reports: &[Value], name: &str) -> u64 {
    let functions = reports.iter().flat_map(|report| list(report, "functions"));
    functions
        .filter(|function| function["name"] == name)
        .map(|function| number(function, "self"))
        .sum()
}

/// Returns whether the last of these reports on `burn` has whole stacks only, and names its
/// functions.
pub fn has_whole_stacks(reports: &[Value]) -> bool {
    let Some(last) = reports.last() else {
        return false;
    };
    let stacks = number(last, "user_stacks");
    let is_named = self_samples(std::slice::from_ref(last), BURN_FUNCTIONS[0]) > 0;
    stacks > 0 && number(last, "whole") == stacks && is_named
}

/// Returns half the width of the band in which a measured share must lie: five standard deviations,
/// which a right share leaves once in a million runs, and one point in a hundred for the loops
/// around the work.
pub fn band(share: f64, samples: f64) -> f64 {
    5.0 * (share * (1.0 - share) / samples).sqrt() + 0.01
}
