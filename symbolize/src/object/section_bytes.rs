//! A section of which parts are read on demand.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// The bytes of a section: in the file, unless they had to be inflated.
#[derive(Debug)]
pub struct SectionBytes(Bytes);

#[derive(Debug)]
enum Bytes {
    Memory(Vec<u8>),
    File {
        file: Arc<File>,
        offset: u64,
        len: usize,
        /// Time of the last write to the file, when it was opened.
        modified: Option<SystemTime>,
        /// Whether a part could not be read.
        failed: AtomicBool,
    },
}

impl SectionBytes {
    pub(crate) fn of_file(file: Arc<File>, offset: u64, len: usize) -> SectionBytes {
        SectionBytes(Bytes::File {
            modified: modified(&file),
            file,
            offset,
            len,
            failed: AtomicBool::new(false),
        })
    }

    /// Bytes that are in memory already.
    pub fn in_memory(bytes: Vec<u8>) -> SectionBytes {
        SectionBytes(Bytes::Memory(bytes))
    }

    /// Number of bytes.
    pub fn size(&self) -> usize {
        match &self.0 {
            Bytes::Memory(bytes) => bytes.len(),
            Bytes::File { len, .. } => *len,
        }
    }

    /// Whether all of it is in memory.
    pub fn is_held(&self) -> bool {
        matches!(&self.0, Bytes::Memory(_))
    }

    /// Bytes of heap in use; none if they stay in the file.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Bytes::Memory(bytes) => bytes.len(),
            Bytes::File { .. } => 0,
        }
    }

    /// Returns a part of the section, read into `room` if it is not in memory. `room` can be
    /// reused, so it grows only as far as needed.
    pub fn part<'p>(&'p self, range: Range<usize>, room: &'p mut Vec<u8>) -> Option<&'p [u8]> {
        match &self.0 {
            Bytes::Memory(bytes) => bytes.get(range),
            Bytes::File {
                file,
                offset,
                len,
                failed,
                ..
            } => {
                let size = range.end.checked_sub(range.start)?;
                (range.end <= *len).then_some(())?;
                if room.len() < size {
                    room.resize(size, 0);
                }
                let read = file.read_exact_at(&mut room[..size], offset + range.start as u64);
                failed.fetch_or(read.is_err(), Ordering::Relaxed);
                read.ok()?;
                Some(&room[..size])
            }
        }
    }

    /// Copies a part of the section to `out`, replacing its contents; leaves it empty if the part
    /// could not be read.
    pub fn copy_part(&self, range: Range<usize>, out: &mut Vec<u8>) -> Option<()> {
        match &self.0 {
            Bytes::Memory(bytes) => {
                out.clear();
                out.extend_from_slice(bytes.get(range)?);
            }
            Bytes::File { .. } => {
                let size = range.end.checked_sub(range.start)?;
                let is_read = self.part(range, out).is_some();
                out.truncate(if is_read { size } else { 0 });
                is_read.then_some(())?;
            }
        }
        Some(())
    }

    /// Whether the parts may not match: one could not be read, or the file was written to since it
    /// was opened.
    pub fn has_failed(&self) -> bool {
        match &self.0 {
            Bytes::Memory(_) => false,
            Bytes::File {
                file,
                failed,
                modified: before,
                ..
            } => failed.load(Ordering::Relaxed) || modified(file) != *before,
        }
    }
}

fn modified(file: &File) -> Option<SystemTime> {
    file.metadata().ok()?.modified().ok()
}
