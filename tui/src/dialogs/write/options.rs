//! What else can be chosen of a file: how stacks are told apart, whose names are in
//! it, and whether another one follows.

use super::FileKind;
use crossterm::event::{KeyCode, KeyEvent};
use profile::Selection;
use std::time::Duration;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Manner {
    /// Each thread by itself, where a format would put those of one name together.
    pub by_thread: bool,
    /// Numbers in the place of commands, users, machines and directories.
    pub hides_names: bool,
    /// Places in files in the place of functions and lines.
    pub omits_symbols: bool,
    pub omits_build_ids: bool,
}

impl Manner {
    /// What of a selection is written.
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

    /// What the screen as text cannot do, in the words of who asks for it.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    pub manner: Manner,
    /// More files follow, one each so many seconds.
    pub repeats: bool,
    /// 0 while another number is typed.
    pub seconds: u32,
    /// What is typed next belongs to the number, or begins one.
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

/// A day.
const SECONDS_MAX: u32 = 86_400;

/// Whether something is chosen, or why it is not to be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    On,
    Off,
    /// The format does so in any case.
    Always,
    /// It cannot be had of this.
    Never,
}

impl Options {
    pub fn by_thread(&self, kind: FileKind) -> Switch {
        match kind {
            FileKind::Profile(format) if format.has_threads() => Switch::Always,
            FileKind::Profile(_) => Switch::of(self.manner.by_thread),
            FileKind::Text => Switch::Never,
        }
    }

    pub fn hides_names(&self, kind: FileKind) -> Switch {
        match kind {
            FileKind::Profile(_) => Switch::of(self.manner.hides_names),
            // What is on the screen has them.
            FileKind::Text => Switch::Never,
        }
    }

    pub fn symbols(&self, kind: FileKind) -> Switch {
        match kind {
            FileKind::Profile(_) => Switch::of(!self.manner.omits_symbols),
            FileKind::Text => Switch::Always,
        }
    }

    pub fn build_ids(&self, kind: FileKind) -> Switch {
        match kind {
            FileKind::Profile(format) if format.has_build_ids() => {
                Switch::of(!self.manner.omits_build_ids)
            }
            _ => Switch::Never,
        }
    }

    /// Whether files are written again and again; of what does not go on there is only one.
    pub fn repeats(&self, goes_on: bool) -> Switch {
        match goes_on {
            true => Switch::of(self.repeats),
            false => Switch::Never,
        }
    }

    /// How long from one file to the next.
    pub fn every(&self) -> Option<Duration> {
        let is_wanted = self.repeats && self.seconds > 0;
        is_wanted.then(|| Duration::from_secs(self.seconds.into()))
    }

    /// A key at the number of seconds; whether it meant something. Who types one
    /// wants more files.
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

    pub fn sign(self) -> &'static str {
        match self {
            Switch::On | Switch::Always => "[x]",
            Switch::Off => "[ ]",
            Switch::Never => "[-]",
        }
    }

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
