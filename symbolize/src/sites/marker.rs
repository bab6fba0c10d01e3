//! *Markers*: places that programmers marked for tracing (USDT, `DTRACE_PROBE`).
//!
//! The compiler puts a `nop` at each marker, and a note into `.note.stapsdt` with its address, its
//! name, and the places of its arguments at that moment:
//!
//! ```text
//! address, address of .stapsdt.base, address of the semaphore    8 bytes each
//! provider, name, arguments: texts that end with a zero
//!
//! -4@%eax          a signed number of 4 bytes in a register
//! 8@-16(%rbp)      8 bytes in memory
//! 4@$5             a constant
//! ```
//!
//! Programs prepare expensive arguments only while the marker's semaphore, a counter in their
//! memory, is not 0: the kernel increments it for each probe of the marker.
//! (sourceware.org/systemtap/wiki/UserSpaceProbeImplementation)

use super::code::Code;
use super::find::{Wanted, functions};
use super::refusal;
use super::{Function, Kind, Refusal, Site};
use crate::object::notes;
use crate::{ElfSymbols, FileOffset, LinkAddr, Segments, sanitize};

/// Maximum size of the notes of one file: those of large programs take some hundred kilobytes.
const NOTES_BYTES_MAX: u64 = 16 << 20;

/// Maximum number of markers of one file.
const MARKERS_MAX: usize = 65_536;

/// `NT_STAPSDT`.
const STAPSDT: u32 = 3;

/// A place that a programmer marked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// Name such as `postgresql:query__start`, safe to print.
    pub name: String,
    /// Where it is.
    pub addr: LinkAddr,
    /// Counter of the listeners, if it has one.
    pub semaphore: Option<LinkAddr>,
    /// Its arguments, in their order.
    pub arguments: Vec<Argument>,
}

/// An argument of a marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// The operand as the compiler wrote it, safe to print.
    pub text: String,
    /// Size in bytes: 1, 2, 4 or 8.
    pub bytes: u32,
    /// Whether its highest bit is the sign.
    pub is_signed: bool,
    /// Where it is; `None` if that is not supported: a floating-point register, or an address of
    /// several parts.
    pub place: Option<ArgumentPlace>,
}

/// Where an argument is. Registers have their number in instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentPlace {
    /// In a register, possibly with other data in its upper bits.
    Register(u32),
    /// In memory, at this distance from where a register points.
    Memory(u32, i64),
    /// A constant.
    Constant(i64),
}

/// Returns all markers of a file; damaged notes are ignored.
pub fn markers(symbols: &ElfSymbols) -> Vec<Marker> {
    let object = symbols.object();
    let Some(section) = object.section_by_name(b".note.stapsdt") else {
        return Vec::new();
    };
    let Ok(bytes) = object.section_data(section, NOTES_BYTES_MAX, "markers") else {
        return Vec::new();
    };
    // Prelinking moves the program but not the notes: the base gives the distance.
    let base = object
        .section_by_name(b".stapsdt.base")
        .map(|section| section.addr);
    let own = notes(&bytes).filter(|note| note.owner == b"stapsdt" && note.kind == STAPSDT);
    own.filter_map(|note| read(note.description, base))
        .take(MARKERS_MAX)
        .collect()
}

