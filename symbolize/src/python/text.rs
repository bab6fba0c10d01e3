//! Reads strings and bytes objects of Python from memory (`Include/cpython/unicodeobject.h`).

use super::layout::Layout;
use super::memory::{Lack, Memory, half, is_alive, word};

/// Maximum length of a string; the rest is left out.
const CHARACTERS_MAX: u64 = 4096;

/// Maximum size of a table of lines: some hundred thousand instructions.
const BYTES_MAX: u64 = 1 << 20;

/// Offsets of `ob_size` and `ob_sval` in `PyBytesObject`.
const BYTES_SIZE: u32 = 16;
const BYTES_DATA: u32 = 32;

/// Offsets of `length` and `state` in `PyASCIIObject`.
const LENGTH: u32 = 16;
const STATE: u32 = 32;

/// Number of bytes first read of an object of unknown size: most names and tables of lines are
/// shorter.
const GUESS: u32 = 256;

/// Smallest page size.
const PAGE: u64 = 4096;

/// Reads a string. A freed one is an error.
pub fn read_text(memory: &impl Memory, address: u64, layout: &Layout) -> Result<String, Lack> {
    let parts = |object: &[u8]| {
        let length = word(object, LENGTH)?;
        let state = half(object, STATE)?;
        // Two bits of `interned`, three of `kind`, one of `compact`, one of `ascii`.
        let (kind, is_compact, is_ascii) =
            (state >> 2 & 7, state >> 5 & 1 != 0, state >> 6 & 1 != 0);
        let is_whole = matches!(kind, 1 | 2 | 4) && is_compact && !(is_ascii && kind != 1);
        if !is_whole || length > 1 << 40 {
            return Err(Lack::Implausible("a string"));
        }
        let data = if is_ascii {
            layout.ascii_data
        } else {
            layout.wide_data
        };
        Ok((kind, data, length.min(CHARACTERS_MAX) as u32 * kind))
    };
    let size = |object: &[u8]| parts(object).map(|(_, data, length)| data + length);
    let object = read_object(memory, address, STATE + 4, size)?;
    let (kind, data, _) = parts(&object)?;
    let bytes = object.get(data as usize..).unwrap_or_default();
    let replacement = char::REPLACEMENT_CHARACTER;
    Ok(match kind {
        1 => bytes.iter().map(|byte| char::from(*byte)).collect(),
        2 => {
            let units = bytes.as_chunks::<2>().0.iter();
            let character = |unit: &[u8; 2]| u16::from_le_bytes(*unit).into();
            let character = |unit| char::from_u32(character(unit)).unwrap_or(replacement);
            units.map(character).collect()
        }
        _ => {
            let units = bytes.as_chunks::<4>().0.iter();
            let character = |unit: &[u8; 4]| char::from_u32(u32::from_le_bytes(*unit));
            units
                .map(|unit| character(unit).unwrap_or(replacement))
                .collect()
        }
    })
}

/// Whether there is a string with these ASCII characters at an address.
pub fn is_text(memory: &impl Memory, address: u64, text: &str, layout: &Layout) -> bool {
    let bytes = memory.read(address, layout.ascii_data + text.len() as u32);
    bytes.is_ok_and(|bytes| {
        let is_ascii = half(&bytes, STATE).is_ok_and(|state| state >> 5 & 3 == 3);
        let length = word(&bytes, LENGTH).unwrap_or(0);
        is_ascii && length == text.len() as u64 && bytes.ends_with(text.as_bytes())
    })
}

/// Reads a bytes object; more than [`BYTES_MAX`] is an error, and so is a freed object.
pub fn read_bytes(memory: &impl Memory, address: u64) -> Result<Vec<u8>, Lack> {
    let size = |object: &[u8]| match word(object, BYTES_SIZE)? {
        length @ 0..=BYTES_MAX => Ok(BYTES_DATA + length as u32),
        _ => Err(Lack::Implausible("a table of lines")),
    };
    let mut object = read_object(memory, address, BYTES_DATA, size)?;
    Ok(object.split_off(BYTES_DATA as usize))
}

