//! The simulation of a fleet, with a few hosts: it runs, and what has an aim at that size reaches it. No time is
//! looked at.

use std::path::Path;
use std::process::Command;
use test_support::skip;

#[test]
fn a_small_fleet_is_simulated() {
    // In memory if that can be had: thousands of files are flushed to the disk otherwise, which takes
    // minutes beside builds.
    let memory = Path::new("/dev/shm");
    let folder = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir());
    let folder = folder.expect("a folder");
    let program = Path::new(env!("CARGO_BIN_EXE_proftop-fleet"));
    let simulation = program.with_file_name("examples").join("fleet_sim");
    let output = Command::new(simulation)
        .args(["--small", "--work"])
        .arg(folder.path())
        .output()
        .expect("it starts");
    let table = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    println!("{table}");
    for line in table.lines() {
        if let Some((row, why)) = line.split_once("skipped: ") {
            let row = row.trim_matches(['|', ' ']);
            let why = why.split(" |").next().unwrap_or(why);
            skip(format!("{row}: {why}"));
        }
    }
    assert!(output.status.success(), "{said}");
    for what in [
        "bytes of a host and an hour",
        "writing an hour",
        "compacting it",
        "functions by own time of hours without hosts",
        "comparison of its versions",
        "a function has 3 % of its service more in version B",
        "comparisons of equal versions",
        "sending from all hosts",
        "an outage of",
    ] {
        assert!(table.contains(what), "{what} is missing");
    }
}
