//! *Links*: where a function is in source text, for terminals that open what is
//! clicked on (OSC 8). The text says all by itself; the link only adds to it.

use crate::app::App;
use crate::app::mode::{Detail, Mode};
use crate::geometry::Geometry;
use crate::view_id::ViewId;
use crate::views::code::words as code;
use crate::views::page::words as page;
use ratatui::buffer::{Buffer, CellDiffOption};
use std::fmt::Write as _;
use std::num::NonZeroU16;

/// Nobody's paths are that long but those of who wants to fill the line.
const PATH_MAX: usize = 1024;

/// What a cell below a link has: no text has it, so that whatever comes in its
/// place is written, and takes the link away.
const COVERED: &str = "\u{10ffff}";

pub fn render(app: &App, geometry: Geometry, buffer: &mut Buffer) {
    let is_shown = matches!(app.mode, Mode::Browse) && app.detail == Detail::Row;
    if let Some((text, uri)) = target(app).filter(|_| is_shown) {
        link(buffer, geometry.detail, geometry.width, &text, &uri);
    }
}

/// The words for the selected place, and where that is.
fn target(app: &App) -> Option<(String, String)> {
    let pane = app.in_pane();
    let (text, path) = match app.focus() {
        _ if app.difference_here().is_some() => None,
        ViewId::Functions => {
            let row = app.views.functions.selected(&app.shown.report)?.row;
            place(row.file.as_deref(), row.line)
        }
        ViewId::Page => {
            let function = app.views.page_in(pane).selected_function()?;
            place(function.file.as_deref(), function.line)
        }
        ViewId::Tree => {
            let tree = app.views.tree_in(pane);
            let function = tree.function(tree.selected()?)?;
            place(function.file.as_deref(), function.line)
        }
        ViewId::Flame => {
            let bar = app.views.flame_in(pane).selected()?;
            let function = bar.function.as_ref()?;
            place(function.file.as_deref(), function.line)
        }
        ViewId::Code => {
            let code = app.views.code_in(pane);
            code::place(code.answer()?, code.selected()?)
        }
        ViewId::Processes | ViewId::Threads | ViewId::Time | ViewId::Health => None,
    }?;
    let is_usable = path.starts_with('/') && path.len() <= PATH_MAX;
    // With the machine, or a terminal elsewhere would look for a file of its own.
    is_usable.then(|| (text, uri(&app.shown.host.name, &path)))
}

fn place(file: Option<&str>, line: u32) -> Option<(String, String)> {
    Some((page::source(file, line)?, file?.to_owned()))
}

/// Every byte that could mean something is written as its number.
fn uri(host: &str, path: &str) -> String {
    let mut uri = String::from("file://");
    let mut push = |text: &str, also: &[u8]| {
        for byte in text.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    uri.push(byte.into());
                }
                byte if also.contains(&byte) => uri.push(byte.into()),
                byte => {
                    let _ = write!(uri, "%{byte:02X}");
                }
            }
        }
    };
    push(host, b"");
    push(path, b"/");
    uri
}

/// The whole text is one cell, which is written whole or not at all.
fn link(buffer: &mut Buffer, y: u16, width: u16, text: &str, uri: &str) {
    let letters: Vec<char> = text.chars().collect();
    let is_at = |x: u16, buffer: &Buffer| {
        let cells = (x..width).map(|x| &buffer[(x, y)]);
        let same = cells.zip(&letters).filter(|(cell, letter)| {
            let mut symbol = cell.symbol().chars();
            symbol.next() == Some(**letter) && symbol.next().is_none()
        });
        same.count() == letters.len()
    };
    let length = letters.len() as u16;
    let found = (0..width.saturating_sub(length) + 1).find(|x| is_at(*x, buffer));
    let (Some(start), Some(length)) = (found, NonZeroU16::new(length)) else {
        return;
    };
    buffer[(start, y)]
        .set_symbol(&format!("\x1b]8;;{uri}\x1b\\{text}\x1b]8;;\x1b\\"))
        .set_diff_option(CellDiffOption::ForcedWidth(length));
    for x in start + 1..start + length.get() {
        buffer[(x, y)].set_symbol(COVERED);
    }
}

/// Whether the terminal is known to take them, by what `set` says.
pub fn are_known(set: impl Fn(&str) -> Option<String>) -> bool {
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
        // Older ones wrote the address on the screen.
        || vte.is_some_and(|version| version >= 5_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_path_ends_the_link() {
        assert_eq!(
            uri("db-01", "/src/a b/ü\x1b\\;.c"),
            "file://db-01/src/a%20b/%C3%BC%1B%5C%3B.c"
        );
        assert_eq!(uri("a/b\x07", "/x"), "file://a%2Fb%07/x");
    }

    #[test]
    fn only_terminals_that_are_known_get_links() {
        let known = |variables: &[(&str, &str)]| {
            are_known(|name| {
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
        // What lies below is not what is drawn on.
        assert!(!known(&[("TERM", "screen"), ("VTE_VERSION", "7600")]));
        for term in ["linux", "dumb"] {
            assert!(!known(&[("TERM", term), ("TERM_PROGRAM", "iTerm.app")]));
        }
    }
}
