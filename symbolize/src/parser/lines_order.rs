//! Encodes questions about the lines of a file, and their answers. An answer may come from a
//! process that a hostile file has taken over, so nothing in it is trusted.
//!
//! ```text
//! question: what is wanted, bytes that may be held, the key of a whole table, whether a separate
//!     file with the debug information goes along; the places where its debug files may lie;
//!     offsets: their number, and each
//! answer to `DebugFile`: whether there is debug information; what identifies the program.
//!     Its file is the separate one that has the debug information, if that is another
//! answer to `IsLacking`: one byte, 1 for yes
//! answer to `Places`: bytes of debug information that are not read;
//!     number of places, and the chain of each
//! answer to `WholeTable`: nothing. Its file is the table
//! ```

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use super::answer::BYTES_MAX;
use super::chain;
use super::names::SourceLine;
use crate::debug_file::DebugFiles;
use crate::wire::{Taken, put_bytes, put_u32, put_u64, put_u64s};
use crate::{FileId, FileOffset, Files};

/// Maximum number of places in one question: each may be in a unit that has to be read.
pub const PLACES_MAX: usize = 32;

/// Maximum length of a key, more than tables have.
const KEY_BYTES_MAX: usize = 4 << 10;

const NO_INFO: u8 = 0;
const GNU: u8 = 1;
const GO: u8 = 2;
const CONTENT: u8 = 3;

/// The kind of question about the lines of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Which file has its debug information?
    DebugFile,
    /// What are the lines of these places?
    Places,
    /// Make the table of all lines.
    WholeTable,
    /// Would a separate debug file add something?
    IsLacking,
}

impl Wanted {
    /// All kinds, in the order of the enum.
    const ALL: [Wanted; 4] = [
        Wanted::DebugFile,
        Wanted::Places,
        Wanted::WholeTable,
        Wanted::IsLacking,
    ];
}

/// A question that was received.
#[derive(Debug)]
pub struct LinesQuestion {
    /// What is requested.
    pub wanted: Wanted,
    /// Maximum memory of debug information.
    pub bytes_max: u64,
    /// Key under which the whole table is stored.
    pub key: Vec<u8>,
    /// The file itself.
    pub file: File,
    /// The file with the debug information, if it is another file and was found.
    pub separate: Option<File>,
    /// Where debug files may be.
    pub places: DebugFiles,
    /// Offsets in the file of the code whose lines are requested.
    pub offsets: Vec<FileOffset>,
}

/// The subject of a question, in addition to the places in the file. Its fields mean the same as
/// those of [`LinesQuestion`].
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    pub file: &'a File,
    pub separate: Option<&'a File>,
    pub places: &'a DebugFiles,
    pub bytes_max: u64,
    pub key: &'a [u8],
}

/// Encodes a question; returns the bytes and the files to send along.
pub fn write<'a>(
    wanted: Wanted,
    subject: Subject<'a>,
    offsets: &[FileOffset],
) -> (Vec<u8>, Vec<BorrowedFd<'a>>) {
    let mut out = vec![wanted as u8];
    put_u64(&mut out, subject.bytes_max);
    put_bytes(&mut out, subject.key);
    out.push(u8::from(subject.separate.is_some()));
    let mut files = vec![subject.file.as_fd()];
    files.extend(subject.separate.map(File::as_fd));
    files.extend(subject.places.write(&mut out));
    put_u64s(&mut out, offsets.iter().map(|offset| offset.0));
    (out, files)
}

impl LinesQuestion {
    /// Decodes a question; `None` if it is malformed.
    pub fn read(message: &[u8], files: Vec<OwnedFd>, way: &Files) -> Option<LinesQuestion> {
        let mut message = Taken(message);
        let wanted = *Wanted::ALL.get(usize::from(message.u8()?))?;
        let bytes_max = message.u64()?;
        let key = message.bytes().filter(|key| key.len() <= KEY_BYTES_MAX)?;
        let has_separate = message.u8()? != 0;
        let mut files = files.into_iter().map(File::from);
        let file = files.next()?;
        let separate = if has_separate {
            Some(files.next()?)
        } else {
            None
        };
        let roots = files.map(OwnedFd::from).collect();
        let places = DebugFiles::told(&mut message, roots, way)?;
        let offsets = message.u64s()?;
        Some(LinesQuestion {
            wanted,
            bytes_max,
            key: key.to_vec(),
            file,
            separate,
            places,
            offsets: offsets.into_iter().map(FileOffset).collect(),
        })
    }
}

