//! Unpacks untrusted compressed data into a file in memory. A process without privileges does it
//! for all others.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, SeekFrom, Write as _};
use std::os::fd::BorrowedFd;

use lzma_rust2::XzReader;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::Reason;
use crate::inflate::XZ_KIB_MAX;
use crate::source::read_piece;

/// Maximum size after unpacking: a symbol table of that size has 2.8 million symbols.
pub const UNPACKED_BYTES_MAX: u64 = 64 << 20;

/// Number of bytes read and written at once.
const PIECE: usize = 64 << 10;

/// A range of a file, read in parts.
struct Range<'a> {
    file: BorrowedFd<'a>,
    at: u64,
    end: u64,
}

/// Unpacks the xz stream in a range of a file.
pub fn xz(file: BorrowedFd<'_>, offset: u64, len: u64) -> Result<File, Reason> {
    let end = offset.checked_add(len).ok_or(Reason::Damaged)?;
    let packed = BufReader::with_capacity(
        PIECE,
        Range {
            file,
            at: offset,
            end,
        },
    );
    let unpacked = XzReader::new_mem_limit(packed, false, XZ_KIB_MAX);
    let memory = memfd_create("proftop-unpacked", MemfdFlags::CLOEXEC);
    let memory = File::from(memory.map_err(|_| Reason::Refused)?);
    let mut to = BufWriter::with_capacity(PIECE, memory);
    let bytes = io::copy(&mut unpacked.take(UNPACKED_BYTES_MAX + 1), &mut to);
    if bytes.map_err(|_| Reason::Damaged)? > UNPACKED_BYTES_MAX {
        return Err(Reason::Refused);
    }
    to.flush().map_err(|_| Reason::Refused)?;
    let mut memory = to.into_inner().map_err(|_| Reason::Refused)?;
    memory
        .seek(SeekFrom::Start(0))
        .map_err(|_| Reason::Refused)?;
    Ok(memory)
}

impl Read for Range<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let room = buffer.len().min(left);
        let read = read_piece(self.file, &mut buffer[..room], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
