//! Strings in TOML.

use std::fmt::Write as _;

/// Returns a text as a TOML string, safe to print: in quotes, with special characters escaped.
pub fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        let code = u32::from(character);
        let _ = match character {
            '\\' | '"' => write!(quoted, "\\{character}"),
            _ if is_safe(character) => write!(quoted, "{character}"),
            _ if code > 0xffff => write!(quoted, "\\U{code:08X}"),
            _ => write!(quoted, "\\u{code:04X}"),
        };
    }
    quoted + "\""
}

fn is_safe(character: char) -> bool {
    let mut bytes = [0; 4];
    let text = &*character.encode_utf8(&mut bytes);
    symbolize::sanitize(text.as_bytes()) == text
}
