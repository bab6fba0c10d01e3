//! A mistake (panic) on any of proftop's threads costs one piece of work: samples, reports and
//! the screen go on, and proftop reports the mistake. The tests cause the mistakes by
//! `PROFTOP_TEST_FAULTS`, once each.

use crate::common;

use common::tmux::Terminal;
use common::{PROFTOP, burn_str, burning, can_sample, list, number, proftop, reports, run};
use common::{side_by_side, text};
use std::fs;
use std::path::Path;
use std::process::Command;
use test_support::{Process, Scratch, compile};

/// Work that is done while samples are taken and reports are written.
const OF_REPORTS: [&str; 12] = [
    "taking samples",
    "counting samples",
    "making a report",
    "reading unwind tables",
    "waiting for a signal",
    "reading titles",
    "finding names",
    "finding source lines",
    "reading symbols",
    "reading files of targets",
    "writing a report",
    "reading headers of files",
];

/// Work that only the screen does.
const OF_THE_SCREEN: [&str; 6] = [
    "watching the terminal",
    "answering an event",
    "drawing the screen",
    "writing to the terminal",
    "answering a view's question",
    "finding code",
];

#[test]
fn a_mistake_costs_reports_one_piece_of_work() {
    if !can_sample() {
        return;
    }
    let burn = burning(1);
    let pid = burn.pid().to_string();
    // With a cache of tables and lines, there would be nothing to read.
    let all = OF_REPORTS.map(|work| ("bpf", work)).into_iter();
    let all: Vec<_> = all
        .chain(OF_REPORTS[..6].iter().map(|work| ("perf", *work)))
        .collect();
    side_by_side(&all, |(engine, work)| {
        let home = tempfile::tempdir().expect("a folder");
        let args = ["-b", "--format", "json", "-d", "1", "-n", "2", "-F", "499"];
        let mut command = proftop(&args);
        command.args(["--engine", engine, "-p", &pid]);
        command.env("PROFTOP_CACHE", home.path());
        command.env("PROFTOP_TEST_FAULTS", work);
        let output = run(&mut command);
        let said = text(&output.stderr);
        assert!(output.status.success(), "{engine}, {work}: {said}");
        let reports = reports(&output.stdout);
        let last = reports.last().expect("a report");
        // The load has the lowest priority, and may get no CPU time for a second.
        assert!(number(last, "samples_run") > 0, "{engine}, {work}: {last}");
        // A process of its own reads the files, and is started again.
        if *work != "reading files of targets" {
            // Each process that parses files makes the mistake once.
            let told = format!("a mistake of its own while {work}");
            let is_it = |line: &str| line.contains(&told) && line.contains(": a fault that a test");
            assert!(said.lines().any(is_it), "{engine}, {work}: {said}");
        }
        assert!(!said.contains("panicked"), "{said}");
    });
}

/// Threads of a program of which two always wait for a lock.
const LOCKS: &str = "
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned sum;
static void *work(void *nothing) {
    for (;;) {
        pthread_mutex_lock(&lock);
        for (unsigned i = 0; i < 10000000; i++) sum += i;
        pthread_mutex_unlock(&lock);
    }
    return nothing;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
    work(0);
}
";

#[test]
fn a_mistake_on_a_thread_that_only_some_reports_need_costs_one_piece_of_work() {
    if !can_sample() {
        return;
    }
    let scratch = Scratch::new();
    let (source, program) = (scratch.write("locks.c", LOCKS), scratch.join("locks"));
    if compile(&source, &program, ["-O1", "-pthread"]).is_none() {
        return;
    }
    let _locks = Process::start_load(&mut Command::new(&program));
    let mut python = Command::new("/usr/bin/python3");
    python.args(["-c", "while True: sum(range(1000))"]);
    let python = Path::new("/usr/bin/python3")
        .exists()
        .then(|| Process::start_load(&mut python));
    let waits = "reading stacks of threads that wait";
    let structures = "reading Python's structures";
    let all = [
        (waits, &["--metric", "off-cpu"][..]),
        ("reading locks", &["--metric", "off-cpu"]),
        (structures, &["--engine", "bpf"]),
        (structures, &["--engine", "perf"]),
    ];
    side_by_side(&all, |(work, args)| {
        if *work == structures && python.is_none() {
            return;
        }
        let mut command = proftop(&["-b", "--format", "json", "-d", "1", "-n", "3"]);
        let output = run(command.args(*args).env("PROFTOP_TEST_FAULTS", work));
        let said = text(&output.stderr);
        assert!(output.status.success(), "{work}: {said}");
        let reports = reports(&output.stdout);
        assert_eq!(reports.len(), 3, "{work}: {said}");
        let last = reports.last().expect("there are three");
        assert!(!list(last, "functions").is_empty(), "{work}: {last}");
        let told = format!("a mistake of its own while {work}");
        assert!(said.contains(&told), "{work}: {said}");
    });
}

