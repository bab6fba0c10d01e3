//! What the threads and processes of a running proftop can still do, as the kernel shows it
//! for each.

use crate::common;

use common::pty::Pty;
use common::{can_sample, proftop, start_sampling};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use test_support::{OTHER_USER, wait_for, wait_until};

const DAC_OVERRIDE: u64 = 1 << 1;
const DAC_READ_SEARCH: u64 = 1 << 2;
const SETGID: u64 = 1 << 6;
const SETUID: u64 = 1 << 7;
const SYS_MODULE: u64 = 1 << 16;
const SYS_RAWIO: u64 = 1 << 17;
const SYS_PTRACE: u64 = 1 << 19;
const SYS_ADMIN: u64 = 1 << 21;
const SYSLOG: u64 = 1 << 34;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;
const CHECKPOINT_RESTORE: u64 = 1 << 40;

/// The text of `/proc/…/status` of a thread.
#[derive(Debug, Clone)]
struct Status(String);

impl Status {
    fn field(&self, name: &str) -> &str {
        let line = self.0.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name} in {}", self.0))
            .trim()
    }

    /// Returns the permitted capabilities, which include the effective ones.
    fn permitted(&self) -> u64 {
        let permitted = u64::from_str_radix(self.field("CapPrm:"), 16).expect("a mask");
        let effective = u64::from_str_radix(self.field("CapEff:"), 16).expect("a mask");
        assert_eq!(effective & !permitted, 0);
        permitted
    }

    fn is_filtered(&self) -> bool {
        self.field("Seccomp:") == "2" && self.field("NoNewPrivs:") == "1"
    }
}

/// Returns the statuses of the threads of a process, by the names of the threads.
fn threads(pid: u32) -> BTreeMap<String, Vec<Status>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
    let mut by_name: BTreeMap<String, Vec<Status>> = BTreeMap::new();
    for task in tasks.flatten() {
        // A thread that has ended meanwhile is left out.
        if let Ok(status) = fs::read_to_string(task.path().join("status")) {
            let status = Status(status);
            by_name
                .entry(status.field("Name:").into())
                .or_default()
                .push(status);
        }
    }
    by_name
}

fn children(pid: u32) -> Vec<u32> {
    assert!(status(pid).is_some(), "it lives");
    common::children(pid, pid)
}

/// Returns the status of a process, unless it has ended.
fn status(pid: u32) -> Option<Status> {
    fs::read_to_string(format!("/proc/{pid}/status"))
        .ok()
        .map(Status)
}

/// Returns the process that forks readers and parsers, and those children with this name.
fn forked(pid: u32, name: &str) -> (Status, Vec<Status>) {
    let spawner = children(pid)[0];
    let forked = children(spawner)
        .into_iter()
        .filter_map(status)
        .filter(|status| status.field("Name:") == name);
    (status(spawner).expect("it lives"), forked.collect())
}

/// Makes a folder that only this user can read, for the caches of a test.
fn caches() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    (folder, path)
}

/// Threads that look at processes.
const LOOKING: [&str; 5] = ["titles", "python", "open waits", "locks", "sites"];

/// Threads that parse, or ask those who do.
const PARSING: [&str; 7] = [
    "naming", "lines", "tables", "answers", "reports", "beside", "code",
];

/// Whether all threads that look at processes or parse are confined, as far as there are any. One
/// may just have been started, at any time.
fn are_confined(threads: &BTreeMap<String, Vec<Status>>) -> bool {
    let names = LOOKING.iter().chain(&PARSING);
    let all = names.filter_map(|name| threads.get(*name));
    all.flatten().all(Status::is_filtered)
}

fn sampling(caches: &Path) -> test_support::Process {
    let mut command = proftop(&["-b", "-d", "0.5", "--format", "json"]);
    command.env("PROFTOP_CACHE", caches);
    start_sampling(command.stdout(Stdio::null()).stderr(Stdio::null()))
}

