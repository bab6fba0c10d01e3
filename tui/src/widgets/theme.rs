//! A *theme* decides which colors and characters are used. Each meaning of a color is also
//! expressed by a sign, a letter or a position, so that the theme without colors is just as usable.

use profile::FrameKind;
use ratatui::style::{Color, Modifier, Style};

/// The color of a frame in the flame graph, by its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tint {
    Kernel,
    /// A module with a color of its own, by the number of that color.
    Module(usize),
    /// All other modules.
    Other,
    /// Frames that are not functions: the root, or missing frames.
    None,
    /// In a comparison: significantly more than before.
    More,
    /// In a comparison: significantly less than before.
    Less,
}

/// The colors that the terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Palette {
    /// No colors.
    Mono,
    /// The sixteen colors that the user has configured, without the bright ones.
    Sixteen,
    /// Those of the 256 colors that are the same on all terminals, chosen to be legible on dark and
    /// light backgrounds.
    Indexed,
}

/// The characters that the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    Utf8,
    /// Only 0x20 to 0x7e.
    Ascii,
}

/// The background of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ground {
    /// Not known: the colors are legible on dark and light, but not as well.
    #[default]
    Unknown,
    Dark,
    Light,
}

/// The colors and characters of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    pub palette: Palette,
    pub charset: Charset,
    pub ground: Ground,
    /// Whether the terminal is known to understand links.
    pub links: bool,
    /// Whether these are the colors for a part of the screen that does not have the keys.
    pub aside: bool,
}

/// One of the sixteen colors, and the indexed colors in its place: for an unknown, a dark and a
/// light background.
type Shades = (Color, [u8; 3]);

const ORANGE: Shades = (Color::Yellow, [166, 214, 94]);
const BLUE: Shades = (Color::Blue, [67, 111, 25]);
const CYAN: Shades = (Color::Cyan, [31, 80, 23]);
const MAGENTA: Shades = (Color::Magenta, [133, 176, 90]);
const GREEN: Shades = (Color::Green, [65, 114, 22]);

/// The choices of the command line. What it leaves open is decided by the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThemeChoice {
    /// `None` leaves the colors to the environment.
    pub palette: Option<Palette>,
    pub ascii: bool,
    pub ground: Ground,
}

impl Theme {
    /// Chooses a theme by the command line, and then by the environment. `variable` returns the
    /// value of an environment variable.
    pub fn detect(choice: ThemeChoice, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let term = set("TERM").unwrap_or_default();
        let ascii = choice.ascii || term == "linux" || term == "dumb" || !is_utf8(set);
        Theme {
            links: takes_links(set),
            aside: false,
            palette: choice.palette.unwrap_or_else(|| palette(set, &term)),
            charset: if ascii { Charset::Ascii } else { Charset::Utf8 },
            ground: match choice.ground {
                Ground::Unknown => told_ground(set),
                chosen => chosen,
            },
        }
    }

    /// Whether the colors depend on the background of the terminal and the background is not known
    /// yet.
    pub fn wants_ground(self) -> bool {
        self.palette == Palette::Indexed && self.ground == Ground::Unknown
    }

    /// Whether only ASCII characters are used.
    pub fn is_ascii(self) -> bool {
        self.charset == Charset::Ascii
    }

    /// Whether any colors are used.
    pub fn has_colors(self) -> bool {
        self.palette != Palette::Mono
    }

