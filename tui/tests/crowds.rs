//! Very many mappings, processes and threads, by others than the program that is looked at: no sample
//! of it is lost.

use crate::common;

use common::{can_sample, list, number, proftop, reports, run, self_samples, sum, text};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use test_support::{Process, Scratch, cases, compile};

/// Compiles the program that makes them. None where that is not possible.
fn program(scratch: &Scratch) -> Option<PathBuf> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/crowd.c");
    let program = scratch.join("crowd");
    compile(source.as_ref(), &program, ["-O1", "-pthread"])?;
    Some(program)
}

/// Samples the whole machine for some seconds, and fails if a sample was lost, or if the functions of
/// `burn` have none.
fn sample(seconds: u32) -> Vec<Value> {
    let _burn = common::burning(1);
    let mut command = proftop(&["-b", "--format", "json", "-d", "1", "--top", "2000"]);
    let output = run(command.args(["-n", &seconds.to_string()]));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let reports = reports(&output.stdout);
    assert_eq!(sum(&reports, "lost"), 0);
    assert!(self_samples(&reports, common::BURN_FUNCTIONS[0]) > 0);
    reports
}

/// Samples while a process makes things as fast as it can, and returns how many it made.
fn sample_while(what: &str) -> u64 {
    const SECONDS: u32 = 3;
    let scratch = Scratch::new();
    let Some(program) = program(&scratch) else {
        return u64::MAX;
    };
    let mut command = Command::new(program);
    command.args([what, &(SECONDS + 1).to_string()]);
    let mut maker = Process::start(command.stdout(Stdio::piped()));
    let output = maker.stdout.take().expect("a pipe");
    sample(SECONDS);
    let made = std::io::read_to_string(output).expect("text");
    assert!(maker.wait().expect("ours").success());
    println!("{what}: {} made", made.trim());
    made.trim().parse().expect("a number")
}

#[test]
fn mappings_that_come_and_go_cost_no_sample() {
    if can_sample() {
        assert!(sample_while("mappings") > 1_000);
    }
}

#[test]
fn processes_that_come_and_go_cost_no_sample() {
    if can_sample() {
        assert!(sample_while("processes") > 100);
    }
}

/// Five hundred of each for each case: with 20 cases 10,000 processes and 10,000 threads. There are
/// numbers for 32,768 of both together on many machines.
#[test]
fn many_processes_and_threads_cost_no_sample() {
    if !can_sample() {
        return;
    }
    let scratch = Scratch::new();
    let Some(program) = program(&scratch) else {
        return;
    };
    let each = (500 * cases(2)).to_string();
    let mut command = Command::new(program);
    command.args(["many", &each, &each]);
    let mut crowd = Process::start(command.stdout(Stdio::piped()));
    let output = crowd.stdout.take().expect("a pipe");
    let told = BufReader::new(output).lines().next();
    assert_eq!(told.expect("a line").expect("text"), "all are there");
    let reports = sample(2);
    let last = reports.last().expect("a report");
    assert!(!list(last, "processes").is_empty() && number(last, "samples") > 0);
}
