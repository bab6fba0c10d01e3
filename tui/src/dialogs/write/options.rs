//! The options for a file: whether threads are kept apart, which names it contains, and whether
//! more files follow.

use super::FileKind;
use crossterm::event::{KeyCode, KeyEvent};
use profile::Selection;
use std::time::Duration;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Manner {
    /// Keep each thread apart, in formats that would join threads of the same name.
    pub by_thread: bool,
    /// Write numbers in place of the names of processes, users, machines and directories. The names
    /// of files with code and of functions stay.
    pub hides_names: bool,
    /// Write places in files in place of functions and lines.
    pub omits_symbols: bool,
    /// Leave out the build ids of files.
    pub omits_build_ids: bool,
}

impl Manner {
    /// Returns the selection as it is written: without what these options leave out.
    pub fn apply(self, mut selection: Selection) -> Selection {
        if self.hides_names {
            selection = selection.anonymous();
        }
        if self.omits_symbols {
            selection = selection.without_symbols();
        }
        if self.omits_build_ids {
            selection = selection.without_build_ids();
        }
        selection
    }

    /// Returns a sentence if the screen as text cannot fulfill these options, otherwise `None`.
    pub fn why_no_text(self) -> Option<&'static str> {
        match self {
            Manner {
                hides_names: true, ..
            } => Some("the screen shows names: write another format, or do not hide them"),
            Manner {
                omits_symbols: true,
                ..
            } => Some("the screen shows symbols: write another format, or with symbols"),
            _ => None,
        }
    }
}

/// All options of the dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How each file is written.
    pub manner: Manner,
    /// Whether more files follow, one every `seconds`.
    pub repeats: bool,
    /// The seconds between files; 0 if the user deleted all digits.
    pub seconds: u32,
    /// Whether the next digit is appended to the number; otherwise it starts a new one.
    pub is_typing: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            manner: Manner::default(),
            repeats: false,
            seconds: 60,
            is_typing: false,
        }
    }
}

/// Maximum number of seconds between files: a day.
const SECONDS_MAX: u32 = 86_400;

/// Whether an option is on, or why the user cannot change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    On,
    Off,
    /// The format does this in any case.
    Always,
    /// The format, or the source of the samples, cannot do this.
    Never,
}

impl Options {
    /// Returns whether threads are kept apart in this kind of file.
    pub fn by_thread(&self, kind: FileKind) -> Switch {
        match kind {
            FileKind::Profile(format) if format.has_threads() => Switch::Always,
            FileKind::Profile(_) => Switch::of(self.manner.by_thread),
            FileKind::Text => Switch::Never,
        }
    }

    /// Returns whether names are hidden in this kind of file.
    pub fn hides_names(&self, kind: FileKind) -> Switch {
        match kind {
            FileKind::Profile(_) => Switch::of(self.manner.hides_names),
            // The screen shows names.
            FileKind::Text => Switch::Never,
        }
    }

    /// Returns whether this kind of file contains functions and lines.
    pub fn symbols(&self, kind: FileKind) -> Switch {
        match kind {
            FileKind::Profile(_) => Switch::of(!self.manner.omits_symbols),
            FileKind::Text => Switch::Always,
        }
    }

    /// Returns whether this kind of file contains build ids.
    pub fn build_ids(&self, kind: FileKind) -> Switch {
        match kind {
            FileKind::Profile(format) if format.has_build_ids() => {
                Switch::of(!self.manner.omits_build_ids)
            }
            _ => Switch::Never,
        }
    }

    /// Returns whether more files follow. If no more samples will come (`goes_on` is false), there
    /// is only one.
    pub fn repeats(&self, goes_on: bool) -> Switch {
        if goes_on {
            Switch::of(self.repeats)
        } else {
            Switch::Never
        }
    }

    /// Returns the time between two files, or `None` if only one is wanted.
    pub fn every(&self) -> Option<Duration> {
        let is_wanted = self.repeats && self.seconds > 0;
        is_wanted.then(|| Duration::from_secs(self.seconds.into()))
    }

    /// Handles a key in the field for seconds. Returns false if it has no meaning there. Typing a
    /// number also turns the option on.
    pub fn type_seconds(&mut self, key: KeyEvent) -> bool {
        match key.code {
            KeyCode::Char(c) => match c.to_digit(10) {
                Some(digit) => {
                    let before = if self.is_typing { self.seconds } else { 0 };
                    let typed = before.saturating_mul(10).saturating_add(digit);
                    self.seconds = typed.min(SECONDS_MAX);
                    self.repeats = true;
                }
                None => return false,
            },
            KeyCode::Backspace => self.seconds /= 10,
            _ => return false,
        }
        self.is_typing = true;
        true
    }
}

impl Switch {
    fn of(is_on: bool) -> Self {
        if is_on { Switch::On } else { Switch::Off }
    }

    /// Returns the box that is drawn before the option.
    pub fn sign(self) -> &'static str {
        match self {
            Switch::On | Switch::Always => "[x]",
            Switch::Off => "[ ]",
            Switch::Never => "[-]",
        }
    }

    /// Whether the user can turn the option on and off.
    pub fn can_be_turned(self) -> bool {
        matches!(self, Switch::On | Switch::Off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_digit_begins_a_number() {
        let mut options = Options::default();
        for digit in ['1', '5'] {
            options.type_seconds(KeyEvent::from(KeyCode::Char(digit)));
        }
        assert_eq!((options.seconds, options.repeats), (15, true));
    }

    #[test]
    fn seconds_are_typed_within_bounds() {
        let mut options = Options::default();
        assert_eq!(options.every(), None);
        let mut press = |code| {
            assert!(options.type_seconds(KeyEvent::from(code)));
            (
                options.seconds,
                options.every().map(|every| every.as_secs()),
            )
        };
        assert_eq!(press(KeyCode::Backspace), (6, None));
        assert_eq!(press(KeyCode::Backspace), (0, None));
        assert_eq!(press(KeyCode::Char('0')), (0, None), "no time is no time");
        assert_eq!(press(KeyCode::Char('5')), (5, Some(5)));
        for _ in 0..12 {
            press(KeyCode::Char('9'));
        }
        assert_eq!(press(KeyCode::Char('9')).0, SECONDS_MAX);
        assert!(!options.type_seconds(KeyEvent::from(KeyCode::Char('x'))));
    }
}
