//! Which colors the screen gets, by the words of the command line.

use crate::widgets::theme::{Ground, Palette, Theme, ThemeChoice};

/// What is asked for; the rest is found out.
pub fn theme(wanted: crate::choices::Theme, color: crate::choices::Color, ascii: bool) -> Theme {
    let palette = match (wanted, color) {
        (crate::choices::Theme::Mono, _) | (_, crate::choices::Color::Never) => Some(Palette::Mono),
        (crate::choices::Theme::Sixteen, _) => Some(Palette::Sixteen),
        (crate::choices::Theme::Dark | crate::choices::Theme::Light, _)
        | (_, crate::choices::Color::Always) => Some(Palette::Indexed),
        (crate::choices::Theme::Auto, crate::choices::Color::Auto) => None,
    };
    let choice = ThemeChoice {
        palette,
        ascii,
        ground: match wanted {
            crate::choices::Theme::Dark => Ground::Dark,
            crate::choices::Theme::Light => Ground::Light,
            crate::choices::Theme::Auto
            | crate::choices::Theme::Sixteen
            | crate::choices::Theme::Mono => Ground::Unknown,
        },
    };
    Theme::detect(choice, |name| std::env::var(name).ok())
}
