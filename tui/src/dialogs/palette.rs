//! The *palette*: everything that keys can do here, by its name, for whoever
//! does not know the key, and *orders*, with a word behind them.

use super::line_edit::LineEdit;
use crate::action::{Action, Binding, Keymap};
use crate::notice::Notice;
use crate::view_id::ViewId;

/// While it is open.
#[derive(Debug, Default)]
pub struct Palette {
    pub line: LineEdit,
    /// Which of the matches.
    pub chosen: usize,
    /// Why what was said cannot be done.
    pub error: Option<Notice>,
}

impl Palette {
    /// What has every word that was typed, in its name or in what it does.
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
        // Who types a name means that one.
        found.sort_by_key(|binding| !binding.name.starts_with(&typed));
        found
    }

    /// The one that Enter would do.
    pub fn chosen(&self, keymap: &Keymap, view: ViewId) -> Option<Action> {
        let matches = self.matches(keymap, view);
        Some(matches.get(self.chosen)?.action)
    }

    /// Round and round.
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
