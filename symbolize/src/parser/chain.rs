//! The functions that a place stands for with their lines, as bytes.
//!
//! ```text
//! their number, and each: function, file, line
//! ```

use super::names::SourceLine;
use crate::sanitize;
use crate::wire::{Taken, put_bytes, put_u32};

/// Longer texts are cut: a message holds the most lines that a place may have.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// Compilers inline no deeper than some dozens.
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

/// Reads the lines of a place. None if the bytes are no such lines.
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

/// Appends a text, or as much of it as may be.
pub fn write_text(out: &mut Vec<u8>, text: &str, max: usize) {
    let end = text.floor_char_boundary(max);
    put_bytes(out, &text.as_bytes()[..end]);
}

/// Reads a text. Whatever the bytes are, it is safe to print.
pub fn read_text(bytes: &mut Taken<'_>) -> Option<String> {
    Some(sanitize(bytes.bytes()?).into_owned())
}
