//! A key in three spellings: as the terminal sends it, as a configuration file writes it, and as
//! the help shows it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::str::FromStr;

/// A key with the modifiers that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    Char(char),
    Ctrl(char),
    /// A key without a character, such as an arrow or Enter.
    Code(KeyCode),
}

/// The error for a text that is not the name of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoKey;

/// The keys that are written as words.
const NAMES: &[(&str, Key)] = &[
    ("space", Key::Char(' ')),
    ("enter", Key::Code(KeyCode::Enter)),
    ("esc", Key::Code(KeyCode::Esc)),
    ("tab", Key::Code(KeyCode::Tab)),
    ("shift-tab", Key::Code(KeyCode::BackTab)),
    ("backspace", Key::Code(KeyCode::Backspace)),
    ("del", Key::Code(KeyCode::Delete)),
    ("ins", Key::Code(KeyCode::Insert)),
    ("up", Key::Code(KeyCode::Up)),
    ("down", Key::Code(KeyCode::Down)),
    ("left", Key::Code(KeyCode::Left)),
    ("right", Key::Code(KeyCode::Right)),
    ("pgup", Key::Code(KeyCode::PageUp)),
    ("pgdn", Key::Code(KeyCode::PageDown)),
    ("home", Key::Code(KeyCode::Home)),
    ("end", Key::Code(KeyCode::End)),
];

impl FromStr for Key {
    type Err = NoKey;

    fn from_str(text: &str) -> Result<Self, NoKey> {
        let mut letters = text.chars();
        if let (Some(c), None) = (letters.next(), letters.next()) {
            return if c.is_control() || c.is_whitespace() {
                Err(NoKey)
            } else {
                Ok(Key::Char(c))
            };
        }
        let text = text.to_ascii_lowercase();
        if let Some((_, key)) = NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(*key);
        }
        if let Some(letter) = text.strip_prefix("ctrl-") {
            let mut letters = letter.chars();
            return match (letters.next(), letters.next()) {
                (Some(c), None) if c.is_ascii_lowercase() => Ok(Key::Ctrl(c)),
                _ => Err(NoKey),
            };
        }
        match text.strip_prefix('f').map(str::parse) {
            Some(Ok(number @ 1..=12)) => Ok(Key::Code(KeyCode::F(number))),
            _ => Err(NoKey),
        }
    }
}

impl Key {
    /// Whether a key press from the terminal is this key. Shift is not compared, because it already
    /// changes the character.
    pub fn is(self, event: KeyEvent) -> bool {
        let control = event.modifiers.contains(KeyModifiers::CONTROL);
        let alt = event.modifiers.contains(KeyModifiers::ALT);
        match self {
            Key::Char(c) => event.code == KeyCode::Char(c) && !control && !alt,
            Key::Ctrl(c) => event.code == KeyCode::Char(c) && control,
            Key::Code(code) => event.code == code,
        }
    }

    /// Returns the key as the line of keys and the help show it. With `ascii`, arrows and other
    /// symbols are replaced.
    pub fn label(self, ascii: bool) -> String {
        match self {
            Key::Char(' ') => "Space".into(),
            Key::Char(c) => c.into(),
            Key::Ctrl(c) => format!("^{c}"),
            Key::Code(KeyCode::F(number)) => format!("F{number}"),
            Key::Code(KeyCode::Up) if !ascii => "↑".into(),
            Key::Code(KeyCode::Down) if !ascii => "↓".into(),
            Key::Code(KeyCode::Right) if !ascii => "→".into(),
            Key::Code(KeyCode::Left) if !ascii => "←".into(),
            Key::Code(KeyCode::Backspace) if !ascii => "⌫".into(),
            Key::Code(KeyCode::Backspace) => "Bksp".into(),
            Key::Code(KeyCode::BackTab) => "Shift-Tab".into(),
            Key::Code(KeyCode::PageUp) => "PgUp".into(),
            Key::Code(KeyCode::PageDown) => "PgDn".into(),
            Key::Code(code) => format!("{code:?}"),
        }
    }

    /// Returns the key as it is written in a configuration file, from which [`FromStr`] can parse
    /// it.
    pub fn written(self) -> String {
        if let Some((name, _)) = NAMES.iter().find(|(_, key)| *key == self) {
            return (*name).into();
        }
        match self {
            Key::Ctrl(c) => format!("ctrl-{c}"),
            Key::Code(KeyCode::F(number)) => format!("f{number}"),
            other => other.label(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Keymap;

    #[test]
    fn what_is_written_is_read_again() {
        for binding in Keymap::default().all() {
            for key in &binding.keys {
                assert_eq!(key.written().parse(), Ok(*key));
                assert!(key.label(true).is_ascii());
            }
        }
        for wrong in ["", " ", "ctrl-", "ctrl-1", "f13", "f0", "hyper-x", "\u{7}"] {
            assert_eq!(wrong.parse::<Key>(), Err(NoKey), "{wrong:?}");
        }
        assert_eq!("SPACE".parse(), Ok(Key::Char(' ')));
        assert_eq!("é".parse(), Ok(Key::Char('é')));
    }
}
