//! Strings in TOML.

use std::fmt::Write as _;

/// Returns a text as a TOML string: in quotes, with special characters escaped.
pub fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        let _ = match character {
            '\\' | '"' => write!(quoted, "\\{character}"),
            _ if character.is_control() => write!(quoted, "\\u{:04X}", u32::from(character)),
            _ => write!(quoted, "{character}"),
        };
    }
    quoted + "\""
}