    /// Returns the style of titles and keys.
    pub fn title(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Returns the style of the line with the heads of columns.
    pub fn heads(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    /// Returns the style of the selected row: reverse video in the view with the keys, bold
    /// elsewhere.
    pub fn selected(self) -> Style {
        Style::new().add_modifier(if self.aside {
            Modifier::BOLD
        } else {
            Modifier::REVERSED
        })
    }

    /// Returns the theme for a part of the screen that has the keys, or does not.
    pub fn with_keys(self, has_keys: bool) -> Self {
        Theme {
            aside: !has_keys,
            ..self
        }
    }

    /// Returns the style of the state line.
    pub fn state(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD)
    }

    /// Returns the style of less important text.
    pub fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Returns the style of rows that match a search.
    pub fn found(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    /// Returns the style of warnings. A word says the same.
    pub fn warning(self) -> Style {
        self.colored(ORANGE).add_modifier(Modifier::BOLD)
    }

    /// Returns the style of what takes more time than before. A sign says the same. Color-blind
    /// people can distinguish orange and blue.
    pub fn rising(self) -> Style {
        self.colored(ORANGE)
    }

    /// Returns the style of what takes less time than before.
    pub fn falling(self) -> Style {
        self.colored(BLUE)
    }

    /// Returns the style of curves over time.
    pub fn trend(self) -> Style {
        self.colored(CYAN)
    }

    /// Returns the style of the letter for a state of a thread, given its index in
    /// [`STATES`](profile::STATES). The letter says the same.
    pub fn activity(self, state: usize) -> Style {
        match profile::STATES.get(state) {
            Some(&"run") => self.colored(GREEN),
            Some(&"queue" | &"quota" | &"fault") => self.colored(ORANGE),
            Some(&"lock" | &"gil" | &"stopped") => self.colored(MAGENTA),
            Some(&"disk") => self.colored(BLUE),
            Some(&"net") => self.colored(CYAN),
            _ => self.dim(),
        }
    }

    /// Returns the style of a name in the column of modules, which depends on whether the function
    /// is in the kernel, in a program, or in code made at run time.
    pub fn module(self, kind: FrameKind) -> Style {
        match kind {
            FrameKind::User => self.colored(BLUE),
            FrameKind::Kernel => self.colored(MAGENTA),
            FrameKind::Jit | FrameKind::Python => self.colored(GREEN),
        }
    }

    /// Returns the style of a frame in the flame graph. On indexed colors the text is black, which
    /// is legible whatever the terminal's own colors are.
    pub fn flame(self, tint: Tint) -> Style {
        let (sixteen, indexed) = match tint {
            Tint::None => return Style::new(),
            Tint::Kernel => (Color::Magenta, 175),
            Tint::Module(0) => (Color::Blue, 110),
            Tint::Module(1) => (Color::Yellow, 179),
            Tint::Module(2) => (Color::Cyan, 79),
            Tint::Module(_) => (Color::Green, 150),
            Tint::Other => (Color::Reset, 250),
            Tint::More => (Color::Yellow, 179),
            Tint::Less => (Color::Blue, 110),
        };
        match self.palette {
            Palette::Mono => Style::new(),
            Palette::Sixteen => Style::new().fg(sixteen),
            Palette::Indexed => Style::new()
                .fg(Color::Indexed(16))
                .bg(Color::Indexed(indexed)),
        }
    }

    fn colored(self, (sixteen, [any, dark, light]): Shades) -> Style {
        match (self.palette, self.ground) {
            (Palette::Mono, _) => Style::new(),
            (Palette::Sixteen, _) => Style::new().fg(sixteen),
            (Palette::Indexed, Ground::Unknown) => Style::new().fg(Color::Indexed(any)),
            (Palette::Indexed, Ground::Dark) => Style::new().fg(Color::Indexed(dark)),
            (Palette::Indexed, Ground::Light) => Style::new().fg(Color::Indexed(light)),
        }
    }
}

/// Reads the background from `COLORFGBG=15;0`, which rxvt and Konsole set: the last number is the
/// background.
fn told_ground(set: impl Fn(&str) -> Option<String>) -> Ground {
    let colors = set("COLORFGBG").unwrap_or_default();
    match colors.rsplit(';').next().map(str::parse::<u8>) {
        Some(Ok(7 | 15)) => Ground::Light,
        Some(Ok(0..=6 | 8..=14)) => Ground::Dark,
        _ => Ground::Unknown,
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

/// Whether text is UTF-8, as the C library decides: by the first of the three variables that is
/// set.
fn is_utf8(set: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Whether the terminal is known to understand links. `set` returns the value of an environment
/// variable.
fn takes_links(set: impl Fn(&str) -> Option<String>) -> bool {
    let term = set("TERM").unwrap_or_default();
    let program = set("TERM_PROGRAM").unwrap_or_default();
    let is_multiplexed = term.starts_with("screen") && program != "tmux";
    if term.is_empty() || term == "dumb" || term == "linux" || is_multiplexed {
        return false;
    }
    let names = [
        "kitty",
        "alacritty",
        "foot",
        "wezterm",
        "ghostty",
        "contour",
    ];
    let programs = [
        "iTerm.app",
        "WezTerm",
        "vscode",
        "ghostty",
        "tmux",
        "mintty",
    ];
    let vte = set("VTE_VERSION").and_then(|version| version.parse::<u32>().ok());
    names.iter().any(|name| term.contains(name))
        || programs.contains(&program.as_str())
        || set("KONSOLE_VERSION").is_some()
        || set("WT_SESSION").is_some()
        // Older versions wrote the address on the screen.
        || vte.is_some_and(|version| version >= 5_000)
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
        let ground = Ground::Unknown;
        assert_eq!(
            theme,
            Theme {
                palette,
                charset,
                ground,
                links: false,
                aside: false,
            }
        );
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
            ground: Ground::Light,
        };
        let theme = Theme::detect(choice, |_| Some("en_US.UTF-8".into()));
        assert_eq!(
            (theme.palette, theme.charset, theme.ground),
            (Palette::Sixteen, Charset::Ascii, Ground::Light)
        );
    }

    #[test]
    fn some_terminals_say_what_they_draw_on() {
        for (value, ground) in [
            ("15;0", Ground::Dark),
            ("0;15", Ground::Light),
            ("0;default;15", Ground::Light),
            ("0;default", Ground::Unknown),
            ("", Ground::Unknown),
        ] {
            let lookup = |name: &str| (name == "COLORFGBG").then(|| value.to_owned());
            let theme = Theme::detect(ThemeChoice::default(), lookup);
            assert_eq!(theme.ground, ground, "{value}");
        }
    }

    /// Returns the components of one of the 256 colors, by the table of xterm.
    fn rgb(index: u8) -> [f64; 3] {
        const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
        let at = usize::from(index - 16);
        [at / 36, at / 6 % 6, at % 6].map(|level| f64::from(LEVELS[level]))
    }

    /// Returns the contrast of two colors as defined by WCAG 2.1.
    fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
        let luminance = |color: [f64; 3]| {
            let [red, green, blue] = color.map(|value| match value / 255.0 {
                low if low <= 0.03928 => low / 12.92,
                high => ((high + 0.055) / 1.055).powf(2.4),
            });
            0.2126 * red + 0.7152 * green + 0.0722 * blue
        };
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn colors_are_legible() {
        let dark = [[0.0; 3], [40.0; 3], [0.0, 43.0, 54.0]];
        let light = [[255.0; 3], [253.0, 246.0, 227.0]];
        for (_, [any, on_dark, on_light]) in [ORANGE, BLUE, CYAN, MAGENTA, GREEN] {
            for ground in dark {
                assert!(contrast(rgb(on_dark), ground) >= 4.5, "{on_dark} on dark");
                assert!(contrast(rgb(any), ground) >= 3.0, "{any} on dark");
            }
            for ground in light {
                assert!(
                    contrast(rgb(on_light), ground) >= 4.5,
                    "{on_light} on light"
                );
                assert!(contrast(rgb(any), ground) >= 3.0, "{any} on light");
            }
        }
    }

    #[test]
    fn only_terminals_that_are_known_get_links() {
        let known = |variables: &[(&str, &str)]| {
            takes_links(|name| {
                let found = variables.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        let xterm = ("TERM", "xterm-256color");
        assert!(!known(&[xterm]) && !known(&[]));
        assert!(known(&[("TERM", "xterm-kitty")]));
        assert!(known(&[xterm, ("VTE_VERSION", "7600")]));
        assert!(!known(&[xterm, ("VTE_VERSION", "4999")]));
        assert!(known(&[xterm, ("TERM_PROGRAM", "vscode")]));
        assert!(known(&[
            ("TERM", "screen-256color"),
            ("TERM_PROGRAM", "tmux")
        ]));
        // Inside screen, the terminal below it does not matter.
        assert!(!known(&[("TERM", "screen"), ("VTE_VERSION", "7600")]));
        for term in ["linux", "dumb"] {
            assert!(!known(&[("TERM", term), ("TERM_PROGRAM", "iTerm.app")]));
        }
    }
}
