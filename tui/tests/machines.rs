//! `proftop open ssh://…`: several machines on one screen. A script takes the place of ssh, and
//! runs here what ssh would run on another machine.

use crate::common;

use common::dialog::Dialog;
use common::{BURN_FUNCTIONS, PROFTOP, burning, can_sample, proftop, run, text};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use test_support::{Scratch, wait_for, wait_until};

/// Runs its last words by a shell, as the shell of another machine would. The process that runs
/// them has the pid of the script, which it writes to a file.
const SSH: &str = r#"#!/bin/sh
while [ "$1" != -- ]; do shift; done
host=$2
shift 2
case $host in
denied) echo "ann@denied: Permission denied (publickey)." >&2; exit 255 ;;
refused) echo "ssh: connect to host refused port 22: Connection refused" >&2; exit 255 ;;
noisy) echo "Welcome to noisy" ; echo "It is late" ;;
esac
echo $$ > "$PROFTOP_TEST_PIDS/$host"
exec sh -c "exec $*"
"#;

/// Makes the folder with the script in the place of ssh, for the pids of the processes it runs.
fn machines() -> Scratch {
    let folder = Scratch::new();
    let script = folder.write("ssh", SSH);
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("ours");
    folder
}

fn open(folder: &Path, words: &[&str]) -> std::process::Command {
    let mut command = proftop(&["open", "--plain", "--fresh"]);
    command.args(words);
    command.env("PROFTOP_SSH", folder.join("ssh"));
    command.env("PROFTOP_TEST_PIDS", folder);
    command
}

/// Returns the process that samples for a machine.
fn pid_on(folder: &Path, host: &str) -> Pid {
    wait_for("it is started there", || {
        let told = fs::read_to_string(folder.join(host)).ok()?;
        Pid::from_raw(told.trim().parse().ok()?)
    })
}

#[test]
fn machines_are_shown_as_one_and_told_apart() {
    if !can_sample() {
        return;
    }
    let folder = machines();
    let folder = folder.path();
    let burn = burning(2);
    let pid = burn.pid().to_string();
    let addresses = ["one", "noisy", "refused"].map(|host| format!("ssh://{host}{PROFTOP}"));
    let [one, noisy, refused] = addresses.each_ref().map(String::as_str);
    let words = [one, noisy, refused, "--", "-p", &pid, "-F", "499"];
    let mut dialog = Dialog::of(open(folder, &words));
    let both = [
        format!("burn[{pid}] on one"),
        format!("burn[{pid}] on noisy"),
    ];
    let both = both.each_ref().map(String::as_str);
    dialog.ask_until("processes", &both);
    // A function is one row, whichever machine it runs on.
    let top = dialog.ask_until("top", &[BURN_FUNCTIONS[0]]);
    let rows = top.lines().filter(|line| line.contains(BURN_FUNCTIONS[0]));
    assert_eq!(rows.count(), 1, "{top}");
    // The machine that does not answer is named, with the reason.
    let health = dialog.ask("health");
    assert!(
        health.contains("gone: ssh: connect to host refused port 22: Connection refused"),
        "{health}"
    );
    assert_eq!(health.matches("samples come").count(), 2, "{health}");
    // One of the machines alone.
    dialog.ask("filter host:one");
    wait_until("only that one", || {
        let processes = dialog.ask("processes");
        processes.contains(both[0]) && !processes.contains(both[1])
    });
    dialog.ask("filter none");
    // From a function to the machines that it runs on.
    dialog.ask(&format!("focus {}", BURN_FUNCTIONS[0]));
    let machines = dialog.ask_until("machines", &["one, 1 process", "noisy, 1 process"]);
    let most = format!("most in {}", BURN_FUNCTIONS[0]);
    assert_eq!(machines.matches(&most).count(), 2, "{machines}");
    dialog.ask("back");
    // One machine goes. The samples that it has sent stay, and the notice names it.
    let there = ["one", "noisy"].map(|host| pid_on(folder, host));
    kill_process(there[1], Signal::KILL).expect("it runs");
    dialog.ask_until("health", &["gone: ssh was killed"]);
    let status = dialog.ask("status");
    assert!(status.contains("GONE   noisy (and 1 more"), "{status}");
    dialog.ask("window all");
    dialog.ask_until("processes", &both);
    // After the screen is left, nothing runs on the machines.
    dialog.finish();
    wait_until("it ends there", || test_kill_process(there[0]).is_err());
}

#[test]
fn where_no_machine_answers_each_says_why() {
    let folder = machines();
    let output = run(&mut open(
        folder.path(),
        &["ssh://refused", "ssh://one/no/such/proftop"],
    ));
    assert_eq!(output.status.code(), Some(4));
    let error = text(&output.stderr);
    for part in [
        "no machine sends samples",
        "refused: ssh: connect to host refused port 22: Connection refused",
        "one: no proftop in the PATH there",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    // A single machine is named in the first line.
    let output = run(&mut open(folder.path(), &["ssh://refused"]));
    let error = text(&output.stderr);
    assert!(
        error.starts_with("proftop: refused: ssh: connect"),
        "{error}"
    );
    let output = run(&mut open(folder.path(), &["ssh://denied"]));
    let error = text(&output.stderr);
    assert!(
        error.contains("(publickey).; ssh may ask for nothing here"),
        "{error}"
    );
    // The proftop on the other machine itself says what it cannot do.
    let there = format!("ssh://one{PROFTOP}");
    let output = run(&mut open(folder.path(), &[&there, "--", "-p", "4194304"]));
    let error = text(&output.stderr);
    assert!(error.contains("one: no process 4194304"), "{error}");
    let mut without_ssh = open(folder.path(), &["ssh://one"]);
    let output = run(without_ssh.env("PROFTOP_SSH", "/no/such/ssh"));
    assert!(text(&output.stderr).contains("/no/such/ssh is not installed"));
}

#[test]
fn mistakes_are_told_before_anything_connects() {
    let folder = machines();
    for (words, sentence) in [
        (&["ssh://a", "ssh://a"][..], "a is named twice"),
        (&["ssh://-oProxyCommand=x"], "is no address of a machine"),
        (&["ssh://a", "b.pft"], "b.pft is no address of a machine"),
        (&["a.pft", "b.pft"], "proftop merge puts several together"),
        (
            &["a.pft", "--", "-F", "49"],
            "options behind -- are for machines",
        ),
        (
            &["ssh://a", "--", "-F", "0"],
            "of the options of record behind --",
        ),
        (
            &["ssh://a", "--", "-o", "x.pft"],
            "of the options of record behind --",
        ),
        (&["ssh://a", "--", "--ring", "10m"], "does not keep a ring"),
        (&["ssh://a", "--", "--", "ls"], "does not start a command"),
    ] {
        let output = run(&mut open(folder.path(), words));
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.contains(sentence), "{words:?}: {error}");
    }
    assert!(!folder.path().join("a").exists(), "nothing was started");
}
