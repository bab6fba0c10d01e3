//! The words for places in source text.

use crate::words::text;

/// Returns the words for a place in source text, and the path of the file as their link.
pub fn linked(file: Option<&str>, line: u32) -> Option<(String, String)> {
    Some((source(file, line)?, file?.to_owned()))
}

/// Returns a place in source text, as in `heapam.c:1691`.
pub fn source(file: Option<&str>, line: u32) -> Option<String> {
    let file = file.filter(|_| line > 0)?;
    let short = file.rsplit('/').next().unwrap_or(file);
    Some(format!("{}:{line}", text::clean(short)))
}
