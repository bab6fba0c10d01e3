//! A low limit of open files, as on a machine with more CPUs than files are allowed for: proftop
//! raises it, up to what the machine's owner allows.

use crate::common::{self, PROFTOP, can_sample, has_whole_stacks, reports_until, side_by_side};
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
        let sample = format!("'{PROFTOP}' -b --format json -d 1 --engine {engine} -p {pid}");
        let script = format!("ulimit -Sn {FILES}; exec {sample}");
        let mut command = Command::new("sh");
        reports_until(command.args(["-c", &script]), engine, has_whole_stacks);
    });
}
