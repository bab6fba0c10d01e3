//! The bytes of a table: in memory, or in a file of ours, of which each block
//! of 8 KiB is read and checked when it is first needed.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::format::{HEADER_BYTES, SUM_AT};
use crate::OpenError;
use crate::bytes::u32_in;
use crate::source::read_at;

/// A look-up reads some eight of them, and most of what that costs is memory
/// that the kernel has to find and fill.
pub const BLOCK_BYTES: usize = 8 << 10;

/// 1 GiB of debug information makes a table of some 300 MiB.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// `None` inside if it is not what was written.
type Block = OnceLock<Option<Box<[u8]>>>;

#[derive(Debug)]
pub enum Blocks {
    Memory(Vec<u8>),
    File {
        file: File,
        len: u64,
        blocks: Box<[Block]>,
        /// What goes on in the next blocks, by the block that it starts in. Few
        /// files have any.
        runs: OnceLock<Box<[Block]>>,
        sums: Vec<u8>,
        damaged: AtomicBool,
    },
}

impl Blocks {
    pub fn file(file: File) -> Result<Blocks, OpenError> {
        let what = "symbol table of the cache";
        let metadata = file.metadata();
        let metadata = metadata.map_err(|source| OpenError::Read { what, source })?;
        if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
            return Err(OpenError::Refused(what));
        }
        let len = metadata.len();
        Ok(Blocks::File {
            file,
            len,
            blocks: Box::default(),
            runs: OnceLock::new(),
            sums: Vec::new(),
            damaged: AtomicBool::new(false),
        })
    }

    pub fn header(&self) -> Option<[u8; HEADER_BYTES]> {
        match self {
            Blocks::Memory(bytes) => bytes.first_chunk().copied(),
            Blocks::File { file, .. } => {
                let mut header = [0; HEADER_BYTES];
                file.read_exact_at(&mut header, 0).ok()?;
                Some(header)
            }
        }
    }

    /// Reads the sums behind `end`, and checks them; `None` if they are wrong.
    pub fn read_sums(&mut self, end: u64, expected: u32) -> Option<()> {
        let count = end.div_ceil(BLOCK_BYTES as u64);
        let bytes = count.checked_mul(4)?;
        match self {
            // What is in memory was written by us a moment ago, or is read by
            // a test that wants to see what damage does.
            Blocks::Memory(all) => (end <= all.len() as u64).then_some(()),
            Blocks::File {
                file,
                len,
                blocks,
                sums,
                ..
            } => {
                if end.checked_add(bytes) != Some(*len) {
                    return None;
                }
                let mut read = vec![0; bytes as usize];
                file.read_exact_at(&mut read, end).ok()?;
                if crc32fast::hash(&read) != expected {
                    return None;
                }
                *sums = read;
                *len = end;
                *blocks = (0..count).map(|_| OnceLock::new()).collect();
                Some(())
            }
        }
    }

    #[inline]
    pub fn word(&self, at: u64) -> Option<u32> {
        Some(u32::from_le_bytes(*self.rest(at)?.first_chunk()?))
    }

    /// The bytes from `at` on, at least to the end of the block.
    #[inline]
    pub fn rest(&self, at: u64) -> Option<&[u8]> {
        match self {
            Blocks::Memory(bytes) => bytes.get(usize::try_from(at).ok()?..),
            Blocks::File { blocks, .. } => {
                let index = (at / BLOCK_BYTES as u64) as usize;
                let block = match blocks.get(index)?.get() {
                    Some(block) => block.as_deref()?,
                    None => self.read_block(index)?,
                };
                block.get((at % BLOCK_BYTES as u64) as usize..)
            }
        }
    }

    /// The bytes from `at` on, however many blocks they are in: for the few
    /// that start where a block does.
    #[cold]
    pub fn run(&self, at: u64, len: usize) -> Option<&[u8]> {
        let Blocks::File { blocks, runs, .. } = self else {
            return self.rest(at)?.get(..len);
        };
        at.is_multiple_of(BLOCK_BYTES as u64).then_some(())?;
        let none = || blocks.iter().map(|_| OnceLock::new()).collect();
        let index = (at / BLOCK_BYTES as u64) as usize;
        let read = || {
            let mut bytes = Vec::with_capacity(len);
            while bytes.len() < len {
                let rest = self.rest(at.checked_add(bytes.len() as u64)?)?;
                bytes.extend_from_slice(&rest[..rest.len().min(len - bytes.len())]);
            }
            Some(bytes.into_boxed_slice())
        };
        let run = runs.get_or_init(none).get(index)?.get_or_init(read);
        run.as_deref().filter(|run| run.len() == len)
    }

    #[cold]
    fn read_block(&self, index: usize) -> Option<&[u8]> {
        let Blocks::File {
            file,
            len,
            blocks,
            sums,
            damaged,
            ..
        } = self
        else {
            return None;
        };
        let read = || {
            let start = index as u64 * BLOCK_BYTES as u64;
            let size = (len - start).min(BLOCK_BYTES as u64);
            let mut block = read_at(file, start, size as usize).ok()?;
            // The sums of the header cannot be in a sum of the header.
            if let Some(sums) = block.get_mut(SUM_AT..SUM_AT + 8).filter(|_| index == 0) {
                sums.fill(0);
            }
            let whole = Some(crc32fast::hash(&block)) == u32_in(sums, index * 4);
            whole.then(|| block.into_boxed_slice())
        };
        let block = blocks.get(index)?.get_or_init(read);
        if block.is_none() {
            damaged.store(true, Ordering::Relaxed);
        }
        block.as_deref()
    }

    pub fn is_damaged(&self) -> bool {
        match self {
            Blocks::Memory(_) => false,
            Blocks::File { damaged, .. } => damaged.load(Ordering::Relaxed),
        }
    }

    pub fn heap_bytes(&self) -> usize {
        match self {
            Blocks::Memory(bytes) => bytes.capacity(),
            Blocks::File {
                blocks, runs, sums, ..
            } => {
                let held = |blocks: &[Block]| {
                    let read = blocks.iter().filter_map(|block| block.get()?.as_ref());
                    read.map(|block| block.len()).sum::<usize>() + size_of_val(blocks)
                };
                held(blocks) + runs.get().map_or(0, |runs| held(runs)) + sums.len()
            }
        }
    }
}
