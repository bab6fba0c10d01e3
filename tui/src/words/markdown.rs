//! Markdown of a given length: for a language model, a ticket or a chat.
//!
//! Names may be any text: they are put between backquotes, and backquotes in them are
//! replaced.

use super::plain::plain;
use super::{names, text, units};
use profile::Report;

/// How many bytes a token has at least. It is few, because names in code are split into
/// short tokens.
pub const BYTES_PER_TOKEN: usize = 3;
/// Longer names are cut in the middle.
const NAME_WIDTH_MAX: usize = 80;

/// How many bytes so many tokens may have.
pub fn bytes(tokens: usize) -> usize {
    tokens.saturating_mul(BYTES_PER_TOKEN)
}

/// Text that takes lines as long as there is room for a whole one. `room` is in bytes.
pub struct Lines {
    text: String,
    room: usize,
}

impl Lines {
    /// No lines yet, and room for so many bytes.
    pub fn new(room: usize) -> Self {
        Lines {
            text: String::new(),
            room,
        }
    }

    /// Adds a line if there is room for it, and says whether there was.
    pub fn push(&mut self, line: &str) -> bool {
        let fits = self.text.len() + line.len() < self.room;
        if fits {
            self.text.push_str(line);
            self.text.push('\n');
        }
        fits
    }

    /// Begins a section. False if there is no room for it: then its lines are left out as
    /// well.
    pub fn head(&mut self, words: &str) -> bool {
        self.push(&format!("\n## {words}\n"))
    }

    /// Adds the lines of a list, as many as there is room for, and a last one that says how many are
    /// left out: of these lines and `beyond`, which are more than a list is to have. Room for that
    /// one is kept.
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

    /// Length of what was added, in bytes.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

/// Returns the short name of a function between backquotes.
pub fn code(name: &str) -> String {
    quoted(&names::short(name))
}

/// Returns foreign text between backquotes, without characters that would end the quotation
/// or act on a terminal.
pub fn quoted(text: &str) -> String {
    let cut = text::cut_middle(text, NAME_WIDTH_MAX);
    format!("`{}`", plain(&cut).replace('`', "'"))
}

/// Returns a share of a report's samples, such as `12.3%`, with as many digits as they support also
/// where each stands for several, or for a time. It is `none` if there are no samples, and never
/// 100 while anything is missing.
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
