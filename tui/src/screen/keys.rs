//! Keys that sentences name: those that do it now. What has no key is left out, so
//! that no sentence names one that does something else.

use crate::action::Action;
use crate::app::App;

/// The key of an action where the keys go.
pub fn key(app: &App, action: Action) -> Option<String> {
    app.keymap.label(action, app.focus())
}

/// `m: mark anew`
pub fn hint(app: &App, action: Action, words: &str) -> Option<String> {
    Some(format!("{}: {words}", key(app, action)?))
}

/// `n N: next, previous`; nothing if one of them has no key.
pub fn hints(app: &App, [one, other]: [Action; 2], words: &str) -> Option<String> {
    Some(format!("{} {}: {words}", key(app, one)?, key(app, other)?))
}

/// A sentence and the keys behind it, as far as there are some.
pub fn and<const N: usize>(text: &str, gap: &str, hints: [Option<String>; N]) -> String {
    let hints: Vec<String> = hints.into_iter().flatten().collect();
    match hints.is_empty() {
        true => text.to_owned(),
        false => format!("{text}{gap}{}", hints.join(", ")),
    }
}
