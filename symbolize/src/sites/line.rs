//! Finds the instructions at which a source line begins.
//!
//! In optimized code a line is in several places: its function may have copies, may be inlined into
//! its callers, and the line's code may be in several pieces. Each copy, and each place where the
//! function was inlined, is one *instance*, which begins at the lowest address of the line. Code
//! that was split off (`.cold`) counts only if there is nothing else.

use std::collections::BTreeMap;

use super::Function;
use super::find::{Wanted, functions, is_part};
use crate::table::{SourceFrame, Table};
use crate::{ElfSymbols, LinkAddr};

/// Why a line has no code in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoLine {
    /// The file was not compiled from such a source file.
    NoSuchFile,
    /// There is no code for that line. The next line with code, if there is one.
    NoCode(Option<u32>),
}

/// Identifies an instance of a line: the function's start, and the places into which it was
/// inlined, innermost first.
type Instance = (LinkAddr, Vec<(Vec<u8>, u32)>);

/// Returns a function for each instance of a line, with the instruction inside of it, unless that
/// is its first one. `file` is a path or the end of one.
pub fn of_line(
    symbols: &ElfSymbols,
    table: &Table,
    file: &str,
    line: u32,
) -> Result<Vec<Function>, NoLine> {
    let mut instances: BTreeMap<Instance, LinkAddr> = BTreeMap::new();
    let (mut has_file, mut next) = (false, None);
    for addr in table.starts() {
        let chain: Vec<SourceFrame<'_>> = table.find(addr).collect();
        for (depth, frame) in chain.iter().enumerate() {
            if !is_file(frame, file.as_bytes()) {
                continue;
            }
            has_file = true;
            if frame.line > line {
                next = Some(next.map_or(frame.line, |known: u32| known.min(frame.line)));
            }
            let Some(extent) = symbols.extent(addr).filter(|_| frame.line == line) else {
                continue;
            };
            let callers = chain[depth + 1..]
                .iter()
                .map(|caller| (caller.path(), caller.line));
            let instance = (extent.start, callers.collect());
            // Addresses rise, so the lowest one is kept.
            instances.entry(instance).or_insert(addr);
        }
    }
    match (instances.is_empty(), has_file) {
        (true, false) => Err(NoLine::NoSuchFile),
        (true, true) => Err(NoLine::NoCode(next)),
        (false, _) => Ok(functions_at(symbols, instances)),
    }
}

fn functions_at(symbols: &ElfSymbols, instances: BTreeMap<Instance, LinkAddr>) -> Vec<Function> {
    let at = |addr| functions(symbols, Wanted::At(addr)).unwrap_or_default();
    let mut addrs: Vec<LinkAddr> = instances.into_values().collect();
    // An address that belongs to two instances is probed once.
    addrs.sort_unstable();
    addrs.dedup();
    let all: Vec<Function> = addrs.into_iter().flat_map(at).collect();
    let (parts, whole): (Vec<_>, Vec<_>) = all.into_iter().partition(|f| is_part(&f.raw));
    if whole.is_empty() { parts } else { whole }
}

/// Whether a frame is in a file with this path, or whose path ends like this.
fn is_file(frame: &SourceFrame<'_>, wanted: &[u8]) -> bool {
    let Some(name) = wanted.rsplit(|byte| *byte == b'/').next() else {
        return false;
    };
    // Most files are excluded by the last component of their path.
    if frame.file.rsplit(|byte| *byte == b'/').next() != Some(name) {
        return false;
    }
    let path = frame.path();
    let before = path.strip_suffix(wanted);
    before.is_some_and(|before| before.is_empty() || before.ends_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_the_end_of_its_path() {
        let frame = SourceFrame {
            function: None,
            directory: b"/usr/src/app/lib",
            file: b"scan.c",
            line: 7,
            column: 0,
        };
        for same in [
            "scan.c",
            "lib/scan.c",
            "app/lib/scan.c",
            "/usr/src/app/lib/scan.c",
        ] {
            assert!(is_file(&frame, same.as_bytes()), "{same}");
        }
        for other in ["can.c", "ib/scan.c", "scan.h", "scan.c/", "/lib/scan.c", ""] {
            assert!(!is_file(&frame, other.as_bytes()), "{other}");
        }
    }
}
