//! JSON: writes strings that are safe anywhere, and reads untrusted documents using no more memory
//! than a few times the file's size.

mod columns;
mod text;

pub(super) use columns::{Column, Id, List, Times};
pub(super) use text::Text;

use super::FormatError;
use serde::de::DeserializeOwned;
use std::io::Read;

/// Largest document that is read, in bytes: it is held in memory as a whole.
const BYTES_MAX: u64 = 256 << 20;

/// Reads a whole document into memory.
pub(super) fn load(input: impl Read) -> Result<Vec<u8>, FormatError> {
    load_up_to(input, BYTES_MAX)
}

fn load_up_to(input: impl Read, max: u64) -> Result<Vec<u8>, FormatError> {
    let mut text = Vec::new();
    input.take(max + 1).read_to_end(&mut text)?;
    if text.len() as u64 > max {
        Err(FormatError::TooLarge("JSON of more than 256 MB"))
    } else {
        Ok(text)
    }
}

/// Parses a document; the error says where it is damaged.
pub(super) fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, FormatError> {
    serde_json::from_slice(text).map_err(|error| {
        // The parser's message may quote the file.
        FormatError::Damaged(super::wire::clean(&error.to_string()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_refused() {
        assert_eq!(load_up_to(&b"[1]"[..], 3).unwrap(), b"[1]");
        let refused = load_up_to(std::io::repeat(b'['), 1 << 20);
        assert!(matches!(refused, Err(FormatError::TooLarge(_))));
    }
}
