//! Says in words what a step back undoes.

use crate::knobs::Knobs;
use crate::words::units;
use profile::Filter;
use profile::filter::Clause;

/// Returns what going back from `here` to `there` undoes, such as `filter comm:postgres`. Returns
/// `None` if the same samples count: the user can see that another view opens.
pub fn words(here: &Knobs, there: &Knobs) -> Option<String> {
    let mut undone = Vec::new();
    if here.scope != there.scope {
        let left = here.scope.last().map(|narrowing| &narrowing.words);
        undone.push(left.map_or_else(|| "the whole".into(), |words| format!("only {words}")));
    }
    if here.filter != there.filter {
        undone.push(filter(&here.filter, &there.filter));
    }
    if here.window != there.window {
        undone.push(units::window(here.window));
    }
    if here.metric != there.metric {
        undone.push("metric".into());
    }
    if here.unit != there.unit {
        undone.push("unit".into());
    }
    if here.shows_difference != there.shows_difference {
        let words = if here.shows_difference {
            "showing what differs"
        } else {
            "hiding what differs"
        };
        undone.push(words.into());
    }
    // If there was no baseline before, a step back keeps the present one.
    if let (Some(here), Some(there)) = (&here.baseline, &there.baseline)
        && here != there
    {
        undone.push("the new baseline: A is the one before".into());
    }
    (!undone.is_empty()).then(|| undone.join(", "))
}

/// Returns the part of a filter that a step back removes, or else the part that it brings back.
fn filter(here: &Filter, there: &Filter) -> String {
    let (now, before) = (here.clauses(), there.clauses());
    let only_in = |one: &[Clause], other: &[Clause]| {
        let clauses = one.iter().filter(|clause| !other.contains(clause));
        clauses
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let (new, gone) = (only_in(now, before), only_in(before, now));
    match (new.is_empty(), gone.is_empty()) {
        (false, true) => format!("filter {new}"),
        (true, false) => format!("taking {gone} out of the filter"),
        _ => format!("filter {here}"),
    }
}
