//! A low limit of open files, as on a machine with more CPUs than files are allowed for: proftop
//! raises it, up to what the machine's owner allows.

use crate::common::{self, PROFTOP, can_sample, list, number, reports, run, side_by_side, text};
use std::process::Command;

/// Fewer than sampling needs, and enough to start.
const FILES: u32 = 32;

#[test]
fn a_low_limit_of_open_files_is_raised() {
    if !can_sample() {
        return;
    }
    let burn = common::burning(1);
    let pid = burn.pid();
    side_by_side(&["bpf", "perf"], |engine| {
        let script = format!(
            "ulimit -Sn {FILES}; exec '{PROFTOP}' -b --format json -d 1 -n 2 --engine {engine} -p {pid}"
        );
        let output = run(Command::new("sh").args(["-c", &script]));
        assert!(output.status.success(), "{}", text(&output.stderr));
        let reports = reports(&output.stdout);
        let last = reports.last().expect("two reports");
        assert!(number(last, "samples") > 0, "{engine}: {last}");
        assert!(!list(last, "functions").is_empty(), "{engine}: {last}");
        assert_eq!(
            number(last, "whole"),
            number(last, "user_stacks"),
            "{engine}: {last}"
        );
    });
}
