//! Encodes a question for the unwind table of a file. The format of tables, and so of answers,
//! belongs to the stack walk, which `probe` implements at both ends.
//!
//! ```text
//! what the table is kept under; the places where the file's debug files may lie
//! ```
//!
//! The files are the file itself, and the root directories that the places are below.

use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};

use super::opened::OpenedFile;
use crate::debug_file::DebugFiles;
use crate::files::{Reply, Work};
use crate::wire::{Taken, put_bytes};
use crate::{Files, Reason};

/// Maximum length of a key, more than tables have.
const KEY_BYTES_MAX: usize = 4 << 10;

/// A question that was received.
#[derive(Debug)]
pub struct TableQuestion {
    /// Key under which the table is stored.
    pub key: String,
    /// The file.
    pub file: File,
    /// Where its debug files may be.
    pub places: DebugFiles,
}

/// Has a parser process make the table of a file. `work` says whether samples wait for it.
pub fn ask(
    work: Work,
    file: File,
    places: &DebugFiles,
    key: &str,
    way: &Files,
) -> Result<Reply, Reason> {
    let mut message = Vec::new();
    put_bytes(&mut message, key.as_bytes());
    let roots = places.write(&mut message);
    let opened = OpenedFile::new(file);
    let files: Vec<_> = [opened.file().as_fd()].into_iter().chain(roots).collect();
    opened.order(way, work, &files, &message)
}

impl TableQuestion {
    /// Decodes a question that [`ask`] has sent; `None` if it is malformed.
    pub fn read(message: &[u8], files: Vec<OwnedFd>, way: &Files) -> Option<TableQuestion> {
        let mut message = Taken(message);
        let key = message.bytes().filter(|key| key.len() <= KEY_BYTES_MAX)?;
        let key = String::from_utf8(key.to_vec()).ok()?;
        let mut files = files.into_iter();
        Some(TableQuestion {
            key,
            file: files.next()?.into(),
            places: DebugFiles::told(&mut message, files.collect(), way)?,
        })
    }
}