#[test]
fn each_thread_has_the_rights_of_its_work_and_no_more() {
    if !can_sample() {
        return;
    }
    let (_folder, caches) = caches();
    let process = sampling(&caches);
    let pid = process.pid();
    const NAMED: [&str; 6] = ["proftop", "sampler", "kernel", "model", "naming", "tables"];
    let threads = wait_for("all threads, confined", || {
        let threads = threads(pid);
        let is_there = NAMED.iter().all(|name| threads.contains_key(*name));
        let of = |name: &str| threads.get(name).into_iter().flatten();
        let all = is_there
            && threads.contains_key("titles")
            && are_confined(&threads)
            && of("model")
                .chain(of("proftop"))
                .all(|own| own.permitted() & BPF == 0);
        all.then_some(threads)
    });
    check(&threads);
}

#[test]
fn so_have_those_of_the_screen() {
    if !can_sample() {
        return;
    }
    let (_folder, caches) = caches();
    let mut terminal = Pty::open(80, 24);
    let mut command = proftop(&[]);
    command
        .env("PROFTOP_CACHE", caches)
        .env("TERM", "xterm-256color");
    terminal.attach(&mut command);
    let process = start_sampling(&mut command);
    let pid = process.pid();
    const NAMED: [&str; 6] = ["answers", "reports", "beside", "code", "naming", "tables"];
    let threads = wait_for("all threads, confined", || {
        let threads = threads(pid);
        let of = |name: &str| threads.get(name).into_iter().flatten();
        let all = NAMED.iter().all(|name| threads.contains_key(*name))
            && are_confined(&threads)
            && of("model").all(|own| own.permitted() & BPF == 0);
        all.then_some(threads)
    });
    check(&threads);
    terminal.press(b"q");
}

/// Fails if a thread has rights that its work does not need.
fn check(threads: &BTreeMap<String, Vec<Status>>) {
    let all = threads.values().flatten();
    for status in all {
        assert_eq!(status.permitted() & SYS_MODULE, 0, "{status:?}");
    }
    for (name, statuses) in threads {
        for status in statuses {
            let permitted = status.permitted();
            let may = |capability| permitted & capability != 0;
            match name.as_str() {
                "sampler" => {
                    assert!(may(BPF) && may(PERFMON), "{name}: {permitted:x}");
                    let others = SETUID | SETGID | DAC_OVERRIDE | SYS_RAWIO;
                    assert_eq!(permitted & others, 0, "{name}: {permitted:x}");
                }
                "kernel" => {
                    let others = SETUID | SETGID | DAC_OVERRIDE;
                    assert_eq!(permitted & others, 0, "{name}: {permitted:x}");
                }
                name if PARSING.contains(&name) => {
                    assert_eq!(
                        permitted & !(SYSLOG | SETUID | SETGID),
                        0,
                        "{name}: {permitted:x}"
                    );
                    assert!(status.is_filtered(), "{name}");
                }
                name if LOOKING.contains(&name) => {
                    let looking = SYS_PTRACE | DAC_READ_SEARCH | SYSLOG;
                    assert_eq!(permitted & !looking, 0, "{name}: {permitted:x}");
                    assert!(status.is_filtered(), "{name}");
                }
                _ => {
                    let kernels = BPF | PERFMON | SYS_ADMIN | SYS_RAWIO;
                    assert_eq!(permitted & kernels, 0, "{name}: {permitted:x}");
                    // Editors and commands that the user starts may be ones that gain rights.
                    assert_eq!(status.field("NoNewPrivs:"), "0", "{name}");
                }
            }
        }
    }
}

#[test]
fn readers_read_everything_and_own_nothing() {
    if !can_sample() {
        return;
    }
    let (_folder, caches) = caches();
    let process = sampling(&caches);
    let mut seen = Vec::new();
    wait_until("readers, confined", || {
        let (spawner, readers) = forked(process.pid(), "proftop-files");
        assert_eq!(spawner.field("NoNewPrivs:"), "1");
        seen = readers;
        !seen.is_empty() && seen.iter().all(Status::is_filtered)
    });
    let is_root = rustix::process::geteuid().is_root();
    for reader in &seen {
        let reading = DAC_READ_SEARCH | SYS_PTRACE | CHECKPOINT_RESTORE;
        assert_eq!(reader.permitted() & !reading, 0, "{reader:?}");
        if is_root {
            let users: Vec<_> = reader.field("Uid:").split_whitespace().collect();
            assert_eq!(users, ["0", "65534", "0", "65534"]);
            assert_eq!(reader.permitted(), reading);
            assert_eq!(reader.field("Groups:"), "");
        }
    }
}

