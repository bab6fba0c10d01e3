//! The colors of the screen, chosen by the command line and by the terminal's answer.

use crate::choices;
use crate::terminal::ground::{self, GroundKey, GroundReply};
use crate::widgets::theme::{Ground, Palette, Theme, ThemeChoice};
use crossterm::event::KeyEvent;
use std::time::Instant;

/// The theme, and the background color that the terminal has reported.
pub struct Colors {
    theme: Theme,
    /// The reported background; `Unknown` until the answer arrives.
    heard: Ground,
    reply: GroundReply,
}

impl Colors {
    /// Creates the colors. Also returns the bytes that query the terminal's background; empty if
    /// that is not needed.
    pub fn new(theme: Theme) -> (Self, Vec<u8>) {
        let now = Instant::now();
        // The terminal multiplexer `screen` does not pass answers on.
        let is_screen = std::env::var("TERM").is_ok_and(|term| term.starts_with("screen"));
        let is_asked = theme.wants_ground() && !is_screen;
        let (reply, question) = if is_asked {
            (GroundReply::asked(now), ground::QUESTION.to_vec())
        } else {
            (GroundReply::none(now), Vec::new())
        };
        let colors = Colors {
            theme,
            heard: Ground::Unknown,
            reply,
        };
        (colors, question)
    }

    /// Returns the theme to draw with.
    pub fn theme(&self) -> &Theme {
        &self.theme
    }

    /// Changes the theme while the screen is open.
    pub fn set_theme(&mut self, wanted: choices::Theme) {
        self.theme = theme(wanted, choices::Color::Auto, self.theme.is_ascii());
        if wanted == choices::Theme::Auto && self.theme.wants_ground() {
            self.theme.ground = self.heard;
        }
    }

    /// Decides whether a key event is from the user or is part of the terminal's answer, which
    /// arrives as key events.
    pub fn handle_key(&mut self, key: KeyEvent) -> GroundKey {
        let told = self.reply.handle_key(key, Instant::now());
        if let GroundKey::Ground(ground) = told {
            self.heard = ground;
            self.theme.ground = ground;
        }
        told
    }
}

/// Returns the theme for the user's choices. Whatever they leave open is decided by the
/// environment.
pub fn theme(wanted: choices::Theme, color: choices::Color, ascii: bool) -> Theme {
    let palette = match (wanted, color) {
        (choices::Theme::Mono, _) | (_, choices::Color::Never) => Some(Palette::Mono),
        (choices::Theme::Sixteen, _) => Some(Palette::Sixteen),
        (choices::Theme::Dark | choices::Theme::Light, _) | (_, choices::Color::Always) => {
            Some(Palette::Indexed)
        }
        (choices::Theme::Auto, choices::Color::Auto) => None,
    };
    let choice = ThemeChoice {
        palette,
        ascii,
        ground: match wanted {
            choices::Theme::Dark => Ground::Dark,
            choices::Theme::Light => Ground::Light,
            choices::Theme::Auto | choices::Theme::Sixteen | choices::Theme::Mono => {
                Ground::Unknown
            }
        },
    };
    Theme::detect(choice, |name| std::env::var(name).ok())
}
