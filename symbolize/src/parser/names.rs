//! What is known of places in a file: names of functions as people read them.

use super::known::KnownNames;
use crate::demangle::shown;
use crate::go::{GoFrame, GoSymbols};
use crate::{ElfSymbols, FileOffset, Origin, Reason, sanitize};
use std::ops::Range;

/// What a file tells of some places in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileNames {
    /// What told the names of its functions.
    pub origin: Origin,
    /// The places that were asked for, in that order.
    pub places: Vec<PlaceNames>,
}

/// What is known of one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceNames {
    /// The function there.
    pub name: PlaceName,
    /// The functions that are there with their lines, innermost first; empty if the table
    /// that has names has no lines.
    pub lines: Vec<SourceLine>,
}

/// The name of a function, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceName {
    /// The function has a name.
    Named {
        /// The name, safe to print.
        name: String,
        /// The bytes of the file around the place that have the same name and nothing else to
        /// tell; None if that is not known.
        same: Option<Range<u64>>,
    },
    /// There is none.
    Unnamed {
        /// Why.
        reason: Reason,
        /// Where the function starts, if unwind information has that.
        start: Option<FileOffset>,
    },
}

/// A function at a place in source text, safe to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine {
    /// The name of the function; empty if it is not known.
    pub function: String,
    /// The path of the file; empty if it is not known.
    pub file: String,
    /// Counted from 1; 0 if it is not known.
    pub line: u32,
}

/// What a file tells of places in it. Go tells functions, inlined ones and lines in one
/// table, so what it says is taken first; all else goes by symbols, and has its lines in
/// another place.
pub fn of(symbols: &ElfSymbols, offsets: &[FileOffset]) -> FileNames {
    let go = symbols.go();
    let mut known = KnownNames::default();
    let mut place = |&offset: &FileOffset| {
        let lines = go.map_or_else(Vec::new, |go| go_lines(symbols, go, offset));
        PlaceNames {
            name: match lines.last() {
                // Another place of the function has other lines.
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

/// Returns the name of the symbol at an offset of a file. If no symbol is there, returns where
/// the function starts, if the unwind information has it: frames of one function then count
/// together. `known` has what was found so far, `is_all` is whether symbols tell all that is
/// known of the file.
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

/// What Go's own table says of a place, innermost first; empty if it says nothing.
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
