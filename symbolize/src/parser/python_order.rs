//! Has a parser process find out what a file has of Python. The question is the name of the file;
//! the answer is a [`PythonFile`].

use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};

use super::opened::OpenedFile;
use crate::files::{Reply, Work};
use crate::python::PythonFile;
use crate::{Files, Reason};

/// Maximum length of the name of a file (`NAME_MAX` of Linux).
const NAME_BYTES_MAX: usize = 255;

/// Finds out what a file of this name has of Python. If there are parser processes, one of them
/// reads the file.
pub fn ask(file: File, file_name: &[u8], way: &Files) -> Result<PythonFile, Reason> {
    if !way.has_parsers() {
        return PythonFile::read(&file, file_name).map_err(|error| error.reason());
    }
    let opened = OpenedFile::new(file);
    let files = [opened.file().as_fd()];
    let reply = opened.order(way, Work::Python, &files, file_name)?;
    PythonFile::from_bytes(&reply.bytes).ok_or(Reason::Refused)
}

/// Answers a question that [`ask`] has sent, in the parser process.
pub fn answer(message: &[u8], files: Vec<OwnedFd>) -> Result<Reply, Reason> {
    let file = files.into_iter().next().ok_or(Reason::Refused)?;
    if message.len() > NAME_BYTES_MAX {
        return Err(Reason::Refused);
    }
    let found = PythonFile::read(&file.into(), message).map_err(|error| error.reason())?;
    Ok(Reply {
        bytes: found.to_bytes(),
        file: None,
    })
}
