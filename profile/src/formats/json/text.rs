//! JSON strings. Names come from strangers' binaries.

use std::fmt;

/// A text that is written in quotes, fit to stand in a page's script as well.
pub(in super::super) struct Text<'a>(pub(in super::super) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                // `</script>` would end it, and these two are line ends there.
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
