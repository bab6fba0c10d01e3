//! Events other than time, as a user sees them: a program that touches memory is recorded, and
//! the recording is reported, compared and exported.

use crate::common;

use common::{can_sample, list, number, proftop, run, text};
use serde_json::Value;
use std::process::Command;
use test_support::{Scratch, skip};

fn report(file: &str, more: &[&str]) -> Value {
    let args = [&["report", file, "--format", "json"], more].concat();
    let output = run(&mut proftop(&args));
    serde_json::from_slice(&output.stdout).expect("one object")
}

#[test]
fn page_faults_are_counted_by_function_in_every_format() {
    if !can_sample() {
        return;
    }
    let scratch = Scratch::new();
    let Some(program) = common::compiled(scratch.path(), "faults.c", &["-O1", "-g"]) else {
        return;
    };
    let file = scratch.join("faults.pft").display().to_string();
    let program = program.display().to_string();
    let record = [
        "record",
        "--metric",
        "page-faults",
        "-o",
        &file,
        "--",
        &program,
    ];
    let output = proftop(&record).output().unwrap();
    if output.status.code() == Some(4) || output.status.code() == Some(125) {
        return skip(text(&output.stderr));
    }
    assert!(output.status.success(), "{}", text(&output.stderr));

    let told = report(&file, &[]);
    assert_eq!(told["metric"], "page-faults");
    let all = number(&told, "samples");
    assert!(all > 10_000, "{all}");
    let share = |name: &str| {
        let function = list(&told, "functions")
            .iter()
            .find(|one| one["name"] == name)
            .unwrap_or_else(|| panic!("{name}: {told}"));
        100.0 * number(function, "total") as f64 / all as f64
    };
    assert!(
        (share("touch_three_of_four") - 75.0).abs() < 8.0,
        "{}",
        share("touch_three_of_four")
    );
    assert!(
        (share("touch_one_of_four") - 25.0).abs() < 8.0,
        "{}",
        share("touch_one_of_four")
    );

    // Events are not called time on CPUs, but by their own name.
    let page = run(&mut proftop(&["report", &file, "--format", "md"]));
    let page = text(&page.stdout);
    assert!(
        page.contains("page faults") && !page.contains("CPUs"),
        "{page}"
    );
    let table = run(&mut proftop(&["report", &file]));
    let table = text(&table.stdout);
    assert!(table.contains("page faults"), "{table}");
    let filtered = report(&file, &["--filter", "touch_one_of_four"]);
    let kept = number(&filtered, "samples");
    assert!(kept > 0 && kept < all, "{kept} of {all}");
    let diff = run(&mut proftop(&["diff", &file, &file, "--format", "json"]));
    let diff: Value = serde_json::from_slice(&diff.stdout).expect("one object");
    assert_eq!(diff["metric"], "page-faults");

    // Formats for other programs have the same counts.
    let folded = scratch.join("faults.folded").display().to_string();
    run(&mut proftop(&["export", &file, &folded]));
    let lines = std::fs::read_to_string(&folded).unwrap();
    let counts = lines
        .lines()
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    assert_eq!(counts.sum::<u64>(), all);
    let pprof = scratch.join("faults.pb.gz").display().to_string();
    run(&mut proftop(&["export", &file, &pprof]));
    let again = report(&pprof, &[]);
    assert_eq!(
        (&again["metric"], number(&again, "samples")),
        (&told["metric"], all)
    );
}

#[test]
fn what_cannot_be_counted_is_refused_with_the_reason() {
    if !can_sample() {
        return;
    }
    let refused = |metric: &str| {
        let args = ["-b", "-n", "1", "-d", "1", "--metric", metric];
        let output = proftop(&args).output().unwrap();
        (output.status.code(), text(&output.stderr).to_owned())
    };
    let (code, said) = refused("page-fault");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("did you mean page-faults?"), "{said}");
    let (code, said) = refused("tracepoint:sched:no_such_place");
    if !said.contains("cannot count") {
        return skip(said);
    }
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("this kernel has no tracepoint"), "{said}");
    let (_, said) = refused("tracepoint:lock:contention_begin");
    assert!(said.contains("takes locks"), "{said}");
    // If the CPU has counters, they count.
    let (code, said) = refused("cycles");
    assert!(
        code == Some(0) || said.contains("no hardware counters"),
        "{said}"
    );
}

#[test]
fn passes_of_a_tracepoint_begin_where_the_kernel_passes_it() {
    if !can_sample() {
        return;
    }
    let script = "import os, time\nend = time.time() + 30\nwhile time.time() < end: os.getppid()";
    let mut python = Command::new("python3");
    let Ok(python) = test_support::Process::try_start(python.args(["-c", script])) else {
        return skip("no python3");
    };
    let pid = python.pid().to_string();
    let metric = "tracepoint:raw_syscalls:sys_enter";
    let args = [
        "-b", "-n", "1", "-d", "3", "--metric", metric, "--format", "json", "-p", &pid,
    ];
    let output = proftop(&args).output().unwrap();
    if output.status.code() == Some(4) {
        return skip(text(&output.stderr));
    }
    let told: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(told["metric"], metric);
    assert!(number(&told, "samples") > 1000, "{told}");
    // The kernel's functions that run BPF programs at a tracepoint are on no stack.
    for function in list(&told, "functions") {
        let name = function["name"].as_str().expect("a name");
        assert!(
            !name.contains("bpf_trace_run") && !name.contains("__traceiter"),
            "{name}"
        );
    }
}