#[test]
fn those_who_understand_files_have_no_rights() {
    if !can_sample() {
        return;
    }
    let (_folder, caches) = caches();
    let process = sampling(&caches);
    let mut seen = Vec::new();
    wait_until("parsers, confined", || {
        (_, seen) = forked(process.pid(), "proftop-parser");
        !seen.is_empty() && seen.iter().all(Status::is_filtered)
    });
    for parser in &seen {
        assert_eq!(parser.permitted(), 0, "{parser:?}");
        if rustix::process::geteuid().is_root() {
            let users: Vec<_> = parser.field("Uid:").split_whitespace().collect();
            assert_eq!(users, ["0", "65534", "0", "65534"]);
            assert_eq!(parser.field("Groups:"), "");
        }
        let pid = parser.field("Pid:");
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
        let memory = limits
            .lines()
            .find(|line| line.starts_with("Max address space"));
        assert!(
            memory.is_none_or(|line| !line.contains("unlimited")),
            "{limits}"
        );
    }
}

#[test]
fn doctor_says_how_far_readers_are_confined() {
    let output = common::run(&mut proftop(&["doctor"]));
    let said = common::text(&output.stdout);
    let line = said
        .lines()
        .find(|line| line.contains("confinement: "))
        .expect("a line on it");
    assert!(line.starts_with("ok "), "{line}");
    assert!(
        line.ends_with("filtered system calls, no new privileges"),
        "{line}"
    );
}

#[test]
fn a_command_has_the_rights_that_we_were_given() {
    if !can_sample() {
        return;
    }
    let script = "grep -E '^Cap(Eff|Prm)|^NoNewPrivs|^Seccomp:' /proc/self/status >&2";
    let mut ours = std::process::Command::new("sh");
    let ours = common::run(ours.args(["-c", script]));
    let args = ["record", "-d", "1", "-o", "/dev/null", "-f", "--"];
    let theirs = common::run(proftop(&args).args(["sh", "-c", script]));
    let said = common::text(&theirs.stderr);
    // `record` itself prints other lines as well.
    for line in common::text(&ours.stderr).lines() {
        assert!(said.lines().any(|own| own == line), "{line} in {said}");
    }
}

/// Starts a command on a recording that comes through a pipe, and returns it with the process that
/// reads the recording.
fn reading(args: &[&str]) -> (Child, Status) {
    let mut command = proftop(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let process = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut reader = None;
    wait_until("a process that reads, confined", || {
        let own = children(process.id()).into_iter().filter_map(status);
        let mut own = own.filter(|own| own.field("Name:") == "proftop-parser");
        reader = own.find(Status::is_filtered);
        reader.is_some()
    });
    (process, reader.expect("it was found"))
}

const DEMO: &[u8] = include_bytes!("../../assets/demo.pft");

#[test]
fn whoever_reads_a_recording_has_no_rights_and_no_files() {
    for args in [
        &["report", "-"][..],
        &["export", "-", "--format", "folded", "-"],
        &["diff", "-", "../assets/demo.pft"],
        &["merge", "-", "-o", "-"],
        &["resolve", "-", "-o", "-"],
    ] {
        let (mut process, reader) = reading(args);
        assert_eq!(reader.permitted(), 0, "{args:?}: {reader:?}");
        if rustix::process::geteuid().is_root() {
            let users: Vec<_> = reader.field("Uid:").split_whitespace().collect();
            assert_eq!(users, ["0", "65534", "0", "65534"]);
            assert_eq!(reader.field("Groups:"), "");
        }
        let pid = reader.field("Pid:");
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).expect("it lives");
        for limit in ["Max address space", "Max cpu time"] {
            let line = limits.lines().find(|line| line.starts_with(limit));
            assert!(
                line.is_some_and(|line| !line.contains("unlimited")),
                "{limits}"
            );
        }
        // Pipes, a socket, the root directory, the list of kernel symbols, and the other recording.
        let open = fs::read_dir(format!("/proc/{pid}/fd")).expect("it lives");
        for file in open.flatten() {
            let leads_to = fs::read_link(file.path()).unwrap_or_default();
            let leads_to = leads_to.to_string_lossy();
            let is_expected = leads_to.starts_with("pipe:")
                || leads_to.starts_with("socket:")
                || leads_to.ends_with("/demo.pft")
                || ["/", "/proc/kallsyms"].contains(&&*leads_to);
            assert!(is_expected, "{args:?}: {leads_to}");
        }
        let mut stdin = process.stdin.take().expect("it is piped");
        stdin.write_all(DEMO).expect("it reads");
        drop(stdin);
        let output = process.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{args:?}: {output:?}");
        assert!(output.stdout.len() > 100, "{args:?}");
    }
}

