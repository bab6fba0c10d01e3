//! Keys in sentences: the present ones, because users can change them. An action without a key is
//! left out of the sentence.

use crate::action::Action;
use crate::context::Context;

/// Returns the key of an action in the focused view. None if it has none.
pub fn key(cx: &Context<'_>, action: Action) -> Option<String> {
    cx.key(action)
}

/// Returns a hint, as in `m: mark anew`. None if the action has no key.
pub fn hint(cx: &Context<'_>, action: Action, words: &str) -> Option<String> {
    Some(format!("{}: {words}", key(cx, action)?))
}

/// Returns a hint for two actions, as in `n N: next, previous`. None if one of them has no key.
pub fn hints(cx: &Context<'_>, [one, other]: [Action; 2], words: &str) -> Option<String> {
    Some(format!("{} {}: {words}", key(cx, one)?, key(cx, other)?))
}

/// Returns a text followed by those hints that are not None.
pub fn and<const N: usize>(text: &str, gap: &str, hints: [Option<String>; N]) -> String {
    let hints: Vec<String> = hints.into_iter().flatten().collect();
    if hints.is_empty() {
        text.to_owned()
    } else {
        format!("{text}{gap}{}", hints.join(", "))
    }
}