/// Returns the first part of an object that is read before its size is known.
pub fn begin_of(address: u64) -> (u64, u32) {
    // The next page may not be mapped, if the object ends before it.
    let in_page = PAGE - address % PAGE;
    (address, GUESS.min(in_page as u32))
}

/// Reads a whole object, which has to be in use. Its first `head` bytes contain its size.
fn read_object(
    memory: &impl Memory,
    address: u64,
    head: u32,
    size: impl Fn(&[u8]) -> Result<u32, Lack>,
) -> Result<Vec<u8>, Lack> {
    let (_, begin) = begin_of(address);
    let mut object = memory.read(address, begin.max(head))?;
    let size_first = size(&object)?;
    if size_first as usize > object.len() {
        object = memory.read(address, size_first)?;
    }
    // Another object may have replaced it between the two reads.
    if !is_alive(&object) || size(&object)? != size_first {
        return Err(Lack::Implausible("an object that is in use"));
    }
    object.truncate(size_first as usize);
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;
    use crate::python::Version;

    fn string(kind: u32, is_ascii: bool, data: &[u8], wide: usize, length: u64) -> Vec<u8> {
        let mut bytes = vec![0; if is_ascii { 40 } else { wide }];
        bytes[0] = 1;
        bytes[16..24].copy_from_slice(&length.to_le_bytes());
        let state = kind << 2 | 1 << 5 | u32::from(is_ascii) << 6 | 1;
        bytes[32..36].copy_from_slice(&state.to_le_bytes());
        bytes.extend(data);
        bytes
    }

    /// Reads a string at the start of a page of memory, the only one that is mapped.
    fn read(bytes: &[u8]) -> Result<String, Lack> {
        let mut bytes = bytes.to_vec();
        bytes.resize(PAGE as usize, 0);
        let memory = |address: u64, length: u32| {
            let from = usize::try_from(address - 0x1000).unwrap();
            let piece = bytes.get(from..from + length as usize);
            piece.map(Vec::from).ok_or(Reason::FileGone)
        };
        let version = Version {
            major: 3,
            minor: 12,
        };
        let layout = Layout::of(version, &memory, 0).unwrap();
        read_text(&memory, 0x1000, &layout)
    }

    #[test]
    fn strings_of_every_width() {
        assert_eq!(read(&string(1, true, b"main", 56, 4)).unwrap(), "main");
        assert_eq!(
            read(&string(1, false, b"na\xefve", 56, 5)).unwrap(),
            "naïve"
        );
        let wide: Vec<u8> = "λx".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(read(&string(2, false, &wide, 56, 2)).unwrap(), "λx");
        let widest: Vec<u8> = "🐍"
            .chars()
            .flat_map(|c| u32::from(c).to_le_bytes())
            .collect();
        assert_eq!(read(&string(4, false, &widest, 56, 1)).unwrap(), "🐍");
        let lone = 0xd800_u16.to_le_bytes();
        assert_eq!(read(&string(2, false, &lone, 56, 1)).unwrap(), "\u{fffd}");
    }

    #[test]
    fn what_is_no_string_is_none() {
        let implausible = Err(Lack::Implausible("a string"));
        assert_eq!(read(&string(3, false, b"", 56, 0)), implausible);
        assert_eq!(read(&string(2, true, b"", 56, 0)), implausible);
        assert_eq!(read(&string(1, true, b"", 56, u64::MAX)), implausible);
        let cut = read(&string(1, true, b"short", 56, 4090));
        assert_eq!(cut, Err(Lack::Unreadable(Reason::FileGone)));
        let mut freed = string(1, true, b"freed", 56, 5);
        freed[..8].copy_from_slice(&0x7f00_0000_1230_u64.to_le_bytes());
        let freed = read(&freed);
        assert_eq!(freed, Err(Lack::Implausible("an object that is in use")));
    }

    #[test]
    fn what_is_longer_than_one_read_is_whole() {
        let long = "x".repeat(3000);
        assert_eq!(
            read(&string(1, true, long.as_bytes(), 56, 3000)).unwrap(),
            long
        );
    }
}
