//! Code objects: the compiled form of a function, a class body or a module.

use super::layout::Layout;
use super::lines::Lines;
use super::memory::{Lack, Memory, half, is_alive, pointer, word};
use super::text::{begin_of, read_bytes, read_text};

/// Number of words that distinguish a code object from a later one at the same address.
pub const IDENTITY_WORDS: usize = 4;

/// Offset of `ob_type` in every object.
const TYPE: u32 = 8;

/// The contents of a code object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// Qualified name of the function (`Server.run.<locals>.step`); before 3.11 only its name. Not
    /// safe to print.
    pub name: String,
    /// Path of the file, as it was given to the compiler. Not safe to print.
    pub file: String,
    /// The line where it begins.
    pub first_line: u32,
    /// The line of each instruction.
    pub lines: Lines,
    /// The words that distinguish it from another code object.
    pub identity: [u64; IDENTITY_WORDS],
}

/// What is at the address of a code object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A function, a class body or a module.
    Code(Code),
    /// Code of the interpreter itself between two functions, such as the code that calls `__init__`
    /// from 3.12 on; Python does not show it either.
    Trampoline,
    /// The wanted code object is gone.
    Gone,
}

/// Reads the code objects at some addresses. `is_wanted` decides for each, by its first line and
/// its identity, whether it is the one that was sampled there.
///
/// `again` is the same memory without any cached blocks: it gives the contents at a later moment,
/// and is used after everything was read once.
pub fn read_codes<W: Fn(u32, &[u64; IDENTITY_WORDS]) -> bool>(
    memory: &impl Memory,
    again: &impl Memory,
    codes: &[(u64, W)],
    layout: &Layout,
) -> Vec<Result<Found, Lack>> {
    let fields = |(address, _): &(u64, W)| (*address, layout.code.bytes);
    memory.announce(&codes.iter().map(fields).collect::<Vec<_>>());
    let seen = |(address, is_wanted): &(u64, W)| Seen::read(memory, *address, layout, is_wanted);
    let seen: Vec<_> = codes.iter().map(seen).collect();
    let of_code = |seen: &Result<Seen, Lack>| match seen {
        Ok(Seen::Code(fields)) => fields.parts(layout),
        _ => Vec::new(),
    };
    let parts: Vec<_> = seen.iter().flat_map(of_code).collect();
    memory.announce(&parts);
    let whole = |seen: Result<Seen, Lack>| {
        Ok(match seen? {
            Seen::Code(fields) => Whole::Code(Parts::read(memory, &fields.bytes, layout)?, fields),
            Seen::Other(found) => Whole::Other(found),
        })
    };
    let whole: Vec<Result<Whole, Lack>> = seen.into_iter().map(whole).collect();
    again.announce(&codes.iter().map(fields).chain(parts).collect::<Vec<_>>());
    codes
        .iter()
        .zip(whole)
        .map(|((address, _), whole)| match whole? {
            Whole::Code(parts, fields) => fields.confirm(again, *address, parts, layout),
            Whole::Other(found) => Ok(found),
        })
        .collect()
}

/// What was seen at an address first.
enum Seen {
    Code(Fields),
    Other(Found),
}

/// A code object together with what it refers to.
enum Whole {
    Code(Parts, Fields),
    Other(Found),
}

/// The fields of a code object itself.
struct Fields {
    bytes: Vec<u8>,
    first_line: u32,
    identity: [u64; IDENTITY_WORDS],
}

impl Seen {
    fn read(
        memory: &impl Memory,
        address: u64,
        layout: &Layout,
        is_wanted: impl Fn(u32, &[u64; IDENTITY_WORDS]) -> bool,
    ) -> Result<Self, Lack> {
        let offsets = &layout.code;
        let bytes = memory.read(address, offsets.bytes)?;
        let first_line = half(&bytes, offsets.first_line)?;
        let identity = identity_in(&bytes, offsets.identity)?;
        if !is_alive(&bytes) || !is_wanted(first_line, &identity) {
            return Ok(Self::Other(Found::Gone));
        }
        let file = word(&bytes, offsets.file)?;
        if first_line == 0 && (file == 0 || file == word(&bytes, offsets.name)?) {
            return Ok(Self::Other(Found::Trampoline));
        }
        Ok(Self::Code(Fields {
            bytes,
            first_line,
            identity,
        }))
    }
}

