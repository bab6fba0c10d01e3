//! Finds the functions at an address, by debug information or by the tables of a Go program.

use std::sync::Arc;

use crate::demangle::shown;
use crate::table::SourceFrame;
use crate::{ElfSymbols, FileOffset, GoFrame, Lines, Reason, sanitize};

/// A function at an address, and its line. Both are safe to print.
#[derive(Debug)]
pub struct Frame {
    pub function: String,
    /// Empty if it is not known.
    pub file: String,
    /// 0 if it is not known.
    pub line: u32,
}

/// The source of the lines of one file.
#[derive(Debug, Clone)]
pub enum CodeLines {
    /// Its debug information.
    Debug(Arc<Lines>),
    /// The Go tables among the symbols of the file.
    Go,
    /// There are no lines, for this reason.
    None(NoLines),
}

/// Why the lines of a file are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLines {
    /// It has no debug information.
    NoDebugInfo,
    /// It has more debug information than may be in memory.
    TooMuch,
    /// Its debug information cannot be read.
    Unreadable(Reason),
}

impl CodeLines {
    /// Returns the source of the lines. `debug` opens the debug information of the file, which is
    /// not needed for Go programs.
    pub fn new(
        symbols: &ElfSymbols,
        debug: impl FnOnce() -> Result<Option<Arc<Lines>>, Reason>,
    ) -> CodeLines {
        if symbols.go().is_some() {
            return CodeLines::Go;
        }
        match debug() {
            Ok(Some(lines)) => CodeLines::Debug(lines),
            Ok(None) => CodeLines::None(NoLines::NoDebugInfo),
            Err(Reason::Refused) => CodeLines::None(NoLines::TooMuch),
            Err(reason) => CodeLines::None(NoLines::Unreadable(reason)),
        }
    }

    /// Why there are no lines; `None` if there are.
    pub fn missing(&self) -> Option<NoLines> {
        match self {
            CodeLines::None(why) => Some(*why),
            CodeLines::Debug(_) | CodeLines::Go => None,
        }
    }

    /// Whether the table of lines turned out to differ from what was written.
    pub fn is_table_damaged(&self) -> bool {
        match self {
            CodeLines::Debug(lines) => lines.is_damaged(),
            CodeLines::Go | CodeLines::None(_) => false,
        }
    }

    /// Bytes of heap that debug information takes. The tables of Go are among the symbols.
    pub fn heap_bytes(&self) -> usize {
        match self {
            CodeLines::Debug(lines) => lines.heap_bytes(),
            CodeLines::Go | CodeLines::None(_) => 0,
        }
    }

    /// Returns the functions at an offset in the file, innermost first. The last one contains the
    /// code; the others are inlined into it.
    pub(super) fn find(&self, symbols: &ElfSymbols, offset: FileOffset) -> Vec<Frame> {
        match self {
            CodeLines::Debug(lines) => lines.find(offset).map_or_else(Vec::new, |(table, addr)| {
                let frame = |frame: SourceFrame<'_>| Frame {
                    function: frame.function.map_or_else(String::new, shown),
                    file: sanitize(&frame.path()).into_owned(),
                    line: frame.line,
                };
                table.find(addr).map(frame).collect()
            }),
            CodeLines::Go => {
                let addr = symbols.segments().to_link(offset);
                let found = symbols.go().zip(addr).map(|(go, addr)| go.find(addr));
                let frame = |frame: GoFrame| Frame {
                    function: sanitize(&frame.short_name()).into_owned(),
                    file: sanitize(&frame.file).into_owned(),
                    line: frame.line,
                };
                found.into_iter().flatten().map(frame).collect()
            }
            CodeLines::None(_) => Vec::new(),
        }
    }
}
