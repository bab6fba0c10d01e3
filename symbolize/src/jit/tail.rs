//! A file that another program appends to, and rewrites now and then.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::written::is_same;

/// Number of bytes that are compared before reading continues. Text with addresses does not match
/// by chance.
const MARK_BYTES: usize = 64;

/// Reads the new part of a growing file.
#[derive(Debug)]
pub struct Tail {
    file: File,
    /// Offset up to which the file was read.
    done: u64,
    /// The last bytes before `done`.
    mark: Vec<u8>,
}

/// How the file has changed since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing was appended.
    Same,
    /// There is more to read.
    Grown,
    /// The file is shorter, or the text before our position has changed: everything that was read
    /// is void.
    Anew,
}

impl Tail {
    /// Reads the file from its start.
    pub fn new(file: File) -> Tail {
        Tail {
            file,
            done: 0,
            mark: Vec::new(),
        }
    }

    /// Whether `other` is the same file, by device and inode.
    pub fn is(&self, other: &File) -> bool {
        is_same(&self.file, other)
    }

    /// Returns the same file, to be read from its start.
    pub fn restarted(&self) -> io::Result<Tail> {
        Ok(Tail::new(self.file.try_clone()?))
    }

    /// Checks the file; after [`Change::Anew`] it is read from its start.
    pub fn look(&mut self) -> io::Result<Change> {
        let len = self.file.metadata()?.len();
        let mut mark = [0; MARK_BYTES];
        let mark = &mut mark[..self.mark.len()];
        let begin = self.done - mark.len() as u64;
        if len < self.done || self.file.read_exact_at(mark, begin).is_err() || *mark != *self.mark {
            self.done = 0;
            self.mark.clear();
            return Ok(Change::Anew);
        }
        Ok(if len > self.done {
            Change::Grown
        } else {
            Change::Same
        })
    }

    /// Reads into `buffer` from the current position, as far as it has room.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_at(buffer, self.done)
    }

    /// Reads into `buffer` from an offset, as far as the file goes; returns the number of bytes.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut have = 0;
        while have < buffer.len() {
            match self.file.read_at(&mut buffer[have..], offset + have as u64) {
                Ok(0) => break,
                Ok(bytes) => have += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(have)
    }

    /// Moves the position behind `bytes`, which were read last.
    pub fn consume(&mut self, bytes: &[u8]) {
        self.done += bytes.len() as u64;
        let tail = &bytes[bytes.len().saturating_sub(MARK_BYTES)..];
        self.mark.extend_from_slice(tail);
        let surplus = self.mark.len().saturating_sub(MARK_BYTES);
        self.mark.drain(..surplus);
    }

    /// Moves the position `bytes` further without reading them.
    pub fn skip(&mut self, bytes: u64) {
        self.done += bytes;
        self.mark.clear();
    }

    /// Offset up to which the file was read.
    pub fn position(&self) -> u64 {
        self.done
    }

    /// Returns the current length of the file in bytes.
    pub fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}
