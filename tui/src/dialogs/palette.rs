//! The *palette*: actions that keys have in this view, found by their names, for users who
//! do not know the key; and *orders*, which have an argument.

use super::line_edit::LineEdit;
use crate::action::{Action, Binding, Keymap};
use crate::notice::Notice;
use crate::view_id::ViewId;

/// The open palette: what was typed and chosen.
#[derive(Debug, Default)]
pub struct Palette {
    pub line: LineEdit,
    /// Which of the matches is chosen; the first is 0.
    pub chosen: usize,
    /// Why the order that was typed cannot be carried out.
    pub error: Option<Notice>,
}

impl Palette {
    /// Returns the actions that have every typed word in their name or description.
    pub fn matches<'a>(&self, keymap: &'a Keymap, view: ViewId) -> Vec<&'a Binding> {
        let typed = self.line.text().to_lowercase();
        let words: Vec<&str> = typed.split_whitespace().collect();
        let has = |binding: &Binding, word: &str| {
            binding.name.contains(word) || binding.help.to_lowercase().contains(word)
        };
        let mut found: Vec<&Binding> = keymap
            .of(view)
            .filter(|binding| !binding.help.is_empty() && binding.action != Action::Palette)
            .filter(|binding| words.iter().all(|word| has(binding, word)))
            .collect();
        // Actions whose name begins with what was typed come first.
        found.sort_by_key(|binding| !binding.name.starts_with(&typed));
        found
    }

    /// Returns the action that Enter would carry out. None if nothing matches.
    pub fn chosen(&self, keymap: &Keymap, view: ViewId) -> Option<Action> {
        let matches = self.matches(keymap, view);
        Some(matches.get(self.chosen)?.action)
    }

    /// Chooses the next or the previous match. After the last comes the first.
    pub fn step(&mut self, down: bool, keymap: &Keymap, view: ViewId) {
        let count = self.matches(keymap, view).len();
        self.chosen = match (self.chosen, down) {
            (_, _) if count == 0 => 0,
            (at, true) => (at + 1) % count,
            (at, false) => (at + count - 1) % count,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn palette(typed: &str) -> Palette {
        Palette {
            line: LineEdit::new(typed),
            ..Palette::default()
        }
    }

    #[test]
    fn words_find_what_they_are_about() {
        let keymap = Keymap::default();
        let first = |typed: &str, view| palette(typed).chosen(&keymap, view);
        assert_eq!(first("freeze", ViewId::Functions), Some(Action::Freeze));
        assert_eq!(first("hot path", ViewId::Tree), Some(Action::HotPath));
        assert_eq!(first("hot path", ViewId::Functions), None);
        assert_eq!(first("top", ViewId::Functions), Some(Action::Top));
        assert_eq!(first("FILE", ViewId::Functions), Some(Action::Write));
        assert!(palette("").matches(&keymap, ViewId::Time).len() > 20);
    }

    #[test]
    fn steps_go_round() {
        let keymap = Keymap::default();
        let mut palette = palette("window");
        let count = palette.matches(&keymap, ViewId::Functions).len();
        assert!(count > 1);
        palette.step(false, &keymap, ViewId::Functions);
        assert_eq!(palette.chosen, count - 1);
        palette.step(true, &keymap, ViewId::Functions);
        assert_eq!(palette.chosen, 0);
        palette.line = LineEdit::new("no such thing");
        palette.step(true, &keymap, ViewId::Functions);
        assert_eq!(palette.chosen(&keymap, ViewId::Functions), None);
    }
}
