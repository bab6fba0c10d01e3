//! `--comm`, `-p`, `-t`, `-g`, `--no-children`: only the chosen tasks are sampled.

use crate::common;

use common::group::Group;
use common::{BURN_THREADS, burning, can_sample, list, number, proftop, reports_until};
use common::{reports, run, sum};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use test_support::{Process, wait_for};

/// Returns the threads of all reports of a run, which goes on until these are enough, and the
/// last report.
fn report(args: &[&str], what: &str, enough: impl Fn(&Seen) -> bool) -> (Seen, Value) {
    let mut command = proftop(&["-b", "--format", "json", "-d", "0.5", "-F", "499"]);
    let mut reports = reports_until(command.args(args), what, |reports| {
        enough(&Seen::new(reports))
    });
    let seen = Seen::new(&reports);
    (seen, reports.pop().expect("waited for"))
}

/// The threads that were sampled.
struct Seen {
    pids: BTreeSet<u64>,
    tids: BTreeSet<u64>,
    names: BTreeSet<String>,
    samples: u64,
}

impl Seen {
    fn new(reports: &[Value]) -> Self {
        let threads = || reports.iter().flat_map(|report| list(report, "threads"));
        let name = |thread: &Value| thread["comm"].as_str().expect("a name").to_owned();
        Self {
            pids: threads().map(|thread| number(thread, "pid")).collect(),
            tids: threads().map(|thread| number(thread, "tid")).collect(),
            names: threads().map(name).collect(),
            samples: sum(reports, "samples"),
        }
    }

    fn has_many(&self) -> bool {
        self.samples > 100
    }
}

/// Starts a process that burns CPU time, and others beside it.
fn busy() -> Option<(Process, Process)> {
    can_sample().then(|| (burning(2), burning(1)))
}

#[test]
fn a_process() {
    let Some((burn, _other)) = busy() else {
        return;
    };
    // The first thread works until it has started the others.
    for name in BURN_THREADS {
        thread_of(burn.pid(), name);
    }
    let pid = burn.pid().to_string();
    let (seen, last) = report(&["-p", &pid], "both threads", |seen| {
        seen.has_many() && seen.tids.len() >= 2
    });
    assert_eq!(seen.pids, [u64::from(burn.pid())].into());
    assert_eq!(seen.names, BURN_THREADS.map(String::from).into());
    assert_eq!(last["pids"][0], burn.pid());
}

#[test]
fn a_thread() {
    let Some((burn, _other)) = busy() else {
        return;
    };
    let tid = thread_of(burn.pid(), BURN_THREADS[1]);
    let (seen, _) = report(&["-t", &tid.to_string()], "samples", Seen::has_many);
    assert_eq!(seen.tids, [tid].into());
}

/// Returns the thread with that name, once it runs.
fn thread_of(pid: u32, name: &str) -> u64 {
    wait_for("a thread", || {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
        tasks.flatten().find_map(|task| {
            let comm = fs::read_to_string(task.path().join("comm")).ok()?;
            (comm.trim_end() == name).then(|| task.file_name().to_str()?.parse().ok())?
        })
    })
}

#[test]
fn a_name() {
    let Some((_burn, _other)) = busy() else {
        return;
    };
    let (seen, _) = report(&["--comm", "odd$"], "samples", Seen::has_many);
    assert_eq!(seen.names, [BURN_THREADS[1].to_owned()].into());
}

#[test]
fn children_or_not() {
    if !can_sample() {
        return;
    }
    let script = format!("while '{}' 0.3 1; do :; done", common::burn_str());
    let parent = Process::start_load(
        Command::new("sh")
            .args(["-c", &script])
            .stdout(std::process::Stdio::null()),
    );
    let pid = parent.pid().to_string();
    report(&["-p", &pid], "both children", |seen| seen.pids.len() >= 2);
    // The shell starts others in so little time that it is hardly ever sampled.
    let output = run(&mut proftop(&[
        "-b",
        "--format",
        "json",
        "-n",
        "1",
        "-d",
        "1",
        "--no-children",
        "-p",
        &pid,
    ]));
    assert!(matches!(output.status.code(), Some(0 | 5)));
    let seen = Seen::new(&reports(&output.stdout));
    assert!(
        seen.pids
            .iter()
            .all(|seen| *seen == u64::from(parent.pid()))
    );
}

#[test]
fn a_control_group() {
    if !can_sample() {
        return;
    }
    let Some(group) = Group::make("proftop-test") else {
        return;
    };
    let (burn, _other) = (burning(1), burning(1));
    group.add(burn.pid());
    let name = group.name();
    let (seen, report) = report(&["-g", name], "samples", Seen::has_many);
    assert_eq!(seen.pids, [u64::from(burn.pid())].into());
    let last = Path::new(name).file_name().and_then(|name| name.to_str());
    let scope = report["scope"].as_str().expect("a scope");
    assert!(scope.contains(last.expect("a name")), "{scope}");
}
