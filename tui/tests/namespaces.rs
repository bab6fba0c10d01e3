//! Processes in namespaces of their own (mounts, users, pids), with a `/tmp` and a program that are
//! seen only there: their functions have names, those made at run time too.

use crate::common;

use common::{can_sample, list, number, proftop, reports_until, side_by_side};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use test_support::{Process, Scratch, cases, skip};

/// The options of `unshare`.
const KINDS: [&str; 5] = [
    "-m",
    "-U -r -m",
    "-m -p -f",
    "-U -r -m -p -f",
    "-U -m -p -f -n -i -u -C -r",
];

/// The functions of the program.
const FUNCTIONS: [&str; 2] = ["known_inside", "made_inside"];

/// Compiles the program. None where that is not possible.
fn compiled(scratch: &Scratch) -> Option<PathBuf> {
    if !cfg!(target_arch = "x86_64") {
        skip("the program makes code for x86-64");
        return None;
    }
    common::compiled(scratch.path(), "inside.c", &["-O1"])
}

/// Starts a command that becomes the program, and waits until its perf map is written.
fn start(command: &mut Command) -> Process {
    let mut process = Process::start_load(command.stdout(Stdio::piped()));
    let output = process.stdout.take().expect("a pipe");
    let ready = BufReader::new(output).lines().next();
    assert!(matches!(ready, Some(Ok(_))), "{command:?}: {ready:?}");
    process
}

/// Starts the program outside of namespaces. Returns its file, too. None where that is not possible.
pub fn program_with_map() -> Option<(Process, Scratch)> {
    let scratch = Scratch::new();
    let program = compiled(&scratch)?;
    Some((start(&mut Command::new(program)), scratch))
}

#[test]
fn functions_of_processes_in_namespaces_have_names() {
    if !can_sample() {
        return;
    }
    let scratch = Scratch::new();
    let Some(program) = compiled(&scratch) else {
        return;
    };
    // What is below /tmp outside is not seen inside, so the program is copied there. As `/tmp` is
    // new, the perf map of one process is not seen by others, whose pids may be the same.
    let script = "mount -t tmpfs none /tmp && cat <&3 >/tmp/inside && chmod 755 /tmp/inside &&
                  exec 3<&- && exec /tmp/inside";
    let script = format!(
        "exec 3<'{}' && exec unshare \"$@\" sh -c '{script}'",
        program.display()
    );
    let rounds: Vec<&str> = (0..cases(1)).flat_map(|_| KINDS).collect();
    side_by_side(&rounds, |kind| {
        let mut alone = Command::new("unshare");
        let can = alone.args(kind.split(' ')).arg("true").status();
        if !can.is_ok_and(|can| can.success()) {
            return skip(format!("unshare {kind}: refused here"));
        }
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh"]).args(kind.split(' '));
        let process = start(&mut command);
        // With a namespace of pids the program is a child of this process.
        let pid = process.pid().to_string();
        let mut sampling = proftop(&["-b", "-d", "0.5", "--format", "json", "-p", &pid]);
        let reports = reports_until(&mut sampling, kind, |reports| {
            FUNCTIONS
                .iter()
                .all(|name| common::self_samples(reports, name) > 0)
        });
        for function in reports.iter().flat_map(|report| list(report, "functions")) {
            let module = function["module"].as_str().unwrap_or_default();
            let is_own = module == "inside" && number(function, "self") > 10;
            assert!(
                !is_own || function["no_name"].is_null(),
                "{kind}: {function}"
            );
        }
    });
}
