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

/// Returns a sentence about how a change of the number of samples was judged.
pub fn judgement(name: &str, (before, now): (u64, u64), diff: &Diff) -> String {
    let words = match diff.is_sure(before, now) {
        true => "surely a change",
        false => "could be chance",
    };
    let p = diff.chance(before, now);
    let tests = diff.rows.len();
    let sides = diff.sides();
    if diff.tests_time() {
        return format!(
            "{name}: {:.1} ms/s in A ({} smp in {:.1} s), {:.1} in B ({} smp in {:.1} s); {words}: p = {p:.1e} by the test of two rates, corrected for {tests} functions",
            sides.amount(&diff.a, before),
            units::count(before),
            diff.a.seconds,
            sides.amount(&diff.b, now),
            units::count(now),
            diff.b.seconds,
        );
    }
    format!(
        "{name}: {} of {} samples in A, {} of {} in B; {words}: p = {p:.1e} by the test of two proportions, corrected for {tests} functions",
        units::count(before),
        units::count(diff.a.samples),
        units::count(now),
        units::count(diff.b.samples),
    )
}
