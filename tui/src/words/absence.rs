//! Why a row that was there is not there now.

use crate::context::Context;
use crate::words::metric::amount;

/// Returns the word in place of a number for a row without samples. With a filter it is
/// "hidden", and in a part of the whole "none", because otherwise there may be some.
pub fn word(cx: &Context<'_>) -> &'static str {
    match (cx.knobs.filter.is_empty(), cx.knobs.scope.is_empty()) {
        (false, _) => "hidden",
        (true, false) => "none",
        (true, true) => "gone",
    }
}

/// Returns why a row has no samples, and how many it had when it was last seen. They were of
/// what was counted then, so that they are no part of what is counted now.
pub fn sentence(cx: &Context<'_>, samples: u64) -> String {
    let why = match (cx.knobs.filter.is_empty(), cx.knobs.scope.is_empty()) {
        (false, _) => "not in what the filter keeps",
        (true, false) => "no samples in this scope",
        (true, true) => "gone from the window",
    };
    format!("{why}; it had {}", amount(cx, samples))
}