#[test]
fn a_mistake_at_the_control_socket_costs_the_socket_only() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let (socket, file) = (path("control"), path("a.pft"));
    let mut command = proftop(&["record", "--ring", "10s", "-d", "2"]);
    command.arg("--control").arg(&socket).arg("-o").arg(&file);
    let work = "listening at the control socket";
    let output = run(command.env("PROFTOP_TEST_FAULTS", work));
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let told = format!("a mistake of its own while {work}");
    assert!(said.contains(&told), "{said}");
    let report = run(proftop(&["report"]).arg(&file));
    assert!(report.status.success(), "{}", text(&report.stderr));
}

#[test]
fn a_mistake_does_not_end_the_screen() {
    if !can_sample() {
        return;
    }
    let of_reports = OF_REPORTS
        .iter()
        .filter(|work| **work != "waiting for a signal");
    let all: Vec<_> = of_reports.take(7).chain(&OF_THE_SCREEN).collect();
    side_by_side(&all, |work| {
        let Some(terminal) = Terminal::open(80, 24) else {
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().to_str().expect("UTF-8");
        let errors = folder.path().join("errors");
        let burn = burn_str();
        terminal.type_line(&format!(
            "PROFTOP_CACHE={home} XDG_STATE_HOME={home} PROFTOP_TEST_FAULTS=\"{work}\" \
             {PROFTOP} -F 499 -- {burn} 60 2>{}",
            errors.display()
        ));
        terminal.wait_for("SELF%");
        if **work == "answering a view's question" {
            // Opens a view that asks such a question.
            terminal.keys(&["2"]);
        }
        if **work == "finding code" {
            terminal.wait_for("burn::burn_sixty");
            terminal.keys(&["a"]);
            terminal.wait_for("damaged in a way that is new to us");
        }
        terminal.wait_for("proftop made a mistake");
        terminal.keys(&["2"]);
        // The tree is drawn, with samples that come in.
        terminal.wait_for("TOP-DOWN");
        terminal.keys(&["1"]);
        terminal.wait_for("burn::burn_sixty");
        terminal.keys(&["q"]);
        terminal.wait_for_shell();
        let said = fs::read_to_string(&errors).expect("written");
        let told = format!("a mistake of its own while {work}");
        assert!(said.contains(&told), "{work}: {said}");
    });
}

#[test]
fn a_mistake_that_is_made_again_and_again_ends_with_the_reason() {
    if !can_sample() {
        return;
    }
    let mut command = proftop(&["-b", "-d", "1", "-n", "30"]);
    let work = ["taking samples"; 5].join(",");
    let output = run(command.env("PROFTOP_TEST_FAULTS", work));
    let said = text(&output.stderr);
    assert!(!output.status.success());
    assert!(
        said.contains("sampling has ended: proftop made the same mistake again and again"),
        "{said}"
    );
    assert!(said.contains("taking samples, 3 times"), "{said}");
}

#[test]
fn a_mistake_while_a_file_is_read_is_told() {
    let mut command = proftop(&["demo", "--plain"]);
    let output = run(command.env("PROFTOP_TEST_FAULTS", "reading the file"));
    let said = text(&output.stderr);
    assert!(!output.status.success());
    assert!(
        said.contains("a mistake of its own while reading the file"),
        "{said}"
    );
}

#[test]
fn a_mistake_while_a_command_is_started_is_told() {
    if !can_sample() {
        return;
    }
    let mut command = proftop(&["-b", "-n", "1", "--", "true"]);
    let output = run(command.env("PROFTOP_TEST_FAULTS", "starting a command"));
    let said = text(&output.stderr);
    assert!(!output.status.success());
    assert!(
        said.contains("a mistake of its own while starting a command"),
        "{said}"
    );
}

#[test]
fn a_mistake_with_files_of_the_user_is_told() {
    if !can_sample() {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        test_support::skip("only root works for another user");
        return;
    }
    let mut command = proftop(&["-b", "-n", "1", "-d", "1"]);
    command.env("SUDO_UID", "60321").env("SUDO_GID", "60321");
    let work = "reading or writing files of the user";
    let output = run(command.env("PROFTOP_TEST_FAULTS", work));
    let said = text(&output.stderr);
    let told = format!("a mistake of its own while {work}");
    assert!(said.contains(&told), "{said}");
    // The command went on without that file.
    assert!(output.status.success(), "{said}");
}
