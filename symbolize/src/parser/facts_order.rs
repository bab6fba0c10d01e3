//! Has a parser process find out what a file offers. The question is where its debug files may lie;
//! the answer is [`FileFacts`].
//!
//! The files are the file itself, and the root directories that the places are below.

use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};

use super::file_facts::FileFacts;
use super::opened::OpenedFile;
use crate::debug_file::DebugFiles;
use crate::files::{Reply, Work};
use crate::wire::Taken;
use crate::{Files, Reason};

/// Finds out what a file offers. If there are parser processes, one of them reads the file.
pub fn ask(file: File, places: &DebugFiles, way: &Files) -> Result<FileFacts, Reason> {
    if !way.has_parsers() {
        return FileFacts::read(&file, places).map_err(|error| error.reason());
    }
    let mut message = Vec::new();
    let roots = places.write(&mut message);
    let opened = OpenedFile::new(file);
    let files: Vec<_> = [opened.file().as_fd()].into_iter().chain(roots).collect();
    let reply = opened.order(way, Work::Facts, &files, &message)?;
    FileFacts::from_bytes(&reply.bytes).ok_or(Reason::Refused)
}

/// Answers a question that [`ask`] has sent, in the parser process.
pub(super) fn answer(message: &[u8], files: Vec<OwnedFd>, way: &Files) -> Result<Reply, Reason> {
    let mut files = files.into_iter();
    let file = File::from(files.next().ok_or(Reason::Refused)?);
    let mut message = Taken(message);
    let places = DebugFiles::told(&mut message, files.collect(), way).ok_or(Reason::Refused)?;
    let facts = FileFacts::read(&file, &places).map_err(|error| error.reason())?;
    Ok(Reply {
        bytes: facts.to_bytes(),
        file: None,
    })
}
