//! Runs the program that is given to others, if it is beside this one: it is a static program with
//! readers and parsers, so that more can go wrong than in the sources alone.

use super::own_machine;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// Where the machine has it.
const PROGRAM: &str = "/proftop";

/// How many reports of a second there may be until one is right: reading the unwind tables and names
/// of this program takes many seconds if each instruction is emulated.
const REPORTS_MAX: u32 = 90;

/// The least percentage of whole stacks, and of frames with a name, in a report that is right.
const PERCENT_MIN: f64 = 99.0;

/// What is counted for some seconds: calls of a function of this program, and a tracepoint.
const COUNTED: [&str; 2] = ["selftest_naps", "tracepoint:sched:sched_switch"];

/// The first kernel on which calls are counted.
const COUNTED_SINCE: (u32, u32) = (6, 1);

/// Checks that it samples this process by both engines, with whole stacks and names, and where the
/// kernel can do it, that it counts calls.
pub fn check() -> Result<(), String> {
    if !Path::new(PROGRAM).exists() {
        return if own_machine::is_ours() {
            Err(format!("there is no {PROGRAM}"))
        } else {
            Ok(())
        };
    }
    if own_machine::release() >= COUNTED_SINCE {
        COUNTED.into_iter().try_for_each(count)?;
    }
    for engine in ["bpf", "perf"] {
        let mut command = Command::new(PROGRAM);
        command.args([
            "-b", "-d", "1", "-F", "49", "--top", "1", "--engine", engine,
        ]);
        command.args(["-n", &REPORTS_MAX.to_string()]);
        command.args(["-p", &std::process::id().to_string()]);
        let mut running = command
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{PROGRAM}: {error}"))?;
        let output = running.stdout.take().ok_or("no pipe")?;
        let found = first_right_report(output);
        end(&mut running);
        println!("result: program-{engine} {}", found?);
    }
    Ok(())
}

/// Counts what has this name, with stacks. Returns an error if there are none.
fn count(name: &str) -> Result<(), String> {
    let mut command = Command::new(PROGRAM);
    command.args(["trace", "--stacks", "-d", "10", "-p"]);
    let output = command
        .args([&std::process::id().to_string(), name])
        .output();
    let output = output.map_err(|error| format!("{PROGRAM}: {error}"))?;
    let told = String::from_utf8_lossy(&output.stdout);
    let told: Vec<&str> = told.lines().take(2).collect();
    println!("{}", told.join("\n"));
    let number = told.get(1).and_then(|line| line.split_whitespace().next());
    let number = number.and_then(|number| number.replace(',', "").parse::<u64>().ok());
    if output.status.success() && number.is_some_and(|number| number > 0) {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{PROGRAM} trace {name}: {}: {said}", output.status))
}

/// Returns the shares of the first report that is right. An error has those of the last report.
fn first_right_report(output: ChildStdout) -> Result<String, String> {
    let mut last = "no report".to_owned();
    for line in BufReader::new(output).lines() {
        let line = line.map_err(|error| error.to_string())?;
        let Some(report) = line.strip_prefix("# samples ") else {
            continue;
        };
        let is_right = ["whole", "symbols"]
            .iter()
            .all(|name| percent(report, name).is_some_and(|percent| percent >= PERCENT_MIN));
        let shares = report.split(" own ").next().unwrap_or(report);
        shares.clone_into(&mut last);
        if is_right {
            return Ok(last);
        }
    }
    Err(format!("{PROGRAM}: {last}"))
}

/// Returns the percentage behind this word.
fn percent(report: &str, name: &str) -> Option<f64> {
    let mut words = report.split(' ').skip_while(|word| *word != name);
    words.nth(1)?.strip_suffix('%')?.parse().ok()
}

fn end(running: &mut Child) {
    // Both fail if it has ended by itself.
    _ = running.kill();
    _ = running.wait();
}
