//! A code object: what a function, a class body or a module was compiled to.

use super::layout::Layout;
use super::lines::Lines;
use super::memory::{Lack, Memory, half, is_alive, pointer, word};
use super::text::{read_bytes, read_text};

/// Words that tell one code object from another one that gets its address later.
pub const IDENTITY_WORDS: usize = 4;

/// What a code object says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The function with what it is defined in (`Server.run.<locals>.step`); before 3.11 the
    /// function alone. Not safe to print.
    pub name: String,
    /// The file, as it was given to the compiler. Not safe to print.
    pub file: String,
    /// The line where it begins.
    pub first_line: u32,
    /// The line of each instruction.
    pub lines: Lines,
    /// The words that tell it from another code object.
    pub identity: [u64; IDENTITY_WORDS],
}

/// What is at the address of a code object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A function, a class body or a module.
    Code(Code),
    /// Code of the interpreter's own that stands between two functions, such as what calls
    /// `__init__` from 3.12 on; Python does not show it either.
    Trampoline,
    /// Not the one that is wanted, or none at all.
    Gone,
}

/// Reads the code object at an address. `is_wanted` says by its first line and its identity
/// whether it is the one that was seen there.
pub fn read_code(
    memory: &impl Memory,
    address: u64,
    layout: &Layout,
    is_wanted: impl Fn(u32, &[u64; IDENTITY_WORDS]) -> bool,
) -> Result<Found, Lack> {
    let offsets = &layout.code;
    let fields = memory.read(address, offsets.bytes)?;
    let first_line = half(&fields, offsets.first_line)?;
    let identity = identity_in(&fields, offsets.identity)?;
    if !is_alive(&fields) || !is_wanted(first_line, &identity) {
        return Ok(Found::Gone);
    }
    let file = word(&fields, offsets.file)?;
    if first_line == 0 && (file == 0 || file == word(&fields, offsets.name)?) {
        return Ok(Found::Trampoline);
    }
    let name = offsets.qualified_name.unwrap_or(offsets.name);
    let name = read_text(memory, pointer(&fields, name)?, layout)?;
    let file = read_text(memory, pointer(&fields, offsets.file)?, layout)?;
    let table = read_bytes(memory, pointer(&fields, offsets.line_table)?)?;
    // As long as it is in use, so is what it refers to.
    let again = memory.read(address, offsets.bytes)?;
    if !is_alive(&again) || identity_in(&again, offsets.identity)? != identity {
        return Ok(Found::Gone);
    }
    Ok(Found::Code(Code {
        name,
        file,
        first_line,
        lines: Lines::decode(offsets.lines, &table, first_line),
        identity,
    }))
}

fn identity_in(fields: &[u8], start: u32) -> Result<[u64; IDENTITY_WORDS], Lack> {
    let mut identity = [0; IDENTITY_WORDS];
    for (at, part) in (start..).step_by(8).zip(&mut identity) {
        *part = word(fields, at)?;
    }
    Ok(identity)
}
