//! A line of text that is being typed, and the caret in it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Maximum length of a line, in bytes. A longer text was pasted by mistake.
pub const LENGTH_MAX: usize = 1000;

/// A line of text that is being typed, with its caret.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineEdit {
    text: String,
    /// The position of the caret in bytes, between two characters.
    caret: usize,
}

impl LineEdit {
    /// Creates a line with this text, and the caret at its end.
    pub fn new(text: &str) -> Self {
        LineEdit {
            text: text.into(),
            caret: text.len(),
        }
    }

    /// Returns the whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text before the caret.
    pub fn before(&self) -> &str {
        &self.text[..self.caret]
    }

    /// Handles a key. Returns false if the key has no meaning in a line of text.
    pub fn press(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if key.modifiers.contains(KeyModifiers::ALT) {
            return false;
        }
        match key.code {
            KeyCode::Char('u') if control => {
                self.text.drain(..self.caret);
                self.caret = 0;
            }
            KeyCode::Char('w') if control => self.remove_word(),
            KeyCode::Char('a') if control => self.caret = 0,
            KeyCode::Char('e') if control => self.caret = self.text.len(),
            KeyCode::Char(c) if !control && !c.is_control() => self.insert(c),
            KeyCode::Backspace => {
                if let Some(c) = self.before().chars().next_back() {
                    self.caret -= c.len_utf8();
                    self.text.remove(self.caret);
                }
            }
            KeyCode::Delete if self.caret < self.text.len() => {
                self.text.remove(self.caret);
            }
            KeyCode::Left => {
                let last = self.before().chars().next_back();
                self.caret -= last.map_or(0, char::len_utf8);
            }
            KeyCode::Right => {
                let next = self.text[self.caret..].chars().next();
                self.caret += next.map_or(0, char::len_utf8);
            }
            KeyCode::Home => self.caret = 0,
            KeyCode::End => self.caret = self.text.len(),
            _ => return false,
        }
        true
    }

    /// Inserts a character at the caret, if the line is not full.
    fn insert(&mut self, c: char) {
        if self.text.len() + c.len_utf8() <= LENGTH_MAX {
            self.text.insert(self.caret, c);
            self.caret += c.len_utf8();
        }
    }

    /// Removes the word before the caret, and the blanks between word and caret.
    fn remove_word(&mut self) {
        let word = self.before().trim_end();
        let start = word.rfind(char::is_whitespace).map_or(0, |at| {
            at + word[at..].chars().next().map_or(0, char::len_utf8)
        });
        self.text.drain(start..self.caret);
        self.caret = start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn press(line: &mut LineEdit, code: KeyCode) {
        line.press(KeyEvent::new(code, KeyModifiers::NONE));
    }

    #[test]
    fn letters_go_where_the_caret_is() {
        let mut line = LineEdit::new("fn:ä x");
        for code in [KeyCode::Left, KeyCode::Left, KeyCode::Backspace] {
            press(&mut line, code);
        }
        press(&mut line, KeyCode::Char('é'));
        assert_eq!((line.text(), line.before()), ("fn:é x", "fn:é"));
        press(&mut line, KeyCode::End);
        line.press(KeyEvent::new(KeyCode::Char('w'), KeyModifiers::CONTROL));
        assert_eq!(line.text(), "fn:é ");
        line.press(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
        assert_eq!(line.text(), "");
    }

    proptest! {
        #[test]
        fn no_keys_break_it(
            text in "\\PC{0,20}",
            keys in prop::collection::vec((0usize..9, any::<char>(), any::<bool>()), 0..60),
        ) {
            let mut line = LineEdit::new(&text);
            for (kind, c, control) in keys {
                let code = [
                    KeyCode::Char(c), KeyCode::Char('w'), KeyCode::Char('u'), KeyCode::Left,
                    KeyCode::Right, KeyCode::Backspace, KeyCode::Delete, KeyCode::Home, KeyCode::End,
                ][kind];
                let modifiers = if control {
                    KeyModifiers::CONTROL
                } else {
                    KeyModifiers::NONE
                };
                line.press(KeyEvent::new(code, modifiers));
                prop_assert!(line.text().is_char_boundary(line.before().len()));
            }
        }
    }
}
