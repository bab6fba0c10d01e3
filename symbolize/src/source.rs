//! The bytes of an object: from a file, read piece by piece, or from memory.
//!
//! Files are never mapped into memory: the owner of a file can truncate it, and an access to a
//! mapped page beyond the end raises SIGBUS.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::io::{Errno, pread};

use crate::OpenError;
use crate::revision::Revision;
use crate::writers::Writers;

/// Maximum size of a file. The largest known executables with debug information are below 8 GiB.
pub const FILE_BYTES_MAX: u64 = 16 << 30;

/// The bytes of an object.
#[derive(Debug)]
pub enum Source {
    /// A regular file, read on demand.
    File {
        /// The file.
        file: Arc<File>,
        /// Its length when it was opened.
        len: u64,
        /// Whether it is in memory (memfd), and no other process can change it.
        is_unpacked: bool,
    },
    /// Bytes in memory.
    Memory(Box<[u8]>),
}

impl Source {
    /// Opens the bytes of a file, with a descriptor of its own.
    pub fn file(file: &File) -> Result<Source, OpenError> {
        let read = |source| OpenError::Read {
            what: "the file's size",
            source,
        };
        let metadata = file.metadata().map_err(read)?;
        if !metadata.is_file() {
            return Err(OpenError::Refused("not a regular file"));
        }
        if metadata.len() > FILE_BYTES_MAX {
            return Err(OpenError::Refused("the file is too large"));
        }
        Ok(Source::File {
            file: Arc::new(file.try_clone().map_err(read)?),
            len: metadata.len(),
            is_unpacked: false,
        })
    }

    /// Uses a file in memory into which data was unpacked.
    pub(crate) fn unpacked(file: File) -> Result<Source, OpenError> {
        match Source::file(&file)? {
            Source::File { file, len, .. } => Ok(Source::File {
                file,
                len,
                is_unpacked: true,
            }),
            memory @ Source::Memory(_) => Ok(memory),
        }
    }

    /// Duplicates the descriptor of the file; `None` if the bytes are in memory.
    pub(crate) fn descriptor(&self) -> Option<OwnedFd> {
        match self {
            Source::File { file, .. } => file.as_fd().try_clone_to_owned().ok(),
            Source::Memory(_) => None,
        }
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Source::File { len, .. } => *len,
            Source::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Returns what distinguishes these contents from others on this machine; `None` if they are
    /// not in a file, or were changed a moment ago.
    pub fn revision(&self) -> Option<Revision> {
        match self {
            Source::File { file, .. } => Revision::of(file),
            Source::Memory(_) => None,
        }
    }

    /// Returns the current revision of the file, even if it may change again unnoticed; `None` if
    /// the bytes are not in a file.
    pub fn revision_now(&self) -> Option<Revision> {
        match self {
            Source::File { file, .. } => Revision::now(file).ok(),
            Source::Memory(_) => None,
        }
    }

    /// Who can change the file; `None` if the bytes are in memory, so that nobody can.
    pub fn writers(&self) -> Option<Writers> {
        match self {
            Source::File { file, .. } => Some(Writers::of(file).unwrap_or(Writers::UNKNOWN)),
            Source::Memory(_) => None,
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads `len` bytes at `offset`. A range outside of the file is an error before anything is
    /// allocated; `what` names the range in the error.
    pub fn read(&self, offset: u64, len: u64, what: &'static str) -> Result<Vec<u8>, OpenError> {
        let end = offset.checked_add(len);
        if end.is_none_or(|end| end > self.len()) {
            return Err(OpenError::Damaged(what));
        }
        let size = usize::try_from(len).map_err(|_| OpenError::Refused(what))?;
        match self {
            Source::File { file, .. } => {
                read_at(file, offset, size).map_err(|source| OpenError::Read { what, source })
            }
            Source::Memory(bytes) => {
                // In range: checked against the length above.
                let start = offset as usize;
                Ok(bytes[start..start + size].to_vec())
            }
        }
    }

    /// Reads into `buffer` as much as there is at `offset`; returns the number of bytes.
    pub fn read_some(&self, offset: u64, buffer: &mut [u8]) -> usize {
        match self {
            Source::File { file, .. } => {
                let mut have = 0;
                while have < buffer.len() {
                    match pread(
                        file,
                        &mut buffer[have..],
                        offset.saturating_add(have as u64),
                    ) {
                        Ok(0) => break,
                        Ok(bytes) => have += bytes,
                        Err(Errno::INTR) => {}
                        Err(_) => break,
                    }
                }
                have
            }
            Source::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let rest = bytes.get(start..).unwrap_or_default();
                let len = rest.len().min(buffer.len());
                buffer[..len].copy_from_slice(&rest[..len]);
                len
            }
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Source::File {
                len, is_unpacked, ..
            } => usize::from(*is_unpacked) * *len as usize,
            Source::Memory(bytes) => bytes.len(),
        }
    }
}

/// Reads with one system call; returns 0 at the end.
pub(crate) fn read_piece(file: impl AsFd, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match pread(&file, &mut *buffer, offset) {
            Err(Errno::INTR) => {}
            read => return Ok(read?),
        }
    }
}

/// Reads into memory that is not zeroed first, which would cost as much again.
pub(crate) fn read_at(file: &File, offset: u64, size: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(size);
    while bytes.len() < size {
        let at = offset + bytes.len() as u64;
        match pread(file, spare_capacity(&mut bytes), at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // The allocator may have returned, and the kernel filled, more.
    bytes.truncate(size);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_outside_of_the_bytes_fail_before_allocating() {
        let source = Source::Memory(Box::from(*b"0123456789"));
        assert_eq!(source.read(8, 2, "tail").unwrap(), b"89");
        for (offset, len) in [(8, 3), (11, 0), (0, u64::MAX), (u64::MAX, u64::MAX)] {
            let error = source.read(offset, len, "tail").unwrap_err();
            assert!(matches!(error, OpenError::Damaged("tail")), "{error}");
        }
    }

    #[test]
    fn only_regular_files() {
        let directory = File::open("/").unwrap();
        assert!(matches!(
            Source::file(&directory),
            Err(OpenError::Refused(_))
        ));
    }
}
