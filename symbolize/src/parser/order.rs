//! Encodes a question about a file: bytes and open files.
//!
//! ```text
//! what is known of its debug file: one byte; of `UNKNOWN` the places where it may lie
//! offsets: their number, and each
//! ```
//!
//! The files are the file itself, then its debug file, if that is known, or else the root
//! directories that the places are below.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use crate::debug_file::DebugFiles;
use crate::wire::{Taken, put_u64s};
use crate::{FileOffset, Files, Origin};

const UNKNOWN: u8 = u8::MAX;
const NOTHING: u8 = u8::MAX - 1;

/// Maximum number of offsets in one question: the number of names that fit into a message.
pub const OFFSETS_MAX: usize = 512;

/// What is known about a file's debug file.
#[derive(Debug)]
pub enum Beside<F = File, D = DebugFiles> {
    /// It was not searched yet; the places where it may be.
    Unknown(D),
    /// There is none.
    Nothing,
    /// The debug file, and its kind.
    Found(F, Origin),
}

/// A question that was received.
#[derive(Debug)]
pub struct Question {
    /// The file itself.
    pub file: File,
    /// Its debug file, if that was already searched.
    pub beside: Beside,
    /// Offsets in the file of the code whose names are requested.
    pub offsets: Vec<FileOffset>,
}

/// Encodes a question; returns the bytes and the files to send along.
pub fn write<'a>(
    file: &'a File,
    beside: &Beside<&'a File, &'a DebugFiles>,
    offsets: &[FileOffset],
) -> (Vec<u8>, Vec<BorrowedFd<'a>>) {
    let (mut out, mut files) = (Vec::new(), vec![file.as_fd()]);
    match beside {
        Beside::Unknown(places) => {
            out.push(UNKNOWN);
            let places: &'a DebugFiles = places;
            files.extend(places.write(&mut out));
        }
        Beside::Nothing => out.push(NOTHING),
        Beside::Found(found, origin) => {
            out.push(*origin as u8);
            let found: &'a File = found;
            files.push(found.as_fd());
        }
    }
    put_u64s(&mut out, offsets.iter().map(|offset| offset.0));
    (out, files)
}

impl Question {
    /// Decodes a question; `None` if it is malformed.
    pub fn read(message: &[u8], files: Vec<OwnedFd>, way: &Files) -> Option<Question> {
        let mut message = Taken(message);
        let mut files = files.into_iter();
        let file = files.next()?.into();
        let beside = match message.u8()? {
            UNKNOWN => Beside::Unknown(DebugFiles::told(&mut message, files.collect(), way)?),
            NOTHING => Beside::Nothing,
            origin => Beside::Found(files.next()?.into(), *Origin::ALL.get(usize::from(origin))?),
        };
        let offsets = message.u64s()?.into_iter().map(FileOffset).collect();
        Some(Question {
            file,
            beside,
            offsets,
        })
    }
}
