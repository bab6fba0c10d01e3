//! What differs from a baseline, in words.

use crate::words::units;
use profile::diff::Diff;

/// `A 3,277 smp (10 s)`, for the header.
pub fn baseline(diff: &Diff) -> String {
    format!(
        "A {} smp ({:.0} s)",
        units::count(diff.a.samples),
        diff.a.seconds
    )
}

/// How the change of anything, from so many samples to so many, is judged.
pub fn judgement(name: &str, (before, now): (u64, u64), diff: &Diff) -> String {
    let words = match diff.is_sure(before, now) {
        true => "surely a change",
        false => "could be chance",
    };
    format!(
        "{name}: {} of {} samples in A, {} of {} in B; {words}: p = {:.1e} by the test of two proportions, corrected for {} functions",
        units::count(before),
        units::count(diff.a.samples),
        units::count(now),
        units::count(diff.b.samples),
        diff.chance(before, now),
        diff.rows.len(),
    )
}
