//! The *help* of a view: its keys, from the table of keys, and the meaning of its words, from the
//! glossary. It is plain text, which the screen only puts into a frame.

use crate::action::{Action, Keymap, Scope};
use crate::view_id::ViewId;
use crate::words::glossary;

/// One line of the help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelpLine {
    pub text: String,
    pub is_heading: bool,
}

/// The width of one of two columns. The texts are written to fit it.
pub const COLUMN_WIDTH: usize = 38;

/// What the mouse does, as pairs of a word and its explanation.
const MOUSE: &[(&str, &str)] = &[
    ("click", "row, tab, step of line 2;"),
    ("", "a head sorts"),
    ("wheel", "moves the selection"),
];

/// Returns the left and the right column of the help. If there is room for one column only, the
/// right one is below the left one.
pub fn columns(keymap: &Keymap, view: ViewId, ascii: bool) -> [Vec<HelpLine>; 2] {
    let mut left = Vec::new();
    left.push(heading("HERE"));
    left.extend(keys(
        keymap,
        view,
        |scope| scope != Scope::Everywhere,
        ascii,
    ));
    left.push(heading("WORDS"));
    let words = glossary::of(view).iter().chain(glossary::EVERYWHERE);
    left.extend(words.map(|(word, text)| entry(word, text)));
    left.push(heading("MOUSE"));
    left.extend(MOUSE.iter().map(|(word, text)| entry(word, text)));
    if let Some(key) = keymap.label(Action::Mouse, view) {
        left.push(entry(&key, "mouse off: the terminal"));
        left.push(entry("", "selects text again"));
    }
    let mut right = vec![heading("EVERYWHERE")];
    let mut everywhere: Vec<HelpLine> =
        keys(keymap, view, |scope| scope == Scope::Everywhere, ascii).collect();
    if let Some(views) = views(keymap, view) {
        // The keys of the views are also on the line of tabs.
        let names: Vec<&str> = keymap
            .of(view)
            .filter(|binding| matches!(binding.action, Action::View(_)))
            .map(|binding| binding.help)
            .collect();
        let is_view = |line: &HelpLine| names.iter().any(|name| line.text.ends_with(name));
        let first = everywhere.iter().position(is_view);
        everywhere.retain(|line| !is_view(line));
        everywhere.insert(first.unwrap_or(0).min(everywhere.len()), views);
    }
    right.extend(everywhere);
    [left, right]
}

/// Returns the number of lines to scroll through.
pub fn line_count(keymap: &Keymap, view: ViewId, two_columns: bool) -> usize {
    let [left, right] = columns(keymap, view, false);
    if two_columns {
        left.len().max(right.len())
    } else {
        left.len() + right.len()
    }
}

/// Whether two columns fit into a terminal of this width.
pub fn has_two_columns(width: u16) -> bool {
    usize::from(width) >= 2 * COLUMN_WIDTH + 4
}

/// Returns one line for the keys of all views if these are consecutive digits, or `None` if the
/// user has assigned other keys.
fn views(keymap: &Keymap, view: ViewId) -> Option<HelpLine> {
    let bindings = keymap.of(view);
    let views = bindings.filter(|binding| matches!(binding.action, Action::View(_)));
    let labels: Vec<String> = views.map(|binding| binding.labels(true)).collect();
    let digits = (1..).map(|number: usize| number.to_string());
    let are_digits = labels
        .iter()
        .zip(digits)
        .all(|(label, digit)| *label == digit);
    (are_digits && labels.len() > 1).then(|| {
        let keys = format!("1-{}", labels.len());
        entry(&keys, "views, as on their tabs")
    })
}

/// Returns a line for each action that has keys and a sentence, in the order of the table.
fn keys(
    keymap: &Keymap,
    view: ViewId,
    wanted: impl Fn(Scope) -> bool,
    ascii: bool,
) -> impl Iterator<Item = HelpLine> {
    keymap
        .of(view)
        .filter(move |binding| wanted(binding.scope) && !binding.help.is_empty())
        .filter(|binding| !binding.keys.is_empty())
        .map(move |binding| entry(&binding.labels(ascii), binding.help))
}

fn heading(text: &str) -> HelpLine {
    HelpLine {
        text: text.into(),
        is_heading: true,
    }
}

/// Returns a line with its first word in a column of its own.
fn entry(key: &str, text: &str) -> HelpLine {
    HelpLine {
        text: format!("  {key:<9} {text}"),
        is_heading: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr;

    #[test]
    fn every_line_fits_its_column() {
        for view in ViewId::ALL.into_iter().chain([ViewId::Page]) {
            for ascii in [false, true] {
                for line in columns(&Keymap::default(), view, ascii).iter().flatten() {
                    assert!(line.text.width() <= COLUMN_WIDTH, "{:?}", line.text);
                }
            }
        }
    }
}
