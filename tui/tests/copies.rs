//! Several copies of proftop at the same time, and one that samples itself: none loses samples.

use crate::common::{self, PROFTOP, can_sample, proftop, reports, run, sum, text};
use serde_json::Value;
use std::process::Command;

/// How many copies run at the same time.
const COPIES: usize = 10;

#[test]
fn ten_copies_lose_nothing() {
    if !can_sample() {
        return;
    }
    let burn = common::burning(1);
    let pid = burn.pid().to_string();
    let all: Vec<Vec<Value>> = std::thread::scope(|scope| {
        let sample = || {
            let arguments = ["-b", "--format", "json", "-d", "2", "-n", "2", "-F", "199"];
            let output = run(proftop(&arguments).args(["-p", &pid]));
            assert!(output.status.success(), "{}", text(&output.stderr));
            reports(&output.stdout)
        };
        let copies: Vec<_> = (0..COPIES).map(|_| scope.spawn(sample)).collect();
        let ended = copies.into_iter().map(|copy| copy.join());
        ended
            .map(|reports| reports.expect("it ends well"))
            .collect()
    });
    for reports in &all {
        assert!(sum(reports, "samples") > 0);
        assert_eq!(sum(reports, "lost"), 0);
    }
}

#[test]
fn one_that_samples_itself_loses_nothing() {
    if !can_sample() {
        return;
    }
    // The shell's process becomes proftop.
    let script = format!("exec '{PROFTOP}' -b --format json -d 0.5 -n 6 -F 199 --engine $0 -p $$");
    common::side_by_side(&["bpf", "perf"], |engine| {
        let output = run(Command::new("sh").args(["-c", &script, engine]));
        assert!(output.status.success(), "{}", text(&output.stderr));
        let reports = reports(&output.stdout);
        assert!(sum(&reports, "samples") > 0, "{engine}");
        assert_eq!(sum(&reports, "lost"), 0, "{engine}");
    });
}