/// Parses the description of a note.
fn read(description: &[u8], base: Option<u64>) -> Option<Marker> {
    let word = |number: usize| {
        let bytes = description.get(number * 8..number * 8 + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let (addr, noted_base, semaphore) = (word(0)?, word(1)?, word(2)?);
    let moved = base.map_or(0, |base| base.wrapping_sub(noted_base));
    let mut texts = description.get(24..)?.split(|byte| *byte == 0);
    let (provider, name) = (texts.next()?, texts.next()?);
    let arguments = texts.next().unwrap_or_default();
    let arguments = String::from_utf8_lossy(arguments);
    Some(Marker {
        name: format!("{}:{}", sanitize(provider), sanitize(name)),
        addr: LinkAddr(addr.wrapping_add(moved)),
        semaphore: (semaphore != 0).then(|| LinkAddr(semaphore.wrapping_add(moved))),
        arguments: arguments.split_ascii_whitespace().map(argument).collect(),
    })
}

/// Parses one argument. Without a size it is a whole word.
fn argument(text: &str) -> Argument {
    let (size, operand) = text.split_once('@').unwrap_or(("8", text));
    let size: Option<i32> = size.parse().ok();
    let bytes = size.map_or(0, i32::unsigned_abs);
    let is_known = matches!(bytes, 1 | 2 | 4 | 8);
    Argument {
        text: sanitize(text.as_bytes()).into_owned(),
        bytes: if is_known { bytes } else { 8 },
        is_signed: size.is_some_and(|size| size < 0),
        place: is_known.then(|| place_of(operand)).flatten(),
    }
}

/// Parses an operand in assembler syntax.
fn place_of(operand: &str) -> Option<ArgumentPlace> {
    if let Some(number) = operand.strip_prefix('$') {
        return number.parse().ok().map(ArgumentPlace::Constant);
    }
    if let Some(name) = operand.strip_prefix('%') {
        return register(name).map(ArgumentPlace::Register);
    }
    let (offset, base) = operand.strip_suffix(')')?.split_once("(%")?;
    let offset = match offset {
        "" => 0,
        offset => offset.parse().ok()?,
    };
    // An address is always in a whole register.
    let is_whole = base.starts_with('r') && !base.ends_with(['d', 'w', 'b']);
    let base = register(base).filter(|_| is_whole)?;
    Some(ArgumentPlace::Memory(base, offset))
}

/// Returns the number of the register that has this name, or whose lower part has it.
fn register(name: &str) -> Option<u32> {
    const OLD: [&str; 8] = ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"];
    const BYTES: [&str; 8] = ["al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil"];
    let number_in = |list: [&str; 8], name: &str| {
        let number = list.iter().position(|old| *old == name)?;
        Some(number as u32)
    };
    if let Some(number) = number_in(OLD, name).or_else(|| number_in(BYTES, name)) {
        return Some(number);
    }
    if let Some(number) = name
        .strip_prefix(['r', 'e'])
        .and_then(|name| number_in(OLD, name))
    {
        return Some(number);
    }
    let number = name.strip_prefix('r')?.trim_end_matches(['d', 'w', 'b']);
    number
        .parse()
        .ok()
        .filter(|number| (8..16).contains(number))
}

/// Returns the function that contains a marker at this address, and the site at its `nop`. An error unless decoding
/// the function finds an instruction there.
pub fn place_marker(symbols: &ElfSymbols, addr: LinkAddr) -> Result<(Function, Site), Refusal> {
    let mut found = functions(symbols, Wanted::At(addr))?;
    let function = found.pop().ok_or(Refusal::NoCode)?;
    refusal::check(symbols, &function)?;
    let code = Code::read(symbols, function.start, function.len)?;
    let at = code.position(addr).ok_or(Refusal::NotAnInstruction)?;
    let site = code.site(symbols, at, Kind::Marker, 0)?;
    Ok((function, site))
}

/// Returns the file offset of a marker's semaphore.
pub fn semaphore(segments: &Segments, marker: &Marker) -> Result<Option<FileOffset>, Refusal> {
    let Some(addr) = marker.semaphore else {
        return Ok(None);
    };
    let offset = segments.to_file(addr);
    offset.map(Some).ok_or(Refusal::NoSemaphore)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_where_the_assembler_says() {
        let place = |text: &str| argument(text).place;
        assert_eq!(place("-4@%eax"), Some(ArgumentPlace::Register(0)));
        assert_eq!(place("8@%r12"), Some(ArgumentPlace::Register(12)));
        assert_eq!(place("4@%r9d"), Some(ArgumentPlace::Register(9)));
        assert_eq!(place("1@%sil"), Some(ArgumentPlace::Register(6)));
        assert_eq!(place("8@-16(%rbp)"), Some(ArgumentPlace::Memory(5, -16)));
        assert_eq!(place("8@(%r13)"), Some(ArgumentPlace::Memory(13, 0)));
        assert_eq!(place("-4@$-5"), Some(ArgumentPlace::Constant(-5)));
        let eax = argument("-4@%eax");
        assert_eq!((eax.bytes, eax.is_signed), (4, true));
        for not_understood in [
            "8@(%rax,%rbx,8)",
            "8@counter(%rip)",
            "8f@%xmm0",
            "1@%ah",
            "8@%rip",
            "8@%r16",
            "3@%eax",
            "8@-16(%ebp)",
            "8@",
            "@",
            "",
        ] {
            assert_eq!(place(not_understood), None, "{not_understood}");
        }
    }

    #[test]
    fn notes_are_read_and_moved_with_their_base() {
        let mut description = Vec::new();
        for word in [0x1000u64, 0x5000, 0x6000] {
            description.extend(word.to_le_bytes());
        }
        description.extend(b"app\0be\x1bgin\0-4@%edi 8@$1\0");
        let marker = read(&description, Some(0x5100)).unwrap();
        assert_eq!(marker.addr, LinkAddr(0x1100));
        assert_eq!(marker.semaphore, Some(LinkAddr(0x6100)));
        assert_eq!(marker.arguments.len(), 2);
        assert!(!marker.name.contains('\x1b'), "{marker:?}");
        for len in 0..description.len() {
            // No truncation causes a panic.
            _ = read(&description[..len], Some(u64::MAX));
        }
    }
}
