//! What the end-to-end tests share: the program under test, a program to watch,
//! and the machine, which only one test at a time may have.

#![allow(
    dead_code,
    reason = "each test binary uses only a part of what they share"
)]

/// A file system that hangs when it is told to.
pub mod fuse;
/// A terminal of bytes, whose other end is ours.
pub mod pty;
/// A real terminal, driven from outside.
pub mod tmux;

use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use test_support::{Process, skip};

pub const PROFTOP: &str = env!("CARGO_BIN_EXE_proftop");

pub fn proftop(args: &[&str]) -> Command {
    let mut command = Command::new(PROFTOP);
    command.args(args);
    // What the people of this machine have set is theirs.
    command.env("PROFTOP_CONFIG", "/nonexistent");
    // And what they left is not to be changed: no folder can be made there.
    command.env("XDG_STATE_HOME", "/dev/null");
    command
}

/// Runs to the end. What it said is shown if the test fails.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().expect("it starts");
    println!("$ {command:?}\n{}", output.status);
    println!("{}", text(&output.stderr));
    output
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// The machine, for one test: each counts what the machine does, and some make
/// it do a lot. Tests of other processes wait as well.
pub struct Machine(#[expect(dead_code, reason = "held, not used")] File);

/// Nothing where the rights to sample are missing, and then says so.
pub fn machine() -> Option<Machine> {
    static POSSIBLE: OnceLock<bool> = OnceLock::new();
    let possible = *POSSIBLE.get_or_init(|| {
        let doctor = proftop(&["doctor"]).output().expect("doctor runs");
        doctor.status.success()
    });
    if !possible {
        skip("needs root, or CAP_BPF and CAP_PERFMON: see `proftop doctor`");
        return None;
    }
    let path = std::env::temp_dir().join("proftop-tests.lock");
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .expect("a lock file");
    file.lock().expect("the lock");
    Some(Machine(file))
}

pub const BURN_FUNCTIONS: [&str; 3] = ["burn::burn_sixty", "burn::burn_thirty", "burn::burn_ten"];
pub const BURN_SHARES: [f64; 3] = [0.6, 0.3, 0.1];
pub const BURN_THREADS: [&str; 2] = ["burn-even", "burn-odd"];

/// The example `burn`. Cargo builds examples with all tests, but not when it is
/// asked for a single one.
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

/// The example `burn`, running.
pub fn burning(seconds: u32, threads: u32) -> Process {
    let mut command = Command::new(burn());
    command.args([seconds.to_string(), threads.to_string()]);
    Process::start(command.stdout(Stdio::null()))
}

/// More reports than any test waits for, however busy the machine is.
pub const REPORTS_MAX: usize = 120;

/// Runs a command that prints reports of `--format json`, and interrupts it when the reports
/// so far are enough. Gives all of them; fails if [`REPORTS_MAX`] were not enough.
#[track_caller]
pub fn reports_until(
    command: &mut Command,
    what: &str,
    enough: impl Fn(&[Value]) -> bool,
) -> Vec<Value> {
    let mut errors = tempfile::tempfile().expect("a file");
    command.stderr(errors.try_clone().expect("a second descriptor"));
    let mut running = Process::start(command.stdout(Stdio::piped()));
    let output = running.stdout.take().expect("a pipe");
    let mut reports: Vec<Value> = Vec::new();
    let mut is_enough = false;
    for line in BufReader::new(output).lines() {
        let line = line.expect("output is UTF-8");
        reports.push(serde_json::from_str(&line).expect("each line is JSON"));
        // What comes between the interrupt and the end is read as well.
        if !is_enough {
            is_enough = enough(&reports);
            assert!(
                is_enough || reports.len() < REPORTS_MAX,
                "waited in vain: {what}; the last report: {line}"
            );
            if is_enough {
                running.interrupt();
            }
        }
    }
    let status = running.wait().expect("ours");
    errors.rewind().expect("from the start");
    println!("$ {command:?}\n{status}");
    println!("{}", std::io::read_to_string(errors).expect("UTF-8"));
    assert!(is_enough, "{status} before {what}: {reports:?}");
    // A command of its own is interrupted as well, and its status is passed on.
    assert!(matches!(status.code(), Some(0 | 130)), "{status}");
    reports
}

/// The reports of `--format json`.
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

/// The sum of a field over all reports.
pub fn sum(reports: &[Value], field: &str) -> u64 {
    reports.iter().map(|report| number(report, field)).sum()
}

pub fn list<'a>(report: &'a Value, field: &str) -> &'a [Value] {
    report[field]
        .as_array()
        .unwrap_or_else(|| panic!("{field} is a list"))
}

/// Self samples of a function over all reports.
pub fn self_samples(reports: &[Value], name: &str) -> u64 {
    let functions = reports.iter().flat_map(|report| list(report, "functions"));
    functions
        .filter(|function| function["name"] == name)
        .map(|function| number(function, "self"))
        .sum()
}

/// Half the width of the band in which a measured share must lie: three
/// standard deviations, and one point in a hundred for the loops around the
/// work.
pub fn band(share: f64, samples: f64) -> f64 {
    3.0 * (share * (1.0 - share) / samples).sqrt() + 0.01
}
