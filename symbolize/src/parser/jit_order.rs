//! Encodes questions about the names of generated code, and their answers.
//!
//! ```text
//! question: a byte of flags; addresses: their number, and each
//! answer: a byte of flags, bytes of heap that the maps take; names: their number, and each:
//!     its bytes, or nothing if there is none
//! ```
//!
//! The files of a question are the map and the dump, as far as they exist.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use super::answer::BYTES_MAX;
use crate::sanitize;
use crate::wire::{Taken, put_bytes, put_u32, put_u64, put_u64s};

/// Maximum number of addresses in one question.
pub const ADDRESSES_MAX: usize = 4096;

const HAS_MAP: u8 = 1;
const HAS_DUMP: u8 = 2;
const READS_ON: u8 = 4;
const ONLY_IF_NEW: u8 = 8;

const IS_NEW: u8 = 1;
const IS_DUMP: u8 = 2;

/// Options of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct How {
    /// First read what was written since the last question.
    pub reads_on: bool,
    /// Look up names only if something was written since.
    pub only_if_new: bool,
}

/// A question that was received.
#[derive(Debug)]
pub struct JitQuestion {
    /// Options of the question.
    pub how: How,
    /// The code map (`perf-PID.map`), if there is one.
    pub map: Option<File>,
    /// The dump (`jit-PID.dump`), if there is one.
    pub dump: Option<File>,
    /// Addresses of the process whose names are requested.
    pub addresses: Vec<u64>,
}

/// An answer: the names of the addresses from the first on, as many as fit into a message.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct JitAnswer {
    /// Whether there may be new names.
    pub is_new: bool,
    /// Whether the dump is valid.
    pub is_dump: bool,
    /// Memory of the maps in the process that reads them.
    pub heap_bytes: u64,
    /// The names, demangled and safe to print; `None` for an address without a name.
    pub names: Vec<Option<String>>,
}

/// Encodes a question; returns the bytes and the files to send along.
pub fn write<'a>(
    how: How,
    [map, dump]: [Option<&'a File>; 2],
    addresses: &[u64],
) -> (Vec<u8>, Vec<BorrowedFd<'a>>) {
    let flags = [
        (map.is_some(), HAS_MAP),
        (dump.is_some(), HAS_DUMP),
        (how.reads_on, READS_ON),
        (how.only_if_new, ONLY_IF_NEW),
    ];
    let mut out = vec![join(flags)];
    put_u64s(&mut out, addresses.iter().copied());
    let files = [map, dump].into_iter().flatten();
    (out, files.map(|file| file.as_fd()).collect())
}

impl JitQuestion {
    /// Decodes a question; `None` if it is malformed.
    pub fn read(message: &[u8], files: Vec<OwnedFd>) -> Option<JitQuestion> {
        let mut message = Taken(message);
        let flags = message.u8()?;
        let has = |flag: u8| flags & flag != 0;
        let mut files = files.into_iter().map(File::from);
        let map = if has(HAS_MAP) {
            Some(files.next()?)
        } else {
            None
        };
        let dump = if has(HAS_DUMP) {
            Some(files.next()?)
        } else {
            None
        };
        Some(JitQuestion {
            how: How {
                reads_on: has(READS_ON),
                only_if_new: has(ONLY_IF_NEW),
            },
            map,
            dump,
            addresses: message.u64s()?,
        })
    }
}

impl JitAnswer {
    /// Encodes an answer. Names that do not fit are left out.
    pub fn write(&self) -> Vec<u8> {
        let flags = [(self.is_new, IS_NEW), (self.is_dump, IS_DUMP)];
        let mut out = vec![join(flags)];
        put_u64(&mut out, self.heap_bytes);
        let at = out.len();
        put_u32(&mut out, 0);
        let mut count = 0u32;
        for name in &self.names {
            put_bytes(&mut out, name.as_deref().unwrap_or_default().as_bytes());
            count += 1;
            if out.len() > BYTES_MAX {
                break;
            }
        }
        out[at..at + 4].copy_from_slice(&count.to_le_bytes());
        out
    }

    /// Decodes an answer, which is not trusted; `None` if it is malformed.
    pub fn read(bytes: &[u8]) -> Option<JitAnswer> {
        let mut bytes = Taken(bytes);
        let flags = bytes.u8()?;
        let heap_bytes = bytes.u64()?;
        let count = bytes.u32()?;
        let mut name = || {
            let name = bytes.bytes()?;
            Some((!name.is_empty()).then(|| sanitize(name).into_owned()))
        };
        Some(JitAnswer {
            is_new: flags & IS_NEW != 0,
            is_dump: flags & IS_DUMP != 0,
            heap_bytes,
            names: (0..count).map(|_| name()).collect::<Option<_>>()?,
        })
    }
}

fn join<const N: usize>(flags: [(bool, u8); N]) -> u8 {
    let set = flags.into_iter().filter(|(is_set, _)| *is_set);
    set.fold(0, |all, (_, flag)| all | flag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn answers_arrive_as_they_were_given() {
        let answer = JitAnswer {
            is_new: true,
            is_dump: false,
            heap_bytes: u64::MAX,
            names: vec![Some("f".into()), None, Some("g(int)".into())],
        };
        let bytes = answer.write();
        assert_eq!(JitAnswer::read(&bytes), Some(answer));
        for len in 0..bytes.len() {
            assert_eq!(JitAnswer::read(&bytes[..len]), None, "{len}");
        }
    }

    #[test]
    fn names_are_safe_to_print() {
        let answer = JitAnswer {
            names: vec![Some("\x1b[31mg".into())],
            ..JitAnswer::default()
        };
        let read = JitAnswer::read(&answer.write()).expect("an answer");
        let name = read.names[0].as_deref().expect("a name");
        assert!(!name.contains('\x1b') && name.contains("[31mg"), "{name}");
    }

    #[test]
    fn names_that_do_not_fit_are_left_out() {
        let answer = JitAnswer {
            names: vec![Some("x".repeat(BYTES_MAX / 4)); 9],
            ..JitAnswer::default()
        };
        let read = JitAnswer::read(&answer.write()).expect("an answer");
        assert!((1..9).contains(&read.names.len()));
        assert_eq!(read.names[0], answer.names[0]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            _ = JitAnswer::read(&bytes);
            _ = JitQuestion::read(&bytes, Vec::new());
        }
    }
}
