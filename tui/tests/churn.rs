//! Changes of processes during sampling, twenty times and more: pids that are used again, programs
//! that become others, libraries that are loaded in turn at the same place. No stack has functions
//! of both sides of a change.

use crate::common::{can_sample, proftop, reports, run, text};
use std::path::{Path, PathBuf};
use std::process::Output;
use test_support::{Scratch, compile};

/// How often each drill makes its change.
const ROUNDS: u64 = 20;

/// The folder with the programs `one` and `other`, and with what was recorded of them.
struct Drill {
    scratch: Scratch,
}

impl Drill {
    /// Compiles the source as `one` and as `other`. Returns None if that is not possible here.
    fn begin(flags: &[&str]) -> Option<Drill> {
        let drill = Drill {
            scratch: Scratch::new(),
        };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/churn.c");
        for (name, step) in [("one", "1"), ("other", "20000")] {
            let (name_flag, step_flag) = (format!("-DNAME={name}"), format!("-DSTEP={step}"));
            let own = [
                "-O1",
                "-fomit-frame-pointer",
                &name_flag,
                &step_flag,
                "-ldl",
            ];
            compile(&source, &drill.path(name), [&own[..], flags].concat())?;
        }
        Some(drill)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// Runs `program` with this drill, and records it.
    fn record(&self, program: &Path, what: &str, first: &Path, second: &Path) -> Output {
        let mut command = proftop(&["record", "-F", "999", "-f", "-o"]);
        command.arg(self.path("kept.pft")).arg("--").arg(program);
        command.args([what, &ROUNDS.to_string()]);
        let output = run(command.arg(second).arg(first));
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        output
    }

    /// Returns the folded stacks of the programs' own work, each with its number of samples.
    fn stacks(&self) -> Vec<(String, u64)> {
        let mut command = proftop(&["export", "--format", "folded"]);
        let output = run(command.arg(self.path("kept.pft")).arg("-"));
        let lines = text(&output.stdout);
        let stacks = lines.lines().filter_map(|line| {
            let (stack, samples) = line.rsplit_once(' ')?;
            let samples = samples.parse().expect("a number");
            (stack.contains(";spin_")).then(|| (stack.to_owned(), samples))
        });
        stacks.collect()
    }
}

/// Fails if a stack has functions of both programs, or if fewer than `whole_min` percent of the
/// samples have a whole stack.
#[track_caller]
fn check(stacks: &[(String, u64)], whole_min: u64) {
    let sum = |holds: &dyn Fn(&str) -> bool| -> u64 {
        let some = stacks.iter().filter(|(stack, _)| holds(stack));
        some.map(|(_, samples)| samples).sum()
    };
    let (one, other) = (
        sum(&|stack| stack.contains("spin_one")),
        sum(&|stack| stack.contains("spin_other")),
    );
    assert!(one > 200 && other > 200, "{stacks:?}");
    for (stack, _) in stacks {
        let both = stack.contains("spin_one") && stack.contains("spin_other");
        assert!(!both && !stack.contains('?'), "{stack}");
        // A stack that is not whole says so.
        assert!(
            stack.contains(";main;") || stack.contains("[stopped"),
            "{stack}"
        );
    }
    let whole = sum(&|stack| stack.contains(";main;"));
    assert!(whole * 100 >= (one + other) * whole_min, "{stacks:?}");
}

#[test]
fn a_number_that_is_used_again_is_another_process() {
    if !can_sample() {
        return;
    }
    let Some(drill) = Drill::begin(&[]) else {
        return;
    };
    let (one, other) = (drill.path("one"), drill.path("other"));
    let output = drill.record(&one, "reuse", &one, &other);
    let pid: u64 = text(&output.stdout).trim().parse().expect("their number");
    check(&drill.stacks(), 80);
    let kept = drill.path("kept.pft");
    let report = run(proftop(&["report", "--format", "json"]).arg(&kept));
    let report = &reports(&report.stdout)[0];
    let processes = report["processes"].as_array().expect("a list");
    let of_it = processes.iter().filter(|process| process["pid"] == pid);
    assert_eq!(of_it.count() as u64, ROUNDS, "{processes:?}");
}

#[test]
fn a_program_that_becomes_another_has_its_functions() {
    if !can_sample() {
        return;
    }
    let Some(drill) = Drill::begin(&[]) else {
        return;
    };
    let (one, other) = (drill.path("one"), drill.path("other"));
    drill.record(&one, "exec", &one, &other);
    check(&drill.stacks(), 80);
}

#[test]
fn libraries_that_take_each_others_place_are_told_apart() {
    if !can_sample() {
        return;
    }
    let (Some(drill), Some(program)) = (Drill::begin(&["-shared", "-fPIC"]), Drill::begin(&[]))
    else {
        return;
    };
    let program = program.path("one");
    let output = drill.record(
        &program,
        "libraries",
        &drill.path("one"),
        &drill.path("other"),
    );
    let same: u64 = text(&output.stdout).trim().parse().expect("a number");
    assert_eq!(same, ROUNDS - 1, "they take the same place");
    // Until proftop knows a new library, stacks through it cannot be walked.
    check(&drill.stacks(), 20);
}
