//! Encodes questions about code that a process made at run time, and their answers, which are not
//! trusted.
//!
//! ```text
//! question: a byte of flags, instruction set, name of the function, address,
//!     bytes of code that are wanted; address and bytes of the process's memory, if it was asked for
//! answer: a byte of flags; `UNKNOWN`; or `REPLACED`; or `IN_MEMORY`, first address, number of
//!     bytes; or `CODE` and the function as in an answer about a file
//! ```
//!
//! The files of a question are the map and the dump, as far as they exist.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use super::code_answer::{read_code, write_code};
use crate::code::assembly::Mode;
use crate::code::{RunTimeFound, RunTimeQuestion};
use crate::wire::{Taken, put_bytes, put_u64};

const HAS_MAP: u8 = 1;
const HAS_DUMP: u8 = 2;
const HAS_MEMORY: u8 = 4;

const MODES: [Mode; 3] = [Mode::Bits32, Mode::Bits64, Mode::Aarch64];

const IS_DUMP: u8 = 1;

const UNKNOWN: u8 = 0;
const REPLACED: u8 = 1;
const IN_MEMORY: u8 = 2;
const CODE: u8 = 3;

/// A question that was received.
#[derive(Debug)]
pub struct RunTimeOrder {
    /// The code map (`perf-PID.map`), if there is one.
    pub map: Option<File>,
    /// The dump (`jit-PID.dump`), if there is one.
    pub dump: Option<File>,
    mode: Mode,
    function: String,
    address: u64,
    bytes_max: u64,
    memory: Option<(u64, Vec<u8>)>,
}

/// Appends a question to a message; returns the files to send along.
pub fn write<'a>(
    out: &mut Vec<u8>,
    [map, dump]: [Option<&'a File>; 2],
    question: &RunTimeQuestion<'_>,
) -> Vec<BorrowedFd<'a>> {
    let flags = [
        (map.is_some(), HAS_MAP),
        (dump.is_some(), HAS_DUMP),
        (question.memory.is_some(), HAS_MEMORY),
    ];
    let set = flags.into_iter().filter(|(is_set, _)| *is_set);
    out.push(set.fold(0, |all, (_, flag)| all | flag));
    let mode = MODES.iter().position(|mode| *mode == question.mode);
    out.push(mode.unwrap_or_default() as u8);
    put_bytes(out, question.function.as_bytes());
    put_u64(out, question.address);
    put_u64(out, question.bytes_max);
    if let Some((start, bytes)) = question.memory {
        put_u64(out, start);
        put_bytes(out, bytes);
    }
    let files = [map, dump].into_iter().flatten();
    files.map(|file| file.as_fd()).collect()
}

impl RunTimeOrder {
    /// The question for the code of the function.
    pub fn question(&self) -> RunTimeQuestion<'_> {
        let memory = self.memory.as_ref();
        RunTimeQuestion {
            function: &self.function,
            address: self.address,
            mode: self.mode,
            bytes_max: self.bytes_max,
            memory: memory.map(|(start, bytes)| (*start, bytes.as_slice())),
        }
    }

    /// Decodes a question; `None` if it is malformed.
    pub fn read(message: &[u8], files: Vec<OwnedFd>) -> Option<RunTimeOrder> {
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
        Some(RunTimeOrder {
            map,
            dump,
            mode: *MODES.get(usize::from(message.u8()?))?,
            function: String::from_utf8(message.bytes()?.to_vec()).ok()?,
            address: message.u64()?,
            bytes_max: message.u64()?,
            memory: if has(HAS_MEMORY) {
                Some((message.u64()?, message.bytes()?.to_vec()))
            } else {
                None
            },
        })
    }
}

/// The code of a function, and whether the dump is valid.
#[derive(Debug, PartialEq, Eq)]
pub struct RunTimeAnswer {
    pub is_dump: bool,
    pub found: RunTimeFound,
}

impl RunTimeAnswer {
    /// Encodes an answer. Instructions that do not fit into a message are left out.
    pub fn write(&self) -> Vec<u8> {
        let mut out = vec![if self.is_dump { IS_DUMP } else { 0 }];
        match &self.found {
            RunTimeFound::Unknown => out.push(UNKNOWN),
            RunTimeFound::Replaced => out.push(REPLACED),
            RunTimeFound::InMemory { start, len } => {
                out.push(IN_MEMORY);
                put_u64(&mut out, *start);
                put_u64(&mut out, *len);
            }
            RunTimeFound::Function(code) => {
                out.push(CODE);
                write_code(&mut out, code);
            }
        }
        out
    }

    /// Decodes an answer to a question for at most `bytes_max` bytes of code. `None` if it is
    /// malformed, or has or wants more than was asked for.
    pub fn read(bytes: &[u8], bytes_max: u64) -> Option<RunTimeAnswer> {
        let mut bytes = Taken(bytes);
        Some(RunTimeAnswer {
            is_dump: bytes.u8()? & IS_DUMP != 0,
            found: match bytes.u8()? {
                UNKNOWN => RunTimeFound::Unknown,
                REPLACED => RunTimeFound::Replaced,
                IN_MEMORY => RunTimeFound::InMemory {
                    start: bytes.u64()?,
                    len: bytes.u64().filter(|len| *len <= bytes_max)?,
                },
                CODE => RunTimeFound::Function(read_code(&mut bytes, bytes_max)?),
                _ => return None,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::FunctionCode;
    use proptest::prelude::*;

    #[test]
    fn answers_arrive_as_they_were_given() {
        let function = FunctionCode {
            range: 7..7,
            cut: 9,
            instructions: Vec::new(),
            files: Vec::new(),
        };
        let start = u64::MAX;
        for found in [
            RunTimeFound::Unknown,
            RunTimeFound::Replaced,
            RunTimeFound::InMemory { start, len: 100 },
            RunTimeFound::Function(function),
        ] {
            let is_dump = found == RunTimeFound::Replaced;
            let answer = RunTimeAnswer { is_dump, found };
            let bytes = answer.write();
            for len in 0..bytes.len() {
                assert_eq!(RunTimeAnswer::read(&bytes[..len], 100), None, "{len}");
            }
            assert_eq!(RunTimeAnswer::read(&bytes, 100), Some(answer));
        }
        let found = RunTimeFound::InMemory { start, len: 100 };
        let bytes = RunTimeAnswer {
            is_dump: false,
            found,
        };
        assert_eq!(RunTimeAnswer::read(&bytes.write(), 99), None);
    }

    #[test]
    fn questions_arrive_as_they_were_asked() {
        let file = tempfile::tempfile().expect("a file");
        let question = RunTimeQuestion {
            function: "count",
            address: 0x1000,
            mode: Mode::Aarch64,
            bytes_max: 64,
            memory: Some((0xff0, b"bytes")),
        };
        let mut message = Vec::new();
        let files = write(&mut message, [None, Some(&file)], &question);
        let files = files.iter().map(|file| file.try_clone_to_owned());
        let files = files.collect::<Result<_, _>>().expect("descriptors");
        let order = RunTimeOrder::read(&message, files).expect("a question");
        assert!(order.map.is_none() && order.dump.is_some());
        assert_eq!(format!("{:?}", order.question()), format!("{question:?}"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            _ = RunTimeAnswer::read(&bytes, 1 << 16);
            _ = RunTimeOrder::read(&bytes, Vec::new());
        }
    }
}
