//! Python functions as a user sees them: in reports, filters, recordings and exports.

use crate::common;

use common::{can_sample, list, number, proftop, reports_until, run, side_by_side, sum, text};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use test_support::{NO_PYTHON, Process, pythons, skip, wait_until};

fn start(python: &Path) -> Process {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python.py");
    Process::start_load(Command::new(python).arg(program).arg("600"))
}

/// Returns the samples of a function in a report, with those of its callees.
fn total(report: &Value, name: &str) -> u64 {
    let functions = list(report, "functions");
    let found = functions.iter().find(|function| function["name"] == name);
    found.map_or(0, |function| number(function, "total"))
}

#[test]
fn functions_have_their_shares() {
    if !can_sample() {
        return;
    }
    let interpreters: Vec<_> = pythons().into_values().collect();
    if interpreters.is_empty() {
        skip(NO_PYTHON);
    }
    side_by_side(&interpreters, |python| {
        let process = start(python);
        let pid = process.pid().to_string();
        let mut command = proftop(&[
            "-b", "-d", "0.5", "-F", "999", "--format", "json", "-p", &pid,
        ]);
        // Until names are read, functions have none.
        let named = |reports: &[Value]| {
            let is_named = |report: &&Value| {
                total(report, "python.burn") * 100 > number(report, "samples") * 90
            };
            reports
                .iter()
                .skip_while(|report| !is_named(report))
                .cloned()
                .collect::<Vec<_>>()
        };
        let reports = reports_until(&mut command, "samples of known functions", |reports| {
            sum(&named(reports), "samples") > 400
        });
        let reports = named(&reports);
        let samples = sum(&reports, "samples");
        let share = |name| {
            let total: u64 = reports.iter().map(|report| total(report, name)).sum();
            total as f64 / samples as f64
        };
        let context = || format!("{}: {reports:#?}", python.display());
        let three_quarters = share("python.Shop.three_quarters") + share("python.three_quarters");
        assert!((three_quarters - 0.75).abs() < 0.1, "{}", context());
        let one_quarter = share("python.Shop.one_quarter") + share("python.one_quarter");
        assert!((one_quarter - 0.25).abs() < 0.1, "{}", context());
        assert!(share("python.burn") > 0.9, "{}", context());
        let kind =
            |function: &Value| function["name"] == "python.burn" && function["kind"] == "python";
        assert!(
            list(&reports[0], "functions").iter().any(kind),
            "{}",
            context()
        );
    });
}

#[test]
fn a_recording_keeps_them() {
    if !can_sample() {
        return;
    }
    let Some(python) = pythons().into_values().next_back() else {
        skip(NO_PYTHON);
        return;
    };
    let process = start(&python);
    let pid = process.pid().to_string();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.pft");
    let name = file.to_str().unwrap();
    let export = |format: &str, filter: &str| {
        let output = run(&mut proftop(&[
            "export", name, "-", "--format", format, "--filter", filter,
        ]));
        text(&output.stdout)
    };
    fn between(line: &str) -> Option<Vec<&str>> {
        let steps: Vec<&str> = line.split(';').collect();
        let place = |name: &str| steps.iter().position(|step| step.contains(name));
        let between = place("one_quarter_[p]")? + 1..place("<lambda>_[p]")?;
        steps.get(between).map(Vec::from)
    }
    let is_mixed = |steps: Vec<&str>| {
        let is_native = |step: &&str| !step.ends_with("_[p]");
        !steps.is_empty() && steps.iter().all(is_native)
    };
    // On a busy machine a recording may have few samples, and none of the callback.
    wait_until("a recording with all its functions", || {
        run(&mut proftop(&[
            "record", "-p", &pid, "-d", "2", "-F", "499", "-f", "-o", name,
        ]));
        // One stack, of C and Python in turn: what called the callback is between them.
        let folded = export("folded", "fn:python.burn show:internals");
        let is_there = folded.lines().filter_map(between).any(is_mixed);
        // Its callers are the interpreter's own, and folded unless they are asked for.
        let folded = export("folded", "fn:python.burn");
        let mut lines = folded.lines().filter_map(between);
        is_there && lines.any(|steps| steps.is_empty())
    });
    let only = export("folded", "only:lang:python");
    let steps = |line: &str| {
        let stack = line
            .rsplit_once(' ')
            .map_or(line, |(stack, _)| stack)
            .to_owned();
        stack
            .split(';')
            .skip(1)
            .map(String::from)
            .collect::<Vec<_>>()
    };
    let mut functions = 0;
    for step in only.lines().flat_map(steps) {
        assert!(step.ends_with("_[p]") || step.starts_with('['), "{only}");
        functions += usize::from(step.ends_with("_[p]"));
    }
    assert!(functions > 0, "{only}");
    let lines = export("speedscope", "fn:python.burn");
    assert!(lines.contains("tests/python.py"), "{lines}");
}
