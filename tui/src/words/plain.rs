//! *Plain* text has no characters that a terminal acts on or that hide others: no control
//! characters, no changes of the writing direction. Names are made safe when they are read. Here
//! all output is made safe once more before it is written.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns the text with such characters escaped, as in `\x1b` or `\u{202e}`.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(is_active) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        let written = match u32::from(c) {
            code @ 0..=0xff if is_active(c) => write!(clean, "\\x{code:02x}"),
            code if is_active(c) => write!(clean, "\\u{{{code:x}}}"),
            _ => write!(clean, "{c}"),
        };
        written.expect("a string takes everything");
    }
    Cow::Owned(clean)
}

fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Zero width and direction marks, line and paragraph separators.
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            // Invisible operators, direction isolates.
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{61c}')
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn what_a_terminal_would_act_on_is_written_out() {
        for (text, expected) in [
            ("malloc", "malloc"),
            ("größe→x", "größe→x"),
            ("a\x1b[2Jb", "a\\x1b[2Jb"),
            ("a\nb\tc\0", "a\\x0ab\\x09c\\x00"),
            ("\u{9b}2J\x7f", "\\x9b2J\\x7f"),
            ("a\u{202e}b\u{200b}", "a\\u{202e}b\\u{200b}"),
        ] {
            assert_eq!(plain(text), expected);
        }
    }
}
