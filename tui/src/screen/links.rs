//! *Links* to places in source text, for terminals that open a link when it is clicked (OSC 8). The
//! text is complete without the link.

use crate::app::App;
use crate::app::mode::{Detail, Mode};
use crate::geometry::Geometry;
use ratatui::buffer::{Buffer, CellDiffOption};
use std::fmt::Write as _;
use std::num::NonZeroU16;

/// Maximum length of the path of a link, in bytes. A longer one is not plausible.
const PATH_MAX: usize = 1024;

/// The content of cells covered by a link. No text contains this character, so that any later
/// content differs from it, is written to the terminal, and removes the link.
const COVERED: &str = "\u{10ffff}";

/// Turns the source place of the selected function in the detail line into a link.
pub fn render(app: &App, geometry: Geometry, buffer: &mut Buffer) {
    let is_shown = matches!(app.mode, Mode::Browse) && app.lines.detail == Detail::Row;
    if let Some((text, uri)) = target(app).filter(|_| is_shown) {
        link(buffer, geometry.detail, geometry.width, &text, &uri);
    }
}

/// Returns the text of the link and its address, or `None` if the selected row has no place in a
/// file.
fn target(app: &App) -> Option<(String, String)> {
    let pane = app.pane_here();
    let (text, path) = app.views.drawn(pane).source(&app.context_of(pane))?;
    let is_usable = path.starts_with('/') && path.len() <= PATH_MAX;
    // The address contains the name of the machine. Without it, a terminal on another machine would
    // open a file there.
    is_usable.then(|| (text, uri(&app.shown.source.host.name, &path)))
}

/// Returns the address of a file. Every byte that may have a meaning in an address is
/// percent-encoded.
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

/// Puts the whole link into the cell where the text begins, so that it is written as a whole. Does
/// nothing if the line does not contain the text.
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
}
