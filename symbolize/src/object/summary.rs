//! What the headers and notes of a file tell: all that has to be known of a file that was just
//! seen mapped. Understanding the rest of it can wait.
//!
//! The process that opens a file reads this as well, and sends it to the one that asked:
//!
//! ```text
//! answer: 0, and the summary; or 1, and the reason why there is none
//! summary: which of the optional parts it has; machine; bytes of unwind information;
//!     GNU build-id, build-id of Go
//! ```
//!
//! A hostile file may have taken over the process that answers, so nothing in the answer is
//! trusted.

use std::fs::File;

use super::{Object, exports};
use crate::file_id::FileId;
use crate::source::Source;
use crate::wire::{Taken, put_bytes, put_u32, put_u64};
use crate::{OpenError, Reason};

pub use super::build_id::BYTES_MAX as BUILD_ID_BYTES_MAX;

/// Symbol of the state of a Python interpreter, which it exports for extensions.
pub const PYTHON_STATE: &[u8] = b"_PyRuntime";

/// The section that has this state, from CPython 3.10 on.
const PYTHON_STATE_SECTION: &[u8] = b".PyRuntime";

/// The section in which asyncio describes its structures for debuggers, from CPython 3.14 on.
pub const ASYNCIO_SECTION: &[u8] = b".AsyncioDebug";

/// The sections that unwind tables are made of.
const UNWIND_SECTIONS: [&[u8]; 3] = [b".eh_frame", b".debug_frame", b".gopclntab"];

const SUMMARY: u8 = 0;
const NO_SUMMARY: u8 = 1;

/// Set in an encoded summary for each part that the file has.
const HAS_PYTHON_STATE: u8 = 1;
const HAS_ASYNCIO: u8 = 2;

/// What the headers and notes of an ELF file tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The machine that its code is for (`e_machine`).
    pub machine: u16,
    /// The GNU build-id, as the linker wrote it, 256 bytes at most; `None` if it has none.
    pub build_id: Option<Vec<u8>>,
    /// The build-id of Go's linker, 256 bytes at most; `None` if it has none, or a GNU build-id.
    pub go_build_id: Option<Vec<u8>>,
    /// Size of the unwind information in the file itself, in bytes.
    pub unwind_bytes: u64,
    /// Whether it has the state of a Python interpreter.
    pub has_python_state: bool,
    /// Whether it describes asyncio's structures.
    pub has_asyncio: bool,
}

impl Summary {
    /// Reads the headers and notes of a file, and a few bytes of its dynamic symbols.
    pub fn read(file: &File) -> Result<Summary, OpenError> {
        Object::read(file).map(|object| Summary::of(&object))
    }

    /// Summarizes a file whose headers were read.
    pub fn of(object: &Object) -> Summary {
        let build_id = object.build_id();
        let go_build_id = match build_id {
            Some(_) => None,
            None => object.go_build_id(),
        };
        let unwind = UNWIND_SECTIONS.map(|name| {
            let section = object.section_by_name(name);
            section.map_or(0, |section| section.size)
        });
        let add = |sum: u64, size: u64| sum.saturating_add(size);
        Summary {
            machine: object.machine(),
            build_id,
            go_build_id,
            unwind_bytes: unwind.into_iter().fold(0, add),
            has_python_state: object.section_by_name(PYTHON_STATE_SECTION).is_some()
                || exports(object, PYTHON_STATE),
            has_asyncio: object.section_by_name(ASYNCIO_SECTION).is_some(),
        }
    }