#[test]
fn a_recording_that_ends_its_reader_is_a_sentence() {
    let (process, reader) = reading(&["export", "-", "--format", "folded", "-"]);
    let pid: i32 = reader.field("Pid:").parse().expect("a number");
    let pid = Pid::from_raw(pid).expect("a process");
    kill_process(pid, Signal::KILL).expect("it lives");
    let output = process.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let said = common::text(&output.stderr);
    assert!(
        said.starts_with("proftop: cannot read the recording\n"),
        "{said}"
    );
}

#[test]
fn a_baseline_is_read_without_rights_and_its_reader_is_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("baseline.pft");
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.is_ok_and(|status| status.success()));
    // Open for both directions, neither side waits for the other to open it.
    let pipe = fs::OpenOptions::new().read(true).write(true).open(&path);
    let _pipe = pipe.expect("it was made");
    let name = path.to_str().expect("a path in UTF-8");
    let (process, reader) = reading(&["demo", "--plain", "--baseline", name]);
    assert_eq!(reader.permitted(), 0, "{reader:?}");
    let pid: i32 = reader.field("Pid:").parse().expect("a number");
    let pid = Pid::from_raw(pid).expect("a process");
    kill_process(pid, Signal::KILL).expect("it lives");
    let output = process.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    let said = common::text(&output.stderr);
    assert!(
        said.starts_with("proftop: cannot read the recording\n"),
        "{said}"
    );
}

#[test]
fn a_recording_on_the_screen_has_the_rights_of_the_user() {
    if !test_support::is_root_or_skip("only root can be called by another user") {
        return;
    }
    for user in [OTHER_USER, 0] {
        let mut terminal = Pty::open(80, 24);
        let mut command = proftop(&["open", "../assets/demo.pft"]);
        command.env("TERM", "xterm-256color");
        if user != 0 {
            command.env("SUDO_UID", user.to_string());
            command.env("SUDO_GID", user.to_string());
        }
        terminal.attach(&mut command);
        let mut process = test_support::Process::start(&mut command);
        terminal.read_until(b"[kernel]");
        let own = children(process.pid()).into_iter().filter_map(status);
        // As root itself it has the readers that it always has.
        let others = own.filter(|own| user != 0 && own.field("Name:") == "proftop-files");
        let threads: Vec<Status> = threads(process.pid()).into_values().flatten().collect();
        for status in threads.into_iter().chain(others) {
            let users: Vec<_> = status.field("Uid:").split_whitespace().collect();
            assert_eq!(users, vec![user.to_string(); 4], "{status:?}");
            let allowed = if user == 0 { DAC_OVERRIDE } else { 0 };
            assert_eq!(status.permitted() & !allowed, 0, "{status:?}");
        }
        terminal.press(b"q");
        wait_until("it ends", || process.try_wait().expect("ours").is_some());
    }
}

#[test]
fn addresses_are_looked_up_with_the_rights_of_the_user() {
    if !test_support::is_root_or_skip("only root can be called by another user") {
        return;
    }
    let own = std::process::id().to_string();
    for args in [&["symbolize", "/bin/sh"][..], &["symbolize", "-p", &own]] {
        let mut command = proftop(args);
        command.env("SUDO_UID", OTHER_USER.to_string());
        command.env("SUDO_GID", OTHER_USER.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("it starts");
        wait_until("one that is confined", || {
            status(process.id()).is_some_and(|status| status.is_filtered())
        });
        for status in threads(process.id()).into_values().flatten() {
            let users: Vec<_> = status.field("Uid:").split_whitespace().collect();
            assert_eq!(users, vec![OTHER_USER.to_string(); 4], "{status:?}");
            assert_eq!(status.permitted(), 0, "{status:?}");
        }
        drop(process.stdin.take());
        assert!(process.wait().expect("it ends").success());
    }
}
