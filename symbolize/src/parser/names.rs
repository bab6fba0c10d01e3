//! Names of functions at places in a file, in readable form.

use super::known::KnownNames;
use crate::demangle::shown;
use crate::go::{GoFrame, GoSymbols};
use crate::{ElfSymbols, FileOffset, Origin, Reason, sanitize};
use std::ops::Range;

/// What is known about some places of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileNames {
    /// Where the names of its functions are from.
    pub origin: Origin,
    /// The requested places, in the same order.
    pub places: Vec<PlaceNames>,
}

/// What is known about one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceNames {
    /// The name of the function.
    pub name: PlaceName,
    /// The functions at the place with their lines, innermost first; empty if the table with the
    /// names has no lines.
    pub lines: Vec<SourceLine>,
}

/// The name of a function, or why it has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceName {
    /// The function has a name.
    Named {
        /// The name, safe to print.
        name: String,
        /// The range of file offsets around the place that have the same name and no further
        /// information; `None` if unknown.
        same: Option<Range<u64>>,
    },
    /// The function has no name.
    Unnamed {
        /// The reason.
        reason: Reason,
        /// Start of the function, if unwind information has it.
        start: Option<FileOffset>,
    },
}

/// A function and a place in source text, safe to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine {
    /// Name of the function; empty if unknown.
    pub function: String,
    /// Path of the file; empty if unknown.
    pub file: String,
    /// Line, counted from 1; 0 if unknown.
    pub line: u32,
}

/// Looks up places in a file. Go's table has functions, inlined ones and lines together, so it is
/// used first; other names are from symbols, and their lines are looked up elsewhere.
pub fn of(symbols: &ElfSymbols, offsets: &[FileOffset]) -> FileNames {
    let go = symbols.go();
    let mut known = KnownNames::default();
    let mut place = |&offset: &FileOffset| {
        let lines = go.map_or_else(Vec::new, |go| go_lines(symbols, go, offset));
        PlaceNames {
            name: match lines.last() {
                // Other addresses of the function have other lines, so the name is valid for this
                // place only.
                Some(own) => PlaceName::Named {
                    name: own.function.clone(),
                    same: None,
                },
                None => by_symbols(symbols, go.is_none(), offset, &mut known),
            },
            lines,
        }
    };
    FileNames {
        places: offsets.iter().map(&mut place).collect(),
        origin: symbols.origin(),
    }
}

/// Returns the name of the symbol at an offset of a file. If there is none, returns the start of
/// the function, if the unwind information has it: then frames of one function are counted
/// together. `known` has the names found so far, `is_all` is whether symbols are the only
/// information about the file.
fn by_symbols(
    symbols: &ElfSymbols,
    is_all: bool,
    offset: FileOffset,
    known: &mut KnownNames,
) -> PlaceName {
    if let Some((name, same)) = known.find(offset) {
        return PlaceName::Named {
            name: name.into(),
            same: Some(same),
        };
    }
    match symbols.find(offset) {
        Ok(symbol) => {
            let name = shown(symbol.name);
            let same = symbols.same_function(offset).filter(|_| is_all);
            if let Some(same) = &same {
                known.add(same.clone(), &name);
            }
            PlaceName::Named { name, same }
        }
        Err(reason) => PlaceName::Unnamed {
            reason,
            start: symbols.function_start(offset),
        },
    }
}

/// Returns the lines of a place from Go's own table, innermost first; empty if it has none.
fn go_lines(symbols: &ElfSymbols, go: &GoSymbols, offset: FileOffset) -> Vec<SourceLine> {
    let addr = symbols.segments().to_link(offset);
    let frames = addr.map_or_else(Vec::new, |addr| go.find(addr));
    let line = |frame: GoFrame| SourceLine {
        function: sanitize(&frame.short_name()).into_owned(),
        file: sanitize(&frame.file).into_owned(),
        line: frame.line,
    };
    frames.into_iter().map(line).collect()
}
