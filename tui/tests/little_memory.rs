//! In a control group with little memory all buffers are smaller, and nothing is killed.

use crate::common;

use common::memory_group::MemoryGroup;
use common::{BURN_FUNCTIONS, burning, proftop, run, text};
use serde_json::Value;
use test_support::is_root_or_skip;

/// Samples the whole machine, with whatever else runs on it. A group of 64 MB was once too small
/// for what the kernel alone takes.
#[test]
fn a_group_of_64_mb_is_enough() {
    if !is_root_or_skip("control groups are made by root") {
        return;
    }
    let Some(memory) = MemoryGroup::of(64 << 20) else {
        return;
    };
    let _burn = burning(2);
    let mut command = proftop(&["-b", "-d", "2", "-n", "4", "--format", "json"]);
    memory.holds(&mut command);
    let output = run(&mut command);
    assert!(output.status.success(), "{}", output.status);
    let last = text(&output.stdout);
    let last = last.lines().last().expect("four reports");
    let report: Value = serde_json::from_str(last).expect("JSON");
    let notes = report["notes"].as_array().expect("a list");
    let is_said = |note: &Value| {
        note.as_str()
            .is_some_and(|note| note.contains("may take 64 MB"))
    };
    assert!(notes.iter().any(is_said), "{notes:?}");
    let functions = report["functions"].as_array().expect("a list");
    for name in BURN_FUNCTIONS {
        assert!(
            functions.iter().any(|row| row["name"] == name),
            "{name}: {last}"
        );
    }
    assert_eq!(report["lost"], 0);
}
