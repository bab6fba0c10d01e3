//! A question about a file, as bytes and open files.
//!
//! ```text
//! what is known of its debug file: one byte; of `UNKNOWN` the places where it may lie
//! offsets: their number, and each
//! ```
//!
//! The files are the file itself, then its debug file, if that is known, or else the root
//! directories that those places are below.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use crate::debug_file::DebugFiles;
use crate::wire::{Taken, put_u64s};
use crate::{FileOffset, Files, Origin};

const UNKNOWN: u8 = u8::MAX;
const NOTHING: u8 = u8::MAX - 1;

/// Offsets of one question: as many names are told in a message.
pub const OFFSETS_MAX: usize = 512;

/// What is known of a file's debug file.
#[derive(Debug)]
pub enum Beside<F = File, D = DebugFiles> {
    /// Nothing yet: where it may lie.
    Unknown(D),
    /// There is none.
    Nothing,
    /// Which it is, and of which kind.
    Found(F, Origin),
}

/// A question, as it has come.
#[derive(Debug)]
pub struct Question {
    pub file: File,
    pub beside: Beside,
    pub offsets: Vec<FileOffset>,
}

/// The bytes of a question, and the files that go with it.
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
    /// `None` if it is none.
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
