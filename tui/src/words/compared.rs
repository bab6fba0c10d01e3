//! The words for differences from a baseline.

use crate::context::Context;
use crate::words::metric::{amount, amount_by, bare_amount_by, counted_by};
use crate::words::{names, units};
use profile::Metric;
use profile::diff::{Diff, FALSE_RATE, Renamed, SAMPLES_MIN};

/// Returns the words for side A in the header: `A 3,277 smp (10 s)`. `whose` describes the samples
/// of A, if they have another scope or filter than those of B.
pub fn baseline(diff: &Diff, whose: Option<&str>, cx: &Context<'_>) -> String {
    let whose = whose.map_or_else(String::new, |whose| format!(", {whose}"));
    format!(
        "A {}{whose} ({:.0} s)",
        amount(cx, diff.a.samples),
        diff.a.seconds
    )
}

/// Returns a sentence about a file that has another name in B.
pub fn renamed(renamed: &Renamed) -> String {
    format!(
        "{} in A and {} in B are compared as one program: {} functions have the same names",
        names::module(&renamed.a),
        names::module(&renamed.b),
        renamed.functions
    )
}

/// Returns a sentence about how the change of a function or of all samples was judged. The
/// corrected probability decides. `chance` is the probability of a [row](profile::diff::DiffRow)
/// or, for all samples, of the [whole](Diff::chance).
pub fn judgement(
    name: &str,
    (before, now): (u64, u64),
    chance: f64,
    diff: &Diff,
    metric: Option<&Metric>,
) -> String {
    let name = names::brief(name);
    let sides = diff.sides();
    let numbers = if diff.tests_time() {
        format!(
            "{:.1} ms/s in A ({} in {:.1} s), {:.1} in B ({} in {:.1} s)",
            sides.amount(&diff.a, before),
            amount_by(metric, before),
            diff.a.seconds,
            sides.amount(&diff.b, now),
            amount_by(metric, now),
            diff.b.seconds,
        )
    } else {
        format!(
            "{} of {} in A, {} of {} in B",
            bare_amount_by(metric, before),
            counted_by(metric, diff.a.samples),
            bare_amount_by(metric, now),
            bare_amount_by(metric, diff.b.samples),
        )
    };
    if !diff.is_tested(before, now) {
        return format!(
            "{name}: {numbers}; could be chance: fewer than {SAMPLES_MIN} samples are not tested"
        );
    }
    let corrected = diff.corrected(chance);
    let test = if diff.tests_time() {
        "two rates"
    } else if sides.are_crowded() {
        "two proportions, as other programs decided how much CPU time there was"
    } else {
        "two proportions"
    };
    let words = if corrected <= FALSE_RATE {
        "surely a change"
    } else {
        "could be chance"
    };
    format!(
        "{name}: {numbers}; {words}: {} corrected for the {} compared (up to {FALSE_RATE} is \
         sure), {} alone, by the test of {test}",
        p(corrected),
        units::counted(diff.tested() as u64, "function"),
        p(chance),
    )
}

/// Formats a probability as `p = 0.032`, and a small one as `p = 8.8e-72`.
fn p(chance: f64) -> String {
    match chance {
        small if small < 0.001 => format!("p = {small:.1e}"),
        some if some < 0.095 => format!("p = {some:.3}"),
        _ => format!("p = {chance:.2}"),
    }
}
