//! Keys that sentences name: those that do it now. What has no key is left out, so
//! that no sentence names one that does something else.

use crate::action::Action;
use crate::context::Context;

/// The key of an action where the keys go.
pub fn key(cx: &Context<'_>, action: Action) -> Option<String> {
    cx.key(action)
}

/// `m: mark anew`
pub fn hint(cx: &Context<'_>, action: Action, words: &str) -> Option<String> {
    Some(format!("{}: {words}", key(cx, action)?))
}

/// `n N: next, previous`; `None` if one of them has no key.
pub fn hints(cx: &Context<'_>, [one, other]: [Action; 2], words: &str) -> Option<String> {
    Some(format!("{} {}: {words}", key(cx, one)?, key(cx, other)?))
}

/// A sentence and the keys behind it, as far as there are some.
pub fn and<const N: usize>(text: &str, gap: &str, hints: [Option<String>; N]) -> String {
    let hints: Vec<String> = hints.into_iter().flatten().collect();
    match hints.is_empty() {
        true => text.to_owned(),
        false => format!("{text}{gap}{}", hints.join(", ")),
    }
}