impl Fields {
    /// The pieces of memory of its parts that are read before their lengths are known.
    fn parts(&self, layout: &Layout) -> Vec<(u64, u32)> {
        let at = |at| Some(begin_of(pointer(&self.bytes, at).ok()?));
        let offsets = &layout.code;
        let all = [
            offsets.name_or_qualified(),
            offsets.file,
            offsets.line_table,
        ];
        all.into_iter().filter_map(at).collect()
    }

    /// Returns the code object if it is the same at a later moment. While it is in use, so is
    /// everything that it refers to. If it was freed in between, its memory may have been reused,
    /// but not completely overwritten, or reused by a code object with the same names: then it is
    /// very unlikely that all its parts are the same once more.
    fn confirm(
        self,
        again: &impl Memory,
        address: u64,
        parts: Parts,
        layout: &Layout,
    ) -> Result<Found, Lack> {
        let offsets = &layout.code;
        let bytes = again.read(address, offsets.bytes)?;
        let is_same = is_alive(&bytes)
            && word(&bytes, TYPE)? == word(&self.bytes, TYPE)?
            && half(&bytes, offsets.first_line)? == self.first_line
            && identity_in(&bytes, offsets.identity)? == self.identity;
        if !is_same || Parts::read(again, &bytes, layout)? != parts {
            return Ok(Found::Gone);
        }
        let Parts { name, file, table } = parts;
        Ok(Found::Code(Code {
            name,
            file,
            first_line: self.first_line,
            lines: Lines::decode(offsets.lines, &table, self.first_line),
            identity: self.identity,
        }))
    }
}

/// The parts that a code object refers to.
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
        let name = offsets.name_or_qualified();
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
    use crate::python::blocks::Blocks;
    use std::cell::{Cell, RefCell};

    const CODE: u64 = 0x1000;
    const NAME: u64 = 0x1100;
    const FILE: u64 = 0x1180;
    const TABLE: u64 = 0x1200;
    const MEMORY: usize = 0x300;

    /// Addresses of the allocator's data and of other objects.
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

    /// The code of a module in Python 3.9 whose second line begins at the eighth byte.
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

    /// Reads the code while `happens` changes it before one of the reads. Returns also the number
    /// of reads.
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
        let wanted = [(CODE, |first_line, _: &[u64; 4]| first_line == 1)];
        let found = read_codes(&memory, &memory, &wanted, &layout).pop();
        let code = match found.expect("an answer for each") {
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
    fn many_are_read_by_few_requests() {
        let asked = Cell::new(0);
        // The same code object in every page.
        let pages = |pieces: &[(u64, u64)]| {
            asked.set(asked.get() + 1);
            let mut page = [0; 4096];
            page[..MEMORY].copy_from_slice(&memory());
            let piece = |&(start, length): &(u64, u64)| {
                let from = (start % 4096) as usize;
                page.get(from..from + length as usize).map(Vec::from)
            };
            Ok(pieces.iter().map(piece).collect())
        };
        let (first, again) = (Blocks::new(&pages), Blocks::new(&pages));
        let version = Version { major: 3, minor: 9 };
        let layout = Layout::of(version, &first, 0).unwrap();
        let any = |_, _: &[u64; 4]| true;
        let wanted: Vec<_> = (1..=100).map(|page| (page * CODE, any)).collect();
        let found = read_codes(&first, &again, &wanted, &layout);
        assert_eq!(found.len(), 100);
        for found in found {
            assert!(matches!(found, Ok(Found::Code(code)) if code.name == "<module>"));
        }
        assert_eq!(asked.get(), 2, "once, and once more");
    }

    #[test]
    fn what_is_freed_while_it_is_read_has_no_wrong_lines() {
        let happenings: [fn(&mut Bytes); 4] = [
            // A list got the memory of the table: its reference count is where a table has its
            // length.
            |bytes| put_words(bytes, TABLE, &[HEAP, HEAP, 1, 9]),
            // The code was freed, and a table that is being created got the memory of its table.
            |bytes| {
                put_words(bytes, CODE, &[HEAP]);
                put(bytes, TABLE + 32, &[0, 0]);
            },
            // Everything was freed, and only the allocator has overwritten something.
            |bytes| {
                for object in [CODE, NAME, FILE, TABLE] {
                    put_words(bytes, object, &[HEAP]);
                }
            },
            // Another kind of object got the memory of the code, and was not written completely.
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
