//! Makes strings from outside safe to display. No other module does this.
//!
//! Names of functions, files, threads and processes are chosen by the author or the user of a
//! program. Displayed unchanged, they could move the cursor, change the terminal's title, or look
//! like other names.

use std::borrow::Cow;
use std::fmt::Write;

/// Replaces characters that would be invisible or have an effect: control characters (C0, C1, DEL,
/// including ESC) and characters that reorder text or have no width become `\u{..}`, bytes that are
/// not UTF-8 become `\x..`, and tab, line feed and carriage return `\t`, `\n`, `\r`.
///
/// Backslashes are kept, so the result is for people to read and cannot be parsed; a second pass
/// changes nothing.
pub fn sanitize(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(is_unsafe) => Cow::Borrowed(text),
        _ => Cow::Owned(escape(bytes)),
    }
}

fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '\t' => out.push_str("\\t"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                char if is_unsafe(char) => out.extend(char.escape_unicode()),
                char => out.push(char),
            }
        }
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}").expect("a String takes all");
        }
    }
    out
}

/// Whether [`sanitize`] replaces a character.
pub fn is_unsafe(char: char) -> bool {
    char.is_control() || is_invisible(char)
}

/// Whether it is a format character (Unicode category Cf), a line separator, or a filler: all that
/// reorder their neighbours, join them, or are invisible.
fn is_invisible(char: char) -> bool {
    if char < '\u{ad}' {
        return false;
    }
    matches!(char,
        '\u{ad}' // Soft hyphen.
        | '\u{34f}' // Combining grapheme joiner.
        | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
        | '\u{8e2}' // Arabic and Syriac marks.
        | '\u{115f}'..='\u{1160}' | '\u{3164}' | '\u{ffa0}' // Hangul fillers.
        | '\u{17b4}'..='\u{17b5}' // Khmer inherent vowels.
        | '\u{180b}'..='\u{180f}' // Mongolian selectors.
        | '\u{200b}'..='\u{200f}' // Zero width, direction marks.
        | '\u{2028}'..='\u{202e}' // Separators, embeddings, overrides.
        | '\u{2060}'..='\u{206f}' // Invisible operators, isolates.
        | '\u{fe00}'..='\u{fe0f}' // Variation selectors.
        | '\u{feff}' // Byte order mark.
        | '\u{fff0}'..='\u{fffb}' // Annotations.
        | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' // Tags, more selectors.
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn harmless_text_is_borrowed() {
        for text in ["", "main", "std::vec::Vec<T>", "größe::函数", "a\\b"] {
            assert!(matches!(sanitize(text.as_bytes()), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn what_acts_becomes_visible() {
        let cases: [(&[u8], &str); 9] = [
            (b"\x1b]0;owned\x07", "\\u{1b}]0;owned\\u{7}"),
            (b"a\tb\r\n", "a\\tb\\r\\n"),
            (b"\x7f\0", "\\u{7f}\\u{0}"),
            ("\u{9b}2J".as_bytes(), "\\u{9b}2J"),
            ("is\u{202e}nimda".as_bytes(), "is\\u{202e}nimda"),
            ("a\u{2066}b\u{2069}".as_bytes(), "a\\u{2066}b\\u{2069}"),
            ("pay\u{200b}pal".as_bytes(), "pay\\u{200b}pal"),
            (b"\xff\xc3", "\\xff\\xc3"),
            ("a\u{e0041}".as_bytes(), "a\\u{e0041}"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(sanitize(bytes), expected);
        }
    }

    proptest! {
        #[test]
        fn nothing_unsafe_remains_and_once_is_enough(
            bytes in proptest::collection::vec(any::<u8>(), 0..200)
        ) {
            check(&bytes)?;
        }

        #[test]
        fn nor_of_unusual_characters(text in "[\\x00-\\x20\\x7f-\\xad\u{2000}-\u{2070}\u{e0000}-\u{e0100}a]*") {
            check(text.as_bytes())?;
        }
    }

    fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
        let once = sanitize(bytes);
        prop_assert!(!once.chars().any(char::is_control));
        prop_assert!(!once.chars().any(is_unsafe));
        prop_assert_eq!(sanitize(once.as_bytes()), once.as_ref());
        Ok(())
    }
}
