//! The *palette* finds the actions of a view by their names, for users who do not know the keys. It
//! also takes *orders*, which have an argument.

use super::line_edit::LineEdit;
use crate::action::{Action, Binding, Keymap};
use crate::notice::Notice;
use crate::order::{Kind, said};
use crate::view_id::ViewId;
use engine::probes::{Probe, Suggested};
use profile::few;
use std::sync::Arc;

/// The open palette: the text that was typed, and the choice.
#[derive(Debug, Default)]
pub struct Palette {
    pub line: LineEdit,
    /// The index of the chosen match.
    pub chosen: usize,
    /// Why the typed order cannot be carried out.
    pub error: Option<Notice>,
    /// The text before it was completed, and the index of the completion.
    completed: Option<(String, usize)>,
}

/// Words that are valid values at every call.
const VALUES: [&str; 10] = [
    "arg1",
    "arg2",
    "arg3",
    "arg4",
    "arg5",
    "arg6",
    "ret",
    "this",
    "str(arg1)",
    "none",
];

impl Palette {
    /// Returns the actions whose name or description contains every typed word.
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
        // Actions whose name starts with the text come first.
        few::sort_by_key(&mut found, |binding| !binding.name.starts_with(&typed));
        found
    }

    /// Returns a palette with this text in its line.
    pub fn typed(text: &str) -> Palette {
        Palette {
            line: LineEdit::new(text),
            ..Palette::default()
        }
    }

    /// Forgets completion, choice and error, because other text was typed.
    pub fn begin_anew(&mut self) {
        (self.chosen, self.error, self.completed) = (0, None, None);
    }

    /// Returns the text that the user typed, without completion.
    fn by_hand(&self) -> &str {
        match &self.completed {
            Some((typed, _)) => typed,
            None => self.line.text(),
        }
    }

    /// Returns the part of a name that names are searched for, or `None` if the text is not an
    /// order for a probe.
    pub fn part_of_probe(&self) -> Option<&str> {
        match said(self.line.text())? {
            (Kind::Probe, part) => Some(part),
            _ => None,
        }
    }

    /// Returns the possible completions of the text: for a probe the names in `suggested`, for a
    /// value the arguments of `probe`.
    pub fn completions(&self, suggested: Option<&Suggested>, probe: Option<&Probe>) -> Vec<String> {
        let typed = self.by_hand();
        if let Some((Kind::Probe, part)) = said(typed) {
            let found = suggested.filter(|suggested| &*suggested.typed == part);
            let names = found.map_or(&[][..], |found| &found.names);
            return names.iter().map(|name| format!("probe {name}")).collect();
        }
        let Some(value) = typed.trim_start().strip_prefix("value ") else {
            return Vec::new();
        };
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let begin = value
            .rfind(|letter| !is_word(letter))
            .map_or(0, |at| at + 1);
        let (before, word) = value.split_at(begin);
        // The members after a dot are not known here.
        if before.ends_with(['.', '>', '%', ':']) {
            return Vec::new();
        }
        let own = probe.and_then(|probe| probe.seen.as_ref());
        let own: &[Arc<str>] = own.map_or(&[], |seen| &seen.site.arguments);
        let has_own = !own.is_empty();
        let usual = VALUES.iter().filter(|_| !has_own).copied();
        let all = own.iter().map(|name| &**name).chain(usual);
        all.filter(|name| name.starts_with(word) && *name != word)
            .map(|name| format!("value {before}{name}"))
            .collect()
    }

    /// Returns the index of the completion in the line, or `None` if the user typed the text.
    pub fn completion(&self) -> Option<usize> {
        self.completed.as_ref().map(|(_, at)| *at)
    }

    /// Puts the next or the previous completion into the line.
    pub fn complete(&mut self, down: bool, completions: &[String]) {
        let count = completions.len();
        let at = match (self.completion(), down) {
            (None, true) => 0,
            (None, false) => count - 1,
            (Some(at), true) => (at + 1) % count,
            (Some(at), false) => (at + count - 1) % count,
        };
        let typed = self.by_hand().to_owned();
        self.line = LineEdit::new(&completions[at]);
        self.completed = Some((typed, at));
        self.error = None;
    }

    /// Returns the action that Enter would carry out, or `None` if nothing matches.
    pub fn chosen(&self, keymap: &Keymap, view: ViewId) -> Option<Action> {
        let matches = self.matches(keymap, view);
        Some(matches.get(self.chosen)?.action)
    }

    /// Chooses the next or the previous match. After the last one comes the first.
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
    fn a_probe_is_completed_by_what_was_suggested_for_it() {
        let names = ["usdt:python:line", "usdt:python:gc__start"]
            .map(Arc::from)
            .to_vec();
        let typed = "usdt:py".into();
        let suggested = Suggested { typed, names };
        let mut palette = palette("probe usdt:py");
        assert_eq!(palette.part_of_probe(), Some("usdt:py"));
        let found = palette.completions(Some(&suggested), None);
        palette.complete(true, &found);
        assert_eq!(palette.line.text(), "probe usdt:python:line");
        // The list belongs to the typed text, and after its last entry comes the first.
        assert_eq!(palette.completions(Some(&suggested), None), found);
        palette.complete(false, &found);
        assert_eq!(palette.line.text(), "probe usdt:python:gc__start");
        palette.begin_anew();
        assert!(palette.completions(Some(&suggested), None).is_empty());
    }

    #[test]
    fn a_value_is_completed_at_its_last_word() {
        let of = |typed: &str| palette(typed).completions(None, None);
        assert_eq!(of("value re"), ["value ret"]);
        assert_eq!(of("value str(th"), ["value str(this"]);
        assert!(of("value this.a").is_empty() && of("unit re").is_empty());
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
