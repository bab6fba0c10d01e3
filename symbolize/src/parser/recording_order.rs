//! Has a process without rights read a recording. The caller defines the encoding of question and
//! answer; this crate does not know recordings.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};

use super::opened::OpenedFile;
use crate::files::{Reply, Work};
use crate::{Files, Reason};

/// Has a process read a recording. It gets the files in `others` as well, at most four.
pub fn ask<'f>(
    recording: File,
    others: impl Iterator<Item = BorrowedFd<'f>>,
    message: &[u8],
    way: &Files,
) -> Result<Reply, Reason> {
    let others: Vec<_> = others.collect();
    let opened = OpenedFile::new(recording);
    let files = [&[opened.file().as_fd()], &others[..]].concat();
    opened.order(way, Work::Recordings, &files, message)
}
