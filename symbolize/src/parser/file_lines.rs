//! The lines of a file, read in this process or in another one.

use std::sync::Arc;

use super::kept_lines::lines_at;
use super::names::SourceLine;
use super::opened_lines::OpenedLines;
use crate::{FileOffset, Lines, Reason, TableCache};

/// The lines of one file.
#[derive(Debug, Clone)]
pub enum FileLines {
    /// This process reads its debug information.
    Here(Arc<Lines>),
    /// A parser process without privileges reads it.
    Elsewhere(Arc<OpenedLines>),
}

impl FileLines {
    /// Returns the functions at each place, innermost first; empty if the debug information has
    /// none.
    pub fn find_all(&self, offsets: &[FileOffset]) -> Result<Vec<Vec<SourceLine>>, Reason> {
        match self {
            FileLines::Here(lines) => {
                let found = offsets.iter().map(|offset| lines_at(lines, *offset));
                Ok(found.collect())
            }
            FileLines::Elsewhere(lines) => lines.find_all(offsets),
        }
    }

    /// Whether the table of the whole file exists.
    pub fn is_finished(&self) -> bool {
        match self {
            FileLines::Here(lines) => lines.is_finished(),
            FileLines::Elsewhere(lines) => lines.is_finished(),
        }
    }

    /// Whether a cache can keep the table of the whole file. It cannot if nothing identifies the file,
    /// or if it was written just before it was opened.
    pub fn may_be_kept(&self) -> bool {
        match self {
            FileLines::Here(lines) => lines.key().is_some(),
            FileLines::Elsewhere(lines) => lines.key().is_some(),
        }
    }

    /// Maximum number of bytes of debug information that are still to be read, from the last
    /// answer.
    pub fn unread_bytes(&self) -> usize {
        match self {
            FileLines::Here(lines) => lines.unread_bytes(),
            FileLines::Elsewhere(lines) => lines.unread_bytes(),
        }
    }

    /// Makes the table of the whole file, and stores it, on disk if possible.
    pub fn finish(&self, cache: Option<&TableCache>) -> Result<(), Reason> {
        match self {
            FileLines::Here(lines) => lines.finish(cache, 1).map_err(|error| error.reason()),
            FileLines::Elsewhere(lines) => lines.finish(cache),
        }
    }

    /// Whether both are the same object.
    pub fn is(&self, other: &FileLines) -> bool {
        match (self, other) {
            (FileLines::Here(one), FileLines::Here(other)) => Arc::ptr_eq(one, other),
            (FileLines::Elsewhere(one), FileLines::Elsewhere(other)) => Arc::ptr_eq(one, other),
            (FileLines::Here(_), FileLines::Elsewhere(_))
            | (FileLines::Elsewhere(_), FileLines::Here(_)) => false,
        }
    }
}
