//! Very many mappings, processes and threads, by others than the program that is looked at: no
//! sample of it is lost.

use crate::common;

use common::{can_sample, list, number, proftop, reports, run, self_samples, sum, text};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use test_support::{Process, Scratch, cases, skip};

/// Samples the whole machine for some seconds, and fails if a sample was lost, or if the functions
/// of `burn` have none.
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

/// Samples while a process makes things as fast as it can, and fails if it made fewer than this.
fn sample_while_made(what: &str, at_least: u64) {
    if !can_sample() {
        return;
    }
    let scratch = Scratch::new();
    let Some(program) = common::compiled(scratch.path(), "crowd.c", &["-O1", "-pthread"]) else {
        return;
    };
    let mut command = Command::new(program);
    let mut maker = Process::start(command.arg(what).stdout(Stdio::piped()));
    let output = maker.stdout.take().expect("a pipe");
    sample(3);
    maker.signal(Signal::TERM);
    let made = std::io::read_to_string(output).expect("text");
    assert!(maker.wait().expect("ours").success());
    println!("{what}: {} made", made.trim());
    let made: u64 = made.trim().parse().expect("a number");
    assert!(made >= at_least, "{what}: {made}");
}

#[test]
fn mappings_that_come_and_go_cost_no_sample() {
    sample_while_made("mappings", 1_000);
}

#[test]
fn processes_that_come_and_go_cost_no_sample() {
    sample_while_made("processes", 100);
}

/// Five hundred of each for each case: with 20 cases 10,000 processes and 10,000 threads. There are
/// numbers for 32,768 of both together on many machines.
#[test]
fn many_processes_and_threads_cost_no_sample() {
    if !can_sample() {
        return;
    }
    let scratch = Scratch::new();
    let Some(program) = common::compiled(scratch.path(), "crowd.c", &["-O1", "-pthread"]) else {
        return;
    };
    let each = (500 * cases(2)).to_string();
    let mut command = Command::new(program);
    command.args(["many", &each, &each]);
    let mut crowd = Process::start(command.stdout(Stdio::piped()));
    let output = crowd.stdout.take().expect("a pipe");
    let told = BufReader::new(output).lines().next();
    let told = told.expect("a line").expect("text");
    if told == "no room" {
        return skip(format!(
            "{each} processes and threads are more than may be here"
        ));
    }
    assert_eq!(told, "all are there");
    let reports = sample(2);
    let last = reports.last().expect("a report");
    assert!(!list(last, "processes").is_empty() && number(last, "samples") > 0);
}