    /// The identity of the contents of the file, whose bytes are read if it has no build-id.
    pub fn file_id(&self, source: &Source) -> Result<FileId, OpenError> {
        match (&self.build_id, &self.go_build_id) {
            (Some(id), _) => Ok(FileId::gnu(id)),
            (None, Some(id)) => Ok(FileId::go(id)),
            (None, None) => FileId::of_content(source),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let parts = [
            (self.has_python_state, HAS_PYTHON_STATE),
            (self.has_asyncio, HAS_ASYNCIO),
        ];
        let has = parts.iter().filter(|(has, _)| *has);
        out.push(has.fold(0, |all, (_, part)| all | part));
        put_u32(out, self.machine.into());
        put_u64(out, self.unwind_bytes);
        put_bytes(out, self.build_id.as_deref().unwrap_or_default());
        put_bytes(out, self.go_build_id.as_deref().unwrap_or_default());
    }

    fn take(bytes: &mut Taken<'_>) -> Option<Summary> {
        let parts = bytes.u8()?;
        if parts & !(HAS_PYTHON_STATE | HAS_ASYNCIO) != 0 {
            return None;
        }
        let summary = Summary {
            has_python_state: parts & HAS_PYTHON_STATE != 0,
            has_asyncio: parts & HAS_ASYNCIO != 0,
            machine: bytes.u32()?.try_into().ok()?,
            unwind_bytes: bytes.u64()?,
            build_id: take_id(bytes)?,
            go_build_id: take_id(bytes)?,
        };
        let has_both = summary.build_id.is_some() && summary.go_build_id.is_some();
        (!has_both).then_some(summary)
    }
}

/// Takes a build-id; the inner `Option` is `None` if there is none, the outer one if it is
/// malformed.
fn take_id(bytes: &mut Taken<'_>) -> Option<Option<Vec<u8>>> {
    let id = bytes.bytes()?;
    let is_empty = id.is_empty();
    (id.len() <= BUILD_ID_BYTES_MAX).then(|| (!is_empty).then(|| id.to_vec()))
}

/// Encodes what was understood of a file, or why nothing was.
pub fn write_answer(answer: &Result<Summary, Reason>) -> Vec<u8> {
    match answer {
        Ok(summary) => {
            let mut out = vec![SUMMARY];
            summary.write(&mut out);
            out
        }
        Err(reason) => vec![NO_SUMMARY, *reason as u8],
    }
}

/// Decodes the result of [`write_answer`]; `None` if it is malformed.
pub fn read_answer(bytes: &[u8]) -> Option<Result<Summary, Reason>> {
    let mut bytes = Taken(bytes);
    let answer = match bytes.u8()? {
        SUMMARY => Ok(Summary::take(&mut bytes)?),
        NO_SUMMARY => Err(*Reason::ALL.get(usize::from(bytes.u8()?))?),
        _ => return None,
    };
    bytes.0.is_empty().then_some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn summary() -> Summary {
        Summary {
            machine: 62,
            build_id: Some(vec![7; 20]),
            go_build_id: None,
            unwind_bytes: u64::MAX,
            has_python_state: true,
            has_asyncio: false,
        }
    }

    #[test]
    fn answers_arrive_as_they_were_given() {
        let go = Summary {
            build_id: None,
            go_build_id: Some(b"a/b".to_vec()),
            has_python_state: false,
            has_asyncio: true,
            ..summary()
        };
        let neither = Summary {
            go_build_id: None,
            machine: u16::MAX,
            ..go.clone()
        };
        let longest = Summary {
            build_id: Some(vec![0; BUILD_ID_BYTES_MAX]),
            ..summary()
        };
        let summaries = [summary(), go, neither, longest].map(Ok);
        for answer in summaries.into_iter().chain(Reason::ALL.map(Err)) {
            let bytes = write_answer(&answer);
            assert_eq!(read_answer(&bytes), Some(answer.clone()));
            for len in 0..bytes.len() {
                assert_eq!(read_answer(&bytes[..len]), None, "{answer:?} {len}");
            }
            assert_eq!(read_answer(&[&bytes[..], &[0]].concat()), None);
        }
    }

    #[test]
    fn what_no_file_can_have_is_no_answer() {
        let both = Summary {
            go_build_id: Some(b"a/b".to_vec()),
            ..summary()
        };
        let too_long = Summary {
            build_id: Some(vec![0; BUILD_ID_BYTES_MAX + 1]),
            ..summary()
        };
        for impossible in [both, too_long] {
            assert_eq!(read_answer(&write_answer(&Ok(impossible))), None);
        }
        let mut bytes = write_answer(&Ok(summary()));
        // A length of 4 GB, with less behind it.
        let at = bytes.len() - 28;
        bytes[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(read_answer(&bytes), None);
        assert_eq!(read_answer(&[NO_SUMMARY, u8::MAX]), None);
    }

    proptest! {
        #[test]
        fn damage_makes_another_answer_or_none(
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            len in 0..100usize,
        ) {
            let mut bytes = write_answer(&Ok(summary()));
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes.truncate(len);
            // Whatever is read is encoded in one way only.
            if let Some(answer) = read_answer(&bytes) {
                prop_assert_eq!(write_answer(&answer), bytes);
            }
        }

        #[test]
        fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(answer) = read_answer(&bytes) {
                prop_assert_eq!(write_answer(&answer), bytes);
            }
        }
    }
}
