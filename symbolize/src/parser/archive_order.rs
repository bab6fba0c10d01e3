//! Has a parser process read a member of a zip archive: source text of Python.
//!
//! ```text
//! question: maximum size of the member, its name
//! answer:   whether there is one, its bytes
//! ```

use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};

use super::opened::OpenedFile;
use crate::files::{Reply, Work};
use crate::source::Source;
use crate::wire::{Taken, put_u64};
use crate::{Files, Reason, zip};

/// Maximum size of a member, whatever is asked for: it has to fit into a message.
const MEMBER_BYTES_MAX: u64 = 16 << 20;

/// Reads the member with this name, if it has at most `max` bytes; `None` if there is none, or if the
/// file is no archive. If there are parser processes, one of them reads the file.
pub fn ask(file: File, member: &[u8], max: u64, way: &Files) -> Result<Option<Vec<u8>>, Reason> {
    if !way.has_parsers() {
        return read(&file, member, max);
    }
    let mut message = Vec::new();
    put_u64(&mut message, max);
    message.extend(member);
    let opened = OpenedFile::new(file);
    let files = [opened.file().as_fd()];
    let reply = opened.order(way, Work::Archives, &files, &message)?;
    match reply.bytes.split_first() {
        Some((0, [])) => Ok(None),
        Some((1, bytes)) if bytes.len() as u64 <= max => Ok(Some(bytes.to_vec())),
        _ => Err(Reason::Refused),
    }
}

fn read(file: &File, member: &[u8], max: u64) -> Result<Option<Vec<u8>>, Reason> {
    let source = Source::file(file);
    let found = source.and_then(|source| zip::read_member(&source, member, max));
    found.map_err(|error| error.reason())
}

/// Answers a question that [`ask`] has sent, in the parser process.
pub(super) fn answer(message: &[u8], files: Vec<OwnedFd>) -> Result<Reply, Reason> {
    let mut message = Taken(message);
    let max = message.u64().ok_or(Reason::Refused)?;
    let file = File::from(files.into_iter().next().ok_or(Reason::Refused)?);
    let found = read(&file, message.0, max.min(MEMBER_BYTES_MAX))?;
    Ok(Reply {
        bytes: match found {
            None => vec![0],
            Some(bytes) => [&[1], &bytes[..]].concat(),
        },
        file: None,
    })
}
