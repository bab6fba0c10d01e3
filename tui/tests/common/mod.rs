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
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// No machine is so busy that something takes longer than this.
pub const DEADLINE: Duration = Duration::from_secs(30);

pub const PROFTOP: &str = env!("CARGO_BIN_EXE_proftop");

/// Says what is not tested here.
pub fn skip(why: &str) {
    // Not `eprintln`: the test harness would keep it to itself.
    _ = writeln!(std::io::stderr(), "skipped: {why}");
}

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

/// A process that ends with the test, and all that it started with it.
pub struct Process(pub Child);

impl Process {
    pub fn start(command: &mut Command) -> Self {
        use std::os::unix::process::CommandExt as _;
        Self(command.process_group(0).spawn().expect("it starts"))
    }

    pub fn burn(seconds: u32, threads: u32) -> Self {
        let mut command = Command::new(burn());
        command.args([seconds.to_string(), threads.to_string()]);
        Self::start(command.stdout(std::process::Stdio::null()))
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, signal).expect("it lives");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

/// Waits until it holds.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < end, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
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
