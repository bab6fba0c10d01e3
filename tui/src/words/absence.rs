//! The words for a row that is missing now but was there before.

use crate::context::Context;
use crate::words::metric::amount;

/// Returns the word in place of a number for a row without samples. With a filter it is "hidden",
/// with a scope "none", and otherwise "gone".
pub fn word(cx: &Context<'_>) -> &'static str {
    match (cx.knobs.filter.is_empty(), cx.knobs.scope.is_empty()) {
        (false, _) => "hidden",
        (true, false) => "none",
        (true, true) => "gone",
    }
}

/// Returns why a row has no samples, and how many it had when it was last seen. These samples are
/// no longer part of the shown ones.
pub fn sentence(cx: &Context<'_>, samples: u64) -> String {
    let why = match (cx.knobs.filter.is_empty(), cx.knobs.scope.is_empty()) {
        (false, _) => "not in what the filter keeps",
        (true, false) => "no samples in this scope",
        (true, true) => "gone from the window",
    };
    format!("{why}; it had {}", amount(cx, samples))
}
