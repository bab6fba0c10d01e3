//! In a control group with little memory all buffers are smaller, and nothing is killed.

use crate::{common, many_mappings};

use common::memory_group::MemoryGroup;
use common::{BURN_FUNCTIONS, burning, list, number, proftop, reports_until};
use serde_json::Value;
use test_support::{Scratch, is_root_or_skip};

const NEEDS_ROOT: &str = "control groups are made by root";

/// A group of 64 MB was once too small for what the kernel alone takes.
#[test]
fn a_group_of_64_mb_is_enough() {
    if !is_root_or_skip(NEEDS_ROOT) {
        return;
    }
    let _alone = many_mappings::ALONE.lock();
    sample_in_64_mb();
}

#[test]
fn it_is_also_enough_beside_half_a_million_mappings() {
    if !is_root_or_skip(NEEDS_ROOT) {
        return;
    }
    let scratch = Scratch::new();
    let _alone = many_mappings::ALONE.lock();
    let Some(_greedy) = many_mappings::greedy_processes(&scratch) else {
        return;
    };
    sample_in_64_mb();
}

/// Samples the whole machine, with whatever else runs on it.
fn sample_in_64_mb() {
    let Some(memory) = MemoryGroup::of(64 << 20) else {
        return;
    };
    let _burn = burning(2);
    let mut command = proftop(&["-b", "-d", "2", "--top", "1000", "--format", "json"]);
    memory.holds(&mut command);
    let has = |report: &Value, name: &str| {
        let mut rows = list(report, "functions").iter();
        rows.any(|row| row["name"] == name)
    };
    // On a busy machine the program gets little CPU time, and its least function few samples.
    let reports = reports_until(&mut command, "the functions", |reports| {
        let is_seen = |name: &&str| reports.iter().any(|report| has(report, name));
        reports.len() >= 4 && BURN_FUNCTIONS.iter().all(is_seen)
    });
    let last = reports.last().expect("four at least");
    let is_said = |note: &Value| {
        note.as_str()
            .is_some_and(|note| note.contains("may take 64 MB"))
    };
    assert!(list(last, "notes").iter().any(is_said), "{last}");
    assert_eq!(number(last, "lost_run"), 0, "{last}");
}