/// Encodes the identity of a program with debug information, or that there is none.
pub fn write_program(id: Option<&FileId>) -> Vec<u8> {
    let mut out = Vec::new();
    match id {
        None => out.push(NO_INFO),
        Some(FileId::Gnu(id)) => {
            out.push(GNU);
            put_bytes(&mut out, id.as_bytes());
        }
        Some(FileId::Go(id)) => {
            out.push(GO);
            put_bytes(&mut out, id.as_bytes());
        }
        Some(FileId::Content { hash, len }) => {
            out.push(CONTENT);
            put_u64(&mut out, *hash);
            put_u64(&mut out, *len);
        }
    }
    out
}

/// Decodes the result of [`write_program`]. The outer `Option` is `None` if it is malformed, the
/// inner one if there is no debug information.
pub fn read_program(bytes: &[u8]) -> Option<Option<FileId>> {
    let mut bytes = Taken(bytes);
    Some(match bytes.u8()? {
        NO_INFO => None,
        GNU => Some(FileId::gnu(bytes.bytes()?)),
        GO => Some(FileId::go(bytes.bytes()?)),
        CONTENT => Some(FileId::Content {
            hash: bytes.u64()?,
            len: bytes.u64()?,
        }),
        _ => return None,
    })
}

/// The lines of some places of a file, as many as fit into a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceLines {
    /// Maximum number of bytes of debug information that are still to be read.
    pub unread_bytes: u64,
    /// The functions at each place, innermost first.
    pub chains: Vec<Vec<SourceLine>>,
}

/// Encodes the lines of places from the first on, as many as fit into a message.
pub fn write_lines(
    unread_bytes: usize,
    chains: impl IntoIterator<Item = Vec<SourceLine>>,
) -> Vec<u8> {
    let mut out = Vec::new();
    put_u64(&mut out, unread_bytes as u64);
    let at = out.len();
    put_u32(&mut out, 0);
    let mut count = 0u32;
    for lines in chains {
        chain::write(&mut out, &lines);
        count += 1;
        if out.len() > BYTES_MAX {
            break;
        }
    }
    out[at..at + 4].copy_from_slice(&count.to_le_bytes());
    out
}

/// Decodes the result of [`write_lines`]; `None` if it is malformed.
pub fn read_lines(bytes: &[u8]) -> Option<PlaceLines> {
    let mut bytes = Taken(bytes);
    let unread_bytes = bytes.u64()?;
    let count = bytes.u32()?;
    if count as usize > PLACES_MAX {
        return None;
    }
    Some(PlaceLines {
        unread_bytes,
        chains: (0..count)
            .map(|_| chain::read(&mut bytes))
            .collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(function: &str) -> SourceLine {
        SourceLine {
            function: function.into(),
            file: "/src/a.c".into(),
            line: 7,
        }
    }

    #[test]
    fn answers_arrive_as_they_were_given() {
        let ids = [
            None,
            Some(FileId::gnu(&[7; 20])),
            Some(FileId::go(b"a/b")),
            Some(FileId::Content {
                hash: u64::MAX,
                len: 5,
            }),
        ];
        for id in ids {
            let bytes = write_program(id.as_ref());
            assert_eq!(read_program(&bytes), Some(id.clone()));
            for len in 0..bytes.len() {
                assert_eq!(read_program(&bytes[..len]), None, "{id:?} {len}");
            }
        }
        let chains = vec![
            vec![line("inlined"), line("f")],
            Vec::new(),
            vec![line("g")],
        ];
        let bytes = write_lines(9, chains.clone());
        let unread_bytes = 9;
        assert_eq!(
            read_lines(&bytes),
            Some(PlaceLines {
                unread_bytes,
                chains
            })
        );
        for len in 0..bytes.len() {
            assert_eq!(read_lines(&bytes[..len]), None, "{len}");
        }
    }

    #[test]
    fn lines_of_a_process_that_is_a_strangers_are_safe_to_print() {
        let bytes = write_lines(0, [vec![line("\u{1b}]0;title\u{7}")]]);
        let read = read_lines(&bytes).expect("an answer");
        assert_eq!(read.chains, [[line("\\u{1b}]0;title\\u{7}")]]);
    }

    #[test]
    fn what_does_not_fit_into_a_message_is_left_out() {
        let long = SourceLine {
            function: "x".repeat(BYTES_MAX / 100),
            ..line("")
        };
        let bytes = write_lines(0, vec![vec![long; 100]; PLACES_MAX]);
        assert!(bytes.len() < 2 * BYTES_MAX);
        let read = read_lines(&bytes).expect("an answer");
        assert!((1..PLACES_MAX).contains(&read.chains.len()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            _ = (read_program(&bytes), read_lines(&bytes));
            _ = LinesQuestion::read(&bytes, Vec::new(), &Files::default());
        }
    }
}
