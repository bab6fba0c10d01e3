//! A *theme* is which colors and which characters the terminal gets. Colors are
//! decoration only: each meaning also has a sign, a letter or a place, so the
//! theme without any is as usable.

use crate::screen::flame::Tint;
use profile::FrameKind;
use ratatui::style::{Color, Modifier, Style};

/// How many colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Palette {
    Mono,
    /// The user's own sixteen, never the bright ones.
    Sixteen,
    /// The fixed ones of the 256, legible on dark and on light.
    Indexed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    Utf8,
    /// 0x20 to 0x7e only.
    Ascii,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    pub palette: Palette,
    pub charset: Charset,
}

/// What the command line says; the rest is found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThemeChoice {
    pub palette: Option<Palette>,
    pub ascii: bool,
}

impl Theme {
    /// The command line first, then the environment, which `variable` looks up.
    pub fn detect(choice: ThemeChoice, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let term = set("TERM").unwrap_or_default();
        let ascii = choice.ascii || term == "linux" || term == "dumb" || !is_utf8(set);
        Theme {
            palette: choice.palette.unwrap_or_else(|| palette(set, &term)),
            charset: if ascii { Charset::Ascii } else { Charset::Utf8 },
        }
    }

    pub fn is_ascii(self) -> bool {
        self.charset == Charset::Ascii
    }

    pub fn has_colors(self) -> bool {
        self.palette != Palette::Mono
    }

    pub fn title(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub fn heads(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub fn state(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD)
    }

    pub fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub fn found(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    /// Beside a word that says the same.
    pub fn warning(self) -> Style {
        self.colored(Color::Yellow, 172)
            .add_modifier(Modifier::BOLD)
    }

    /// Takes more time than before; beside a sign that says so. Told apart by
    /// everybody: orange and blue.
    pub fn rising(self) -> Style {
        self.colored(Color::Yellow, 172)
    }

    pub fn falling(self) -> Style {
        self.colored(Color::Blue, 67)
    }

    pub fn trend(self) -> Style {
        self.colored(Color::Cyan, 31)
    }

    /// The module column says which side of the border it is.
    pub fn module(self, kind: FrameKind) -> Style {
        match kind {
            FrameKind::User => self.colored(Color::Blue, 67),
            FrameKind::Kernel => self.colored(Color::Magenta, 133),
            FrameKind::Jit => self.colored(Color::Green, 65),
        }
    }

    /// The background of a frame in the flame graph. With fixed colors the text
    /// on it is black: legible whatever the terminal's own colors are.
    pub fn flame(self, tint: Tint) -> Style {
        let (sixteen, indexed) = match tint {
            Tint::None => return Style::new(),
            Tint::Kernel => (Color::Magenta, 175),
            Tint::Module(0) => (Color::Blue, 110),
            Tint::Module(1) => (Color::Yellow, 179),
            Tint::Module(2) => (Color::Cyan, 79),
            Tint::Module(_) => (Color::Green, 150),
            Tint::Other => (Color::Reset, 250),
        };
        match self.palette {
            Palette::Mono => Style::new(),
            Palette::Sixteen => Style::new().fg(sixteen),
            Palette::Indexed => Style::new()
                .fg(Color::Indexed(16))
                .bg(Color::Indexed(indexed)),
        }
    }

    fn colored(self, sixteen: Color, indexed: u8) -> Style {
        match self.palette {
            Palette::Mono => Style::new(),
            Palette::Sixteen => Style::new().fg(sixteen),
            Palette::Indexed => Style::new().fg(Color::Indexed(indexed)),
        }
    }
}

fn palette(set: impl Fn(&str) -> Option<String>, term: &str) -> Palette {
    let deep = |value: String| value == "truecolor" || value == "24bit";
    if set("NO_COLOR").is_some() || term == "dumb" || term.is_empty() {
        Palette::Mono
    } else if set("COLORTERM").is_some_and(deep) || term.contains("256color") {
        Palette::Indexed
    } else {
        Palette::Sixteen
    }
}

/// As the C library decides: the first of the three that is set.
fn is_utf8(set: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], palette: Palette, charset: Charset) {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let theme = Theme::detect(ThemeChoice::default(), lookup);
        assert_eq!(theme, Theme { palette, charset });
    }

    #[test]
    fn the_environment_decides() {
        use Charset::{Ascii, Utf8};
        use Palette::{Indexed, Mono, Sixteen};
        let utf8 = ("LANG", "en_US.UTF-8");
        check(&[("TERM", "xterm-256color"), utf8], Indexed, Utf8);
        check(
            &[("TERM", "xterm"), ("COLORTERM", "truecolor"), utf8],
            Indexed,
            Utf8,
        );
        check(&[("TERM", "screen"), utf8], Sixteen, Utf8);
        check(&[("TERM", "linux"), utf8], Sixteen, Ascii);
        check(
            &[("TERM", "xterm-256color"), ("NO_COLOR", "1"), utf8],
            Mono,
            Utf8,
        );
        check(&[("TERM", "xterm"), ("NO_COLOR", ""), utf8], Sixteen, Utf8);
        check(&[("TERM", "xterm"), ("LC_ALL", "C"), utf8], Sixteen, Ascii);
        check(&[("TERM", "xterm"), ("LC_ALL", "C.utf8")], Sixteen, Utf8);
        check(&[("TERM", "dumb"), utf8], Mono, Ascii);
        check(&[], Mono, Ascii);
    }

    #[test]
    fn the_command_line_wins() {
        let choice = ThemeChoice {
            palette: Some(Palette::Sixteen),
            ascii: true,
        };
        let theme = Theme::detect(choice, |_| Some("en_US.UTF-8".into()));
        assert_eq!(
            (theme.palette, theme.charset),
            (Palette::Sixteen, Charset::Ascii)
        );
    }
}
