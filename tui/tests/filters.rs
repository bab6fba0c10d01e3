//! `--comm`, `-p`, `-t`, `-g`, `--no-children`: only what was asked for.

mod common;

use common::{BURN_THREADS, Machine, burning, list, machine, number, proftop, reports, run};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use test_support::{Process, skip, wait_until};

/// One report of half a second.
fn report(args: &[&str]) -> Value {
    let mut command = proftop(&[
        "-b", "--format", "json", "-n", "1", "-d", "0.7", "-F", "499",
    ]);
    let output = run(command.args(args));
    assert_eq!(output.status.code(), Some(0));
    reports(&output.stdout).remove(0)
}

/// Who was sampled: pids and names of threads.
fn seen(report: &Value) -> (Vec<u64>, Vec<String>) {
    let threads = list(report, "threads");
    let pids = threads.iter().map(|thread| number(thread, "pid"));
    let names = threads
        .iter()
        .map(|thread| thread["comm"].as_str().expect("a name").to_owned());
    let (mut pids, mut names): (Vec<u64>, Vec<String>) = (pids.collect(), names.collect());
    pids.sort_unstable();
    pids.dedup();
    names.sort();
    names.dedup();
    (pids, names)
}

/// A burning process, and others that burn beside it.
fn busy() -> Option<(Machine, Process, Process)> {
    let machine = machine()?;
    Some((machine, burning(30, 2), burning(30, 1)))
}

#[test]
fn a_process() {
    let Some((_machine, burn, _other)) = busy() else {
        return;
    };
    let report = report(&["-p", &burn.pid().to_string()]);
    assert_eq!(seen(&report).0, [u64::from(burn.pid())]);
    assert_eq!(seen(&report).1, BURN_THREADS);
    assert_eq!(report["pids"][0], burn.pid());
}

#[test]
fn a_thread() {
    let Some((_machine, burn, _other)) = busy() else {
        return;
    };
    let tid = common_thread(burn.pid(), BURN_THREADS[1]);
    let report = report(&["-t", &tid.to_string()]);
    let tids: Vec<u64> = list(&report, "threads")
        .iter()
        .map(|thread| number(thread, "tid"))
        .collect();
    assert_eq!(tids, [tid]);
}

/// The thread of that name, once it runs.
fn common_thread(pid: u32, name: &str) -> u64 {
    let mut found = None;
    wait_until("a thread", || {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
        found = tasks.flatten().find_map(|task| {
            let comm = fs::read_to_string(task.path().join("comm")).ok()?;
            (comm.trim_end() == name).then(|| task.file_name().to_str()?.parse().ok())?
        });
        found.is_some()
    });
    found.expect("found")
}

#[test]
fn a_name() {
    let Some((_machine, _burn, _other)) = busy() else {
        return;
    };
    let report = report(&["--comm", "odd$"]);
    assert_eq!(seen(&report).1, [BURN_THREADS[1]]);
}

#[test]
fn children_or_not() {
    let Some(_machine) = machine() else { return };
    let script = format!("while '{}' 0.3 1; do :; done", common::burn_str());
    let parent = Process::start(
        Command::new("sh")
            .args(["-c", &script])
            .stdout(std::process::Stdio::null()),
    );
    let pid = parent.pid().to_string();
    let all = report(&["-p", &pid]);
    assert!(seen(&all).0.len() >= 2, "{:?}", seen(&all));
    let output = run(&mut proftop(&[
        "-b",
        "-n",
        "1",
        "-d",
        "0.3",
        "--no-children",
        "-p",
        &pid,
    ]));
    assert_eq!(output.status.code(), Some(5), "the shell only waits");
}

/// A control group that goes away with the test.
struct Group(PathBuf);

impl Group {
    fn make(name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        let unified = mounts.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            (fields.get(2) == Some(&"cgroup2")).then(|| PathBuf::from(fields[1]))
        })?;
        let path = unified.join(format!("{name}-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        Some(Self(path))
    }

    fn add(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).expect("it lives");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        wait_until("the group is empty", || fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn a_control_group() {
    let Some(_machine) = machine() else { return };
    let Some(group) = Group::make("proftop-test") else {
        skip("needs a writable cgroup2 hierarchy");
        return;
    };
    let (burn, _other) = (burning(30, 1), burning(30, 1));
    group.add(burn.pid());
    let name = group.0.to_str().expect("UTF-8");
    let report = report(&["-g", name]);
    assert_eq!(seen(&report).0, [u64::from(burn.pid())]);
    let last = Path::new(name).file_name().and_then(|name| name.to_str());
    let scope = report["scope"].as_str().expect("a scope");
    assert!(scope.contains(last.expect("a name")), "{scope}");
}
