//! Waits from perf events: of programs of a user without any rights, and of root.

use crate::common;
use crate::waits::{check_sums, function, locks, report};

use common::tmux::Terminal;
use common::{PROFTOP, can_sample, list, number, proftop, run, text};
use rustix::thread::CapabilitySet;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use test_support::{OTHER_USER, become_other_user, copy_program, is_root_or_skip, skip};

/// A folder of the user without rights, with a copy of proftop and a program in it.
struct Home {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Home {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let may_all = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o755));
        chown(folder.path(), Some(OTHER_USER), Some(OTHER_USER)).unwrap();
        may_all(folder.path()).unwrap();
        let copy = folder.path().join("proftop");
        copy_program(PROFTOP, &copy);
        may_all(&copy).unwrap();
        let program = common::compiled(folder.path(), "waits.c", &["-O1", "-g", "-pthread"])?;
        may_all(&program).unwrap();
        Some(Self { folder, program })
    }

    /// Returns the command of proftop for that user, who has no capability.
    fn proftop(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.folder.path().join("proftop"));
        command.args(args).current_dir(self.folder.path());
        for variable in ["PROFTOP_CONFIG", "XDG_STATE_HOME", "PROFTOP_CACHE"] {
            command.env(variable, "/dev/null");
        }
        // SAFETY: between fork and exec there are system calls only.
        unsafe { command.pre_exec(|| become_other_user(CapabilitySet::empty())) };
        command
    }
}

/// Checks what a recording says about the program `waits`.
#[track_caller]
fn check_waits(file: &str) {
    let all = report(file, "");
    let notes: Vec<&str> = list(&all, "notes")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let said = |words: &str| notes.iter().any(|note| note.contains(words));
    assert!(said("who ends waits is not known without BPF"), "{notes:?}");
    check_whole_life(&all);
    let functions = |report: &Value, name: &str| function(report, name).is_some();
    assert!(functions(
        &report(file, "state:sleep"),
        "twenty_naps_of_30_ms"
    ));
    assert!(functions(
        &report(file, "state:sleep"),
        "three_thousand_short_naps"
    ));
    let idle = report(file, "state:idle");
    assert!(functions(&idle, "ten_waits_for_work"));
    assert!(!functions(&idle, "twenty_naps_of_30_ms"));
}

/// Checks that the first thread lived all the time: its states add up to the recording.
#[track_caller]
fn check_whole_life(report: &Value) {
    let window_ns = report["window_s"].as_f64().expect("seconds") * 1e9;
    let first = list(report, "threads")
        .iter()
        .find(|thread| thread["pid"] == thread["tid"])
        .unwrap_or_else(|| panic!("{report}"));
    let states = first["states"].as_object().expect("they are known");
    let sum: f64 = states.values().filter_map(Value::as_f64).sum();
    // The program was started a moment after the recording, which ended a moment after it.
    let is_whole = sum < window_ns * 1.01 && sum > window_ns * 0.95 - 0.3e9;
    assert!(is_whole, "{sum} of {window_ns}: {first}");
    // It slept for 3.2 s at least, and waits for nothing else but ten times for work. A nap that no
    // look at the thread met counts as the state of the last look: on a busy machine up to a fifth
    // of the time was counted in another state.
    let of = |names: &[&str]| {
        let states = names.iter().filter_map(|name| states[*name].as_f64());
        states.sum::<f64>() / 1e9
    };
    let slept = of(&["sleep"]);
    assert!(
        slept + of(&["queue"]) > 2.0 && slept < sum / 1e9 - 0.2,
        "{first}"
    );
}

#[test]
fn a_user_without_rights_sees_what_an_own_program_waits_for() {
    if !is_root_or_skip("only root can become another user") {
        return;
    }
    if !can_sample() {
        return;
    }
    let Some(home) = Home::new() else {
        return;
    };
    let program = home.program.display().to_string();
    let args = [
        "record",
        "--metric",
        "off-cpu",
        "-o",
        "waits.pft",
        "--",
        &program,
    ];
    let output = run(&mut home.proftop(&args));
    if output.status.code() == Some(4) {
        return skip(text(&output.stderr));
    }
    assert!(output.status.success(), "{}", text(&output.stderr));
    check_waits(&home.folder.path().join("waits.pft").display().to_string());
}

#[test]
fn root_sees_the_same_by_perf() {
    if !can_sample() {
        return;
    }
    let Some(home) = Home::new() else {
        return;
    };
    let (program, file) = (&home.program, home.folder.path().join("waits.pft"));
    let [program, file] = [program, &file].map(|path| path.display().to_string());
    let args = [
        "record", "--engine", "perf", "--metric", "off-cpu", "-o", &file,
    ];
    let output = run(&mut proftop(&[&args[..], &["--", &program]].concat()));
    assert!(output.status.success(), "{}", text(&output.stderr));
    check_waits(&file);
}

#[test]
fn who_has_a_lock_is_told_without_bpf() {
    if !can_sample() {
        return;
    }
    let scratch = test_support::Scratch::new();
    let Some(locks) = locks(&scratch) else {
        return;
    };
    let pid = locks.pid().to_string();
    let args = "-b -n 1 -d 6 --engine perf --metric off-cpu --format json -p";
    let args: Vec<&str> = args.split(' ').chain([&*pid]).collect();
    let output = run(&mut proftop(&args));
    let told: Value = serde_json::from_slice(&output.stdout).expect("one object");
    let threads = list(&told, "threads");
    let find = |name: &str| threads.iter().find(|thread| thread["comm"] == name);
    let thread = |name: &str| find(name).unwrap_or_else(|| panic!("{name}: {told}"));
    for (name, owner) in [
        ("low", "mid"),
        ("mid", "top"),
        ("one", "other"),
        ("other", "one"),
    ] {
        assert_eq!(thread(name)["lock_owner"], thread(owner)["tid"], "{name}");
        let function = function(&told, name).unwrap_or_else(|| panic!("{name}: {told}"));
        assert!(number(function, "total_ns") > 1_000_000_000, "{function}");
    }
    check_sums(&told);
    assert!(!list(&told, "deadlocks").is_empty(), "{told}");
    let refused = "-b -n 1 --engine perf --metric kept-waiting -p";
    let refused: Vec<&str> = refused.split(' ').chain([&*pid]).collect();
    let output = run(&mut proftop(&refused));
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("only BPF sees it"));
}

#[test]
fn a_key_shows_waits_without_bpf_and_leaves_out_who_ends_them() {
    if !can_sample() {
        return;
    }
    let scratch = test_support::Scratch::new();
    let (Some(locks), Some(terminal)) = (locks(&scratch), Terminal::open(80, 24)) else {
        return;
    };
    terminal.start(&format!("--engine perf -p {}", locks.pid()));
    terminal.wait("the header", |screen| {
        screen.contains("LIVE") && screen.contains("locks[")
    });
    for metric in ["off-cpu", "wall", "on-CPU"] {
        terminal.keys(&["c"]);
        terminal.wait(metric, |screen| {
            let header = screen.lines().nth(1);
            header.is_some_and(|header| header.contains(metric))
        });
    }
    terminal.keys(&["c", "5"]);
    terminal.wait("all threads", |screen| {
        screen.contains("DEADLOCK") && screen.contains(" waiter ")
    });
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
}
