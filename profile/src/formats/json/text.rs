//! Writes JSON strings. Names come from binaries that are not trusted.

use std::fmt;

/// A text to be written in quotes, safe also inside a `<script>` of an HTML page.
pub(in super::super) struct Text<'a>(pub(in super::super) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                // `</script>` would end the script, and the two code points are line ends in
                // JavaScript.
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => write!(f, "\\u{:04x}", c as u32)?,
                c if c.is_control() => write!(f, "\\u{:04x}", c as u32)?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_ends_the_string() {
        let name = "a\"\\\n</script>\u{2028}\u{7f}é😀";
        let wanted = r#""a\"\\\u000a\u003c/script\u003e\u2028\u007fé😀""#;
        assert_eq!(Text(name).to_string(), wanted);
    }
}
