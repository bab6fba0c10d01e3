//! Markdown of a limited length, for a language model, a ticket or a chat.
//!
//! Names may be any text: they are put between backquotes, and backquotes in them are replaced.

use super::plain::plain;
use super::{names, text, units};
use profile::Report;

/// Lower estimate of the bytes in a token. It is low, because names in code are split into short
/// tokens.
pub const BYTES_PER_TOKEN: usize = 3;
/// Maximum width of a name. Longer ones are cut in the middle.
const NAME_WIDTH_MAX: usize = 80;

/// Returns how many bytes this number of tokens may have.
pub fn bytes(tokens: usize) -> usize {
    tokens.saturating_mul(BYTES_PER_TOKEN)
}

/// A text that takes whole lines for as long as there is room. `room` is in bytes.
pub struct Lines {
    text: String,
    room: usize,
}

impl Lines {
    /// Creates an empty text with room for this number of bytes.
    pub fn new(room: usize) -> Self {
        Lines {
            text: String::new(),
            room,
        }
    }

    /// Adds a line if there is room for it, and returns whether there was.
    pub fn push(&mut self, line: &str) -> bool {
        let fits = self.text.len() + line.len() < self.room;
        if fits {
            self.text.push_str(line);
            self.text.push('\n');
        }
        fits
    }

    /// Begins a section. Returns false if there is no room for the heading: then the lines of the
    /// section must be left out, too.
    pub fn head(&mut self, words: &str) -> bool {
        self.push(&format!("\n## {words}\n"))
    }

    /// Adds the lines of a list, as many as there is room for, and a last line with the number of
    /// those that are left out: of `items`, and `beyond` more that the list has no line for. Room
    /// for the last line is reserved.
    pub fn list(
        &mut self,
        items: impl ExactSizeIterator<Item = String>,
        beyond: usize,
        left_out: impl Fn(usize) -> String,
    ) {
        let mut left = items.len() + beyond;
        for item in items {
            let kept = if left > 1 {
                left_out(left).len() + 1
            } else {
                0
            };
            if self.text.len() + item.len() + 1 + kept >= self.room || !self.push(&item) {
                break;
            }
            left -= 1;
        }
        if left > 0 {
            self.push(&left_out(left));
        }
    }

    /// Returns the length of the text in bytes.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns the finished text.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// Returns the short name of a function between backquotes.
pub fn code(name: &str) -> String {
    quoted(&names::short(name))
}

/// Returns any text between backquotes, without characters that end the quotation or act on a
/// terminal.
pub fn quoted(text: &str) -> String {
    let cut = text::cut_middle(text, NAME_WIDTH_MAX);
    format!("`{}`", plain(&cut).replace('`', "'"))
}

/// Returns a share of a report's samples, as in `12.3%`. It has as many digits as the samples
/// support, even if each stands for several or for a time. It is `none` if there are no samples,
/// and never 100 if anything is missing.
pub fn share(report: &Report, part: u64, all: u64) -> String {
    match all {
        0 => "none".to_owned(),
        _ => format!("{}%", units::completeness_in(report, part, all)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_what_is_left_out_however_little_room_there_is() {
        let rows = || {
            (1..=9)
                .map(|number| format!("{number}. a function"))
                .collect::<Vec<_>>()
        };
        let left_out = |left| format!("- {left} more");
        for room in 10..200 {
            let mut lines = Lines::new(room);
            lines.list(rows().into_iter(), 3, left_out);
            let text = lines.into_text();
            assert!(text.len() <= room);
            let listed = text
                .lines()
                .filter(|line| line.ends_with("function"))
                .count();
            let told = text.lines().last().unwrap_or_default();
            assert_eq!(told, format!("- {} more", 12 - listed), "{room}: {text}");
        }
        let mut lines = Lines::new(1000);
        lines.list(rows().into_iter(), 0, left_out);
        assert_eq!(lines.into_text().lines().count(), 9);
    }
}
