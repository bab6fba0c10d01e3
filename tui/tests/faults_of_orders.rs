//! A mistake (panic) of proftop in something that the user asks for while it runs, or of a program
//! that is not the screen: it costs one answer, and the next one is right.

use crate::common;

use common::dialog::Dialog;
use common::mistakes::{VARIABLE, assert_told};
use common::traced::can_trace;
use common::{PROFTOP, SSH_HERE, burning, can_sample, proftop, run, side_by_side, text};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use test_support::{NO_PYTHON, Process, Scratch, compile, pythons, skip, wait_for, wait_until};

/// Work that a line of the dialog needs.
pub const OF_A_DIALOG: [&str; 5] = [
    "answering a line",
    "following waits",
    "asking the kernel",
    "looking for a function",
    "watching calls",
];

/// Work of `doctor -p`.
pub const OF_DOCTOR: [&str; 2] = [
    "finding out what a file offers",
    "reading databases of packages",
];

/// Work for `open ssh://HOST`.
pub const OF_MACHINES: [&str; 2] = ["reading what a machine sends", "publishing snapshots"];

/// Work for source text in an archive.
pub const ARCHIVES: &str = "reading archives";

/// A program that calls a function that can have a probe.
const CALLS: &str = "
static volatile unsigned sum;
__attribute__((noinline)) void counted(unsigned rounds) { while (rounds--) sum += rounds; }
int main(void) { for (;;) counted(1000000); }
";

/// Starts that program. None where it cannot be compiled.
fn calling() -> Option<(Scratch, Process)> {
    let scratch = Scratch::new();
    let (source, program) = (scratch.write("calls.c", CALLS), scratch.join("calls"));
    compile(&source, &program, ["-O1", "-g"])?;
    let process = Process::start_load(&mut Command::new(&program));
    Some((scratch, process))
}

#[test]
fn a_mistake_costs_one_answer_of_the_dialog() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some((scratch, calls)) = calling() else {
        return;
    };
    let pid = calls.pid().to_string();
    let [line, waits, kernel, function, watching] = OF_A_DIALOG;
    // The line in which the mistake is made, what is said then, and what the same line does later.
    let all = [
        (
            line,
            "top",
            "made a mistake while answering a line",
            "counted",
        ),
        (
            waits,
            "metric off-cpu",
            "made a mistake while following waits",
            // Waits are not followed in this run, and the answer says why.
            "while following waits",
        ),
        (
            kernel,
            "probe counted",
            "calls cannot be watched: proftop made a mistake",
            "is on counted",
        ),
        (
            function,
            "probe counted",
            "made a mistake while looking for a function",
            "is on counted",
        ),
        (
            watching,
            "probe counted",
            "made a mistake while watching calls",
            "is on counted",
        ),
    ];
    side_by_side(&all, |&(work, line, said, later)| {
        let errors = scratch.join(work.replace(' ', "-"));
        let mut command = proftop(&["--plain", "-p", &pid]);
        command.stderr(fs::File::create(&errors).expect("a file"));
        command.env(VARIABLE, work);
        let mut dialog = Dialog::of(command);
        let first = if line.starts_with("probe") {
            dialog.probe("counted")
        } else {
            dialog.ask(line)
        };
        assert!(first.contains(said), "{work}: {first}");
        dialog.ask_until(line, &[later]);
        // Samples go on.
        dialog.ask_until("metric on-cpu", &["counted is on-CPU"]);
        dialog.ask_until("top", &["counted"]);
        dialog.finish();
        assert_told(&fs::read_to_string(&errors).expect("written"), work);
    });
}

#[test]
fn a_mistake_costs_doctor_one_answer() {
    if !can_sample() {
        return;
    }
    let burn = burning(1);
    let pid = burn.pid().to_string();
    side_by_side(&OF_DOCTOR, |&work| {
        // On a machine that is too busy a file is not read in time, and nothing is asked about it.
        let said = wait_for(work, || {
            let output = run(proftop(&["doctor", "-p", &pid]).env(VARIABLE, work));
            // What comes after the mistake is there.
            let found = text(&output.stdout);
            assert_eq!(output.status.code(), Some(0), "{work}: {found}");
            assert!(found.contains("no problems"), "{work}: {found}");
            Some(text(&output.stderr)).filter(|said| !said.is_empty())
        });
        assert_told(&said, work);
    });
}

#[test]
fn a_mistake_costs_one_machine_and_ends_with_the_reason_if_it_is_about_all() {
    if !can_sample() {
        return;
    }
    let scratch = Scratch::new();
    let ssh = scratch.write("ssh", format!("#!/bin/sh\n{SSH_HERE}\n"));
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).expect("ours");
    let burn = burning(1);
    let pid = burn.pid().to_string();
    let addresses = ["one", "two"].map(|host| format!("ssh://{host}{PROFTOP}"));
    let start = |work: &str| {
        let mut command = proftop(&["open", "--plain", "--fresh"]);
        command.args(&addresses).args(["--", "-p", &pid]);
        let errors = fs::File::create(scratch.join("errors")).expect("a file");
        command.env("PROFTOP_SSH", &ssh).env(VARIABLE, work);
        command.stderr(errors);
        command
    };
    let said = || fs::read_to_string(scratch.join("errors")).expect("written");

    let [machine, snapshots] = OF_MACHINES;
    let mut dialog = Dialog::of(start(machine));
    dialog.ask_until(
        "health",
        &["gone: proftop made a mistake while", "samples come"],
    );
    dialog.ask_until("top", &["burn::burn_sixty"]);
    dialog.finish();
    assert_told(&said(), machine);

    // It would end as well at the end of its input.
    let mut open = Process::start(start(snapshots).stdin(Stdio::piped()).stdout(Stdio::null()));
    let status = wait_for("it ends", || open.try_wait().expect("ours"));
    assert_eq!(status.code(), Some(1));
    assert_told(&said(), snapshots);
    assert!(said().contains("cannot go on"), "{}", said());
}

/// A program whose only file is in an archive.
const ARCHIVE: &str = r#"
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    archive.writestr("__main__.py", "def in_archive():\n    while True:\n        sum(range(1000))\nin_archive()\n")
"#;

#[test]
fn a_mistake_costs_the_text_of_an_archive() {
    if !can_sample() {
        return;
    }
    let Some(python) = pythons().into_values().next_back() else {
        return skip(NO_PYTHON);
    };
    let scratch = Scratch::new();
    let archive = scratch.join("app.zip");
    let made = Command::new(&python)
        .args(["-c", ARCHIVE])
        .arg(&archive)
        .status();
    assert!(made.expect("it starts").success());
    let process = Process::start_load(Command::new(&python).arg(&archive));
    let pid = process.pid().to_string();
    let errors = scratch.join("errors");
    let mut command = proftop(&["--plain", "-p", &pid]);
    command.stderr(fs::File::create(&errors).expect("a file"));
    let mut dialog = Dialog::of({
        command.env(VARIABLE, ARCHIVES);
        command
    });
    wait_until("the function has a row, and its code an answer", || {
        let top = dialog.ask("top");
        let row = top.lines().find(|line| line.contains("in_archive"));
        let row = row.and_then(|row| row.split_whitespace().next().map(str::to_owned));
        row.is_some_and(|row| dialog.ask(&format!("code {row}")).contains("app.zip"))
    });
    // The text is there when it is asked for again.
    dialog.ask_until("top", &["in_archive"]);
    dialog.finish();
    assert_told(&fs::read_to_string(&errors).expect("written"), ARCHIVES);
}
