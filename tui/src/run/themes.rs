//! Which colors the screen gets, by the words of the command line.

use crate::choices;
use crate::terminal::ground::{self, GroundKey, GroundReply};
use crate::widgets::theme::{Ground, Palette, Theme, ThemeChoice};
use crossterm::event::KeyEvent;
use std::time::Instant;

/// The theme, and what the terminal says that it draws on.
pub struct Colors {
    theme: Theme,
    /// What the terminal said; unknown until it has.
    heard: Ground,
    reply: GroundReply,
}

impl Colors {
    /// Also the bytes that ask the terminal, if it has to be asked.
    pub fn new(theme: Theme) -> (Self, Vec<u8>) {
        let now = Instant::now();
        // `screen` passes no answers on.
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

    pub fn theme(&self) -> &Theme {
        &self.theme
    }

    pub fn set_theme(&mut self, wanted: choices::Theme) {
        self.theme = theme(wanted, choices::Color::Auto, self.theme.is_ascii());
        if wanted == choices::Theme::Auto && self.theme.wants_ground() {
            self.theme.ground = self.heard;
        }
    }

    /// Tells a key of the user from the terminal's answer, which comes as keys.
    pub fn handle_key(&mut self, key: KeyEvent) -> GroundKey {
        let told = self.reply.handle_key(key, Instant::now());
        if let GroundKey::Ground(ground) = told {
            self.heard = ground;
            self.theme.ground = ground;
        }
        told
    }
}

/// What is asked for; the rest is found out.
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
