//! Places in source text.

use crate::words::text;

/// The words that lead to a place in source text, and its path.
pub fn linked(file: Option<&str>, line: u32) -> Option<(String, String)> {
    Some((source(file, line)?, file?.to_owned()))
}

/// `heapam.c:1691`
pub fn source(file: Option<&str>, line: u32) -> Option<String> {
    let file = file.filter(|_| line > 0)?;
    let short = file.rsplit('/').next().unwrap_or(file);
    Some(format!("{}:{line}", text::clean(short)))
}
