//! A code object: what a function, a class body or a module was compiled to.

use super::layout::Layout;
use super::lines::Lines;
use super::memory::{Lack, Memory, half, is_alive, pointer, word};
use super::text::{read_bytes, read_text};

/// Words that tell one code object from another one that gets its address later.
pub const IDENTITY_WORDS: usize = 4;

/// `ob_type` of every object.
const TYPE: u32 = 8;

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
    let parts = Parts::read(memory, &fields, layout)?;
    // As long as it is in use, so is what it refers to. When it was freed in between, something
    // else may be there already that has not written over all of it, or a code object with the
    // same names: then its parts are hardly the same once more.
    let again = memory.read(address, offsets.bytes)?;
    let is_same = is_alive(&again)
        && word(&again, TYPE)? == word(&fields, TYPE)?
        && half(&again, offsets.first_line)? == first_line
        && identity_in(&again, offsets.identity)? == identity;
    if !is_same || Parts::read(memory, &again, layout)? != parts {
        return Ok(Found::Gone);
    }
    let Parts { name, file, table } = parts;
    Ok(Found::Code(Code {
        name,
        file,
        first_line,
        lines: Lines::decode(offsets.lines, &table, first_line),
        identity,
    }))
}

/// What a code object refers to.
#[derive(PartialEq, Eq)]
struct Parts {
    name: String,
    file: String,
    /// The table of lines.
    table: Vec<u8>,
}

impl Parts {
    fn read(memory: &impl Memory, fields: &[u8], layout: &Layout) -> Result<Self, Lack> {
        let offsets = &layout.code;
        let name = offsets.qualified_name.unwrap_or(offsets.name);
        Ok(Self {
            name: read_text(memory, pointer(fields, name)?, layout)?,
            file: read_text(memory, pointer(fields, offsets.file)?, layout)?,
            table: read_bytes(memory, pointer(fields, offsets.line_table)?)?,
        })
    }
}

fn identity_in(fields: &[u8], start: u32) -> Result<[u64; IDENTITY_WORDS], Lack> {
    let mut identity = [0; IDENTITY_WORDS];
    for (at, part) in (start..).step_by(8).zip(&mut identity) {
        *part = word(fields, at)?;
    }
    Ok(identity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;
    use crate::python::Version;
    use std::cell::{Cell, RefCell};

    const CODE: u64 = 0x1000;
    const NAME: u64 = 0x1100;
    const FILE: u64 = 0x1180;
    const TABLE: u64 = 0x1200;
    const MEMORY: usize = 0x300;

    /// Where the allocator's and other objects are.
    const HEAP: u64 = 0x7f00_0000_1230;

    type Bytes = [u8; MEMORY];

    fn put(bytes: &mut Bytes, address: u64, value: &[u8]) {
        let at = (address - CODE) as usize;
        bytes[at..at + value.len()].copy_from_slice(value);
    }

    fn put_words(bytes: &mut Bytes, address: u64, words: &[u64]) {
        for (address, word) in (address..).step_by(8).zip(words) {
            put(bytes, address, &word.to_le_bytes());
        }
    }

    fn put_text(bytes: &mut Bytes, address: u64, text: &str) {
        put_words(
            bytes,
            address,
            &[1, 7, text.len() as u64, 0, 1 << 2 | 3 << 5],
        );
        put(bytes, address + 48, text.as_bytes());
    }

    /// A module's code whose second line begins at the eighth byte, in Python 3.9.
    fn memory() -> Bytes {
        let mut bytes = [0; MEMORY];
        put_words(&mut bytes, CODE, &[1, 5]);
        put(&mut bytes, CODE + 40, &1u32.to_le_bytes());
        put_words(&mut bytes, CODE + 104, &[FILE, NAME, TABLE]);
        put_text(&mut bytes, NAME, "<module>");
        put_text(&mut bytes, FILE, "<made>");
        put_words(&mut bytes, TABLE, &[1, 6, 2]);
        put(&mut bytes, TABLE + 32, &[8, 3]);
        bytes
    }

    /// Reads the code while something happens to it before one of the reads. Tells how many
    /// reads there were, too.
    fn read(before: usize, happens: impl Fn(&mut Bytes)) -> (Option<Code>, usize) {
        let (bytes, reads) = (RefCell::new(memory()), Cell::new(0));
        let memory = |address: u64, length: u32| {
            if reads.replace(reads.get() + 1) == before {
                happens(&mut bytes.borrow_mut());
            }
            let from = (address - CODE) as usize;
            let piece = bytes
                .borrow()
                .get(from..from + length as usize)
                .map(Vec::from);
            piece.ok_or(Reason::FileGone)
        };
        let version = Version { major: 3, minor: 9 };
        let layout = Layout::of(version, &memory, 0).unwrap();
        let found = read_code(&memory, CODE, &layout, |first_line, _| first_line == 1);
        let code = match found {
            Ok(Found::Code(code)) => Some(code),
            Ok(Found::Trampoline) => panic!("it is no trampoline"),
            Ok(Found::Gone) | Err(_) => None,
        };
        (code, reads.get())
    }

    #[test]
    fn a_code_object_tells_its_name_and_lines() {
        let (code, _) = read(usize::MAX, |_| {});
        let code = code.unwrap();
        assert_eq!((&*code.name, &*code.file), ("<module>", "<made>"));
        assert_eq!((code.lines.at(6), code.lines.at(14)), (Some(1), Some(4)));
    }

    #[test]
    fn what_is_freed_while_it_is_read_has_no_wrong_lines() {
        let happenings: [fn(&mut Bytes); 4] = [
            // A list got the table's place: its count of references is where a table has its
            // length.
            |bytes| put_words(bytes, TABLE, &[HEAP, HEAP, 1, 9]),
            // The code was freed, and a table that is being made got its table's place.
            |bytes| {
                put_words(bytes, CODE, &[HEAP]);
                put(bytes, TABLE + 32, &[0, 0]);
            },
            // All was freed, and nothing written over yet but what the allocator needs.
            |bytes| {
                for object in [CODE, NAME, FILE, TABLE] {
                    put_words(bytes, object, &[HEAP]);
                }
            },
            // Another kind of object got the code's place, and has not written all of it.
            |bytes| {
                put_words(bytes, CODE, &[1, 8]);
                put(bytes, TABLE + 32, &[0, 0]);
            },
        ];
        let (right, reads) = read(usize::MAX, |_| {});
        for (number, happens) in happenings.iter().enumerate() {
            for before in 1..reads {
                let (code, _) = read(before, happens);
                assert!(
                    code.is_none() || code == right,
                    "{number} before read {before}"
                );
            }
        }
    }
}
