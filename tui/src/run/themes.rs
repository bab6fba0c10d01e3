//! Which colors the screen gets, by the words of the command line.

use crate::cli;
use crate::widgets::theme::{Ground, Palette, Theme, ThemeChoice};

/// What is asked for; the rest is found out.
pub fn theme(wanted: cli::Theme, color: cli::Color, ascii: bool) -> Theme {
    let palette = match (wanted, color) {
        (cli::Theme::Mono, _) | (_, cli::Color::Never) => Some(Palette::Mono),
        (cli::Theme::Sixteen, _) => Some(Palette::Sixteen),
        (cli::Theme::Dark | cli::Theme::Light, _) | (_, cli::Color::Always) => {
            Some(Palette::Indexed)
        }
        (cli::Theme::Auto, cli::Color::Auto) => None,
    };
    let choice = ThemeChoice {
        palette,
        ascii,
        ground: match wanted {
            cli::Theme::Dark => Ground::Dark,
            cli::Theme::Light => Ground::Light,
            cli::Theme::Auto | cli::Theme::Sixteen | cli::Theme::Mono => Ground::Unknown,
        },
    };
    Theme::detect(choice, |name| std::env::var(name).ok())
}
