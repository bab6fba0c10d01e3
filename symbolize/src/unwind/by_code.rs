//! Functions without unwind information, as in programs and libraries that were built without it:
//! the C library of musl, for one. The effects of their instructions on the stack are followed from
//! the function's start, along all branches. Compilers move the stack pointer by constants, so only
//! the starts of functions have to be guessed:
//!
//! 1. a symbol, where there are some (x86-64),
//! 2. the target of a call anywhere in the section,
//! 3. else code that no branch leads to. If a jump by a table comes before it, and it does not
//!    begin as functions do, it is a target of the table.
//!
//! | module | holds |
//! |---|---|
//! | `aarch64`, `x86_64` | code of these machines |
//! | `symbols` | starts of functions by the file's symbols |
//! | `compared` | for tests of both: rules that compilers wrote for the same code |

mod aarch64;
#[cfg(test)]
mod compared;
mod symbols;
mod x86_64;

use super::collect::Collector;
use super::machine::Machine;
use super::row::{Row, RuleId};
use super::rule::UnwindRule;
use super::start_code;
use crate::OpenError;
use crate::object::{Object, Section};
use std::collections::BTreeSet;
use std::ops::Range;

/// Maximum size of the code that is followed, in whole sections. Programs without unwind information
/// are much smaller.
const CODE_BYTES_MAX: u64 = 32 << 20;

/// The same of x86-64, where three bytes are needed meanwhile for each byte of code.
const CODE_BYTES_MAX_X86_64: u64 = 8 << 20;

/// Minimum size of a hole that is filled. Smaller ones of x86-64 are padding between functions.
const HOLE_BYTES_MIN: u64 = 4;
const HOLE_BYTES_MIN_X86_64: u64 = 16;

/// If holes are less than this part of a section, only their own calls are looked at on x86-64:
/// decoding all instructions takes about as long as reading all unwind information.
const SPARSE: u64 = 16;

/// Adds rows for code that is a hole in `known`.
pub fn read(object: &Object, known: &[Row], collector: &mut Collector) -> Result<(), OpenError> {
    let (mut left, hole_bytes_min) = match collector.machine {
        Machine::Aarch64 => (CODE_BYTES_MAX, HOLE_BYTES_MIN),
        Machine::X86_64 => (CODE_BYTES_MAX_X86_64, HOLE_BYTES_MIN_X86_64),
    };
    let first = start_code::first_function(object, collector.machine);
    for section in object.sections() {
        let is_code = section.is_executable() && section.has_data() && !section.is_compressed();
        if !is_code || section.size > left {
            continue;
        }
        let mut holes = holes(known, section, hole_bytes_min);
        let is_inside = |first: &u64| (section.addr..section.end()).contains(first);
        if let (Machine::X86_64, Some(first)) = (collector.machine, first.filter(is_inside)) {
            include_first(&mut holes, first);
        }
        if holes.is_empty() {
            continue;
        }
        left -= section.size;
        let Ok(code) = object.section_data(section, CODE_BYTES_MAX, "code") else {
            continue;
        };
        let starts = match collector.machine {
            Machine::Aarch64 => aarch64::called(&code, section.addr),
            Machine::X86_64 => {
                let mut starts = starts_x86_64(&code, section.addr, &holes);
                symbols::add_functions(object, &mut starts);
                starts
            }
        };
        add(&code, section.addr, &starts, first, &holes, collector)?;
    }
    Ok(())
}

/// Returns the starts of functions by calls in this code of x86-64.
fn starts_x86_64(code: &[u8], start: u64, holes: &[Range<u64>]) -> BTreeSet<u64> {
    let bytes: u64 = holes.iter().map(|hole| hole.end - hole.start).sum();
    if bytes >= code.len() as u64 / SPARSE {
        return x86_64::called(code, start);
    }
    let called = holes.iter().filter_map(|hole| {
        let code = code.get(inside(hole, start))?;
        Some(x86_64::called(code, hole.start))
    });
    called.flatten().collect()
}

/// Returns the place of a hole in the code that begins at `start`.
fn inside(hole: &Range<u64>, start: u64) -> Range<usize> {
    (hole.start - start) as usize..(hole.end - start) as usize
}

/// Returns the addresses of a section that no row covers, `bytes_min` or more together.
fn holes(known: &[Row], section: &Section, bytes_min: u64) -> Vec<Range<u64>> {
    let mut holes = Vec::new();
    let behind = known.partition_point(|row| u64::from(row.start) <= section.addr);
    let (before, rows) = known.split_at(behind);
    let mut at = section.addr;
    let mut is_hole = before.last().is_none_or(|row| row.rule == RuleId::HOLE);
    let rows = rows.iter().map(|row| (u64::from(row.start), row.rule));
    let end = (section.end(), RuleId::HOLE);
    let inside = rows.take_while(|(start, _)| *start < section.end());
    for (start, rule) in inside.chain([end]) {
        if is_hole && start.saturating_sub(at) >= bytes_min {
            holes.push(at..start);
        }
        at = start;
        is_hole = rule == RuleId::HOLE;
    }
    holes
}

/// Lets the hole with the program's first function begin with it: its first byte has a rule already.
fn include_first(holes: &mut [Range<u64>], first: u64) {
    let is_behind = |hole: &&mut Range<u64>| first.checked_add(1) == Some(hole.start);
    if let Some(hole) = holes.iter_mut().find(is_behind) {
        hole.start = first;
    }
}

/// Adds the rows of the code in `holes`. `starts` are the known starts of functions, and `first` is
/// that of the program's first one.
fn add(
    code: &[u8],
    start: u64,
    starts: &BTreeSet<u64>,
    first: Option<u64>,
    holes: &[Range<u64>],
    collector: &mut Collector,
) -> Result<(), OpenError> {
    for hole in holes {
        let Some(code) = code.get(inside(hole, start)) else {
            continue;
        };
        let starts = starts.range(hole.clone()).copied();
        let rows = match collector.machine {
            Machine::Aarch64 => aarch64::rows(code, hole.start, starts),
            Machine::X86_64 => x86_64::rows(code, hole.start, starts, first),
        };
        if rows.iter().all(|(_, rule)| *rule == UnwindRule::Hole) {
            continue;
        }
        if collector.open(hole.start, hole.end - hole.start) {
            for (at, rule) in rows {
                collector.add(at, || rule);
            }
            collector.close()?;
        }
    }
    Ok(())
}
