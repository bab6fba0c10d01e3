//! Encodes the functions at a place with their lines.
//!
//! ```text
//! their number, and each: function, file, line
//! ```

use super::names::SourceLine;
use crate::sanitize;
use crate::wire::{Taken, put_bytes, put_u32};

/// Maximum length of a text; longer ones are cut, so that the longest chain fits into a message.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// Maximum length of a chain. Compilers inline at most some dozens of levels.
const LINES_MAX: usize = 128;

/// Appends the lines of a place.
pub fn write(out: &mut Vec<u8>, lines: &[SourceLine]) {
    let lines = &lines[..lines.len().min(LINES_MAX)];
    put_u32(out, lines.len() as u32);
    for line in lines {
        write_text(out, &line.function, TEXT_BYTES_MAX);
        write_text(out, &line.file, TEXT_BYTES_MAX);
        put_u32(out, line.line);
    }
}

/// Reads the lines of a place. `None` if the bytes are malformed.
pub fn read(bytes: &mut Taken<'_>) -> Option<Vec<SourceLine>> {
    let count = bytes.u32()?;
    if count as usize > LINES_MAX {
        return None;
    }
    let line = |_| {
        Some(SourceLine {
            function: read_text(bytes)?,
            file: read_text(bytes)?,
            line: bytes.u32()?,
        })
    };
    (0..count).map(line).collect()
}

/// Appends a text, cut to `max` bytes.
pub fn write_text(out: &mut Vec<u8>, text: &str, max: usize) {
    let end = text.floor_char_boundary(max);
    put_bytes(out, &text.as_bytes()[..end]);
}

/// Reads a text. Whatever the bytes are, the result is safe to print.
pub fn read_text(bytes: &mut Taken<'_>) -> Option<String> {
    Some(sanitize(bytes.bytes()?).into_owned())
}
