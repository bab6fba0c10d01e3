//! The bytes of a table: in memory, or in a cache file, of which each block is read and verified on
//! first use.

use crate::crc::crc32;
use std::fs::File;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::OpenError;
use crate::bytes::u32_in;
use crate::source::read_at;

/// Block size, a page. A look-up reads about three blocks, and most of the cost is memory that the
/// kernel has to find and fill.
pub const BLOCK_BYTES: usize = 4 << 10;

/// Maximum size of a file. 1 GiB of debug information makes a table of some 300 MiB.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// The bytes of a table.
#[derive(Debug)]
pub enum Blocks {
    /// All bytes in memory.
    Memory(Vec<u8>),
    /// A cache file.
    File {
        file: File,
        /// Number of all bytes at first; after [`Blocks::set_sums`] of those that are in blocks.
        len: u64,
        blocks: Slots,
        /// Texts that continue in further blocks, by their first block. Few files have any.
        runs: OnceLock<Slots>,
        sums: Vec<u8>,
        damaged: AtomicBool,
    },
}

impl Blocks {
    /// Prepares a cache file, of which nothing is read yet. Fails if it is not a regular file, or
    /// larger than 4 GiB.
    pub fn file(file: File) -> Result<Blocks, OpenError> {
        let what = "symbol table of the cache";
        let metadata = file
            .metadata()
            .map_err(|source| OpenError::Read { what, source })?;
        if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
            return Err(OpenError::Refused(what));
        }
        let len = metadata.len();
        // The owner of a file may read it without updating its access time, which saves a twentieth
        // of the time of reading a block.
        if let Ok(flags) = fcntl_getfl(&file) {
            _ = fcntl_setfl(&file, flags | OFlags::NOATIME);
        }
        Ok(Blocks::File {
            file,
            len,
            blocks: Slots::default(),
            runs: OnceLock::new(),
            sums: Vec::new(),
            damaged: AtomicBool::new(false),
        })
    }

    /// Number of all bytes at first; for a cache file, after [`Blocks::set_sums`], of those in
    /// blocks.
    pub fn len(&self) -> u64 {
        match self {
            Blocks::Memory(bytes) => bytes.len() as u64,
            Blocks::File { len, .. } => *len,
        }
    }

    /// The cache file; `None` if all bytes are in memory.
    pub fn as_file(&self) -> Option<&File> {
        match self {
            Blocks::Memory(_) => None,
            Blocks::File { file, .. } => Some(file),
        }
    }

    /// Whether checksums are verified. Bytes in memory were written by this process a moment ago,
    /// or are read by a test of damaged tables.
    pub fn are_checked(&self) -> bool {
        matches!(self, Blocks::File { .. })
    }

    /// Returns the last `bytes` bytes; called before [`Blocks::set_sums`].
    pub fn tail(&self, bytes: u64) -> Option<Vec<u8>> {
        let start = self.len().checked_sub(bytes)?;
        match self {
            Blocks::Memory(all) => Some(all.get(usize::try_from(start).ok()?..)?.to_vec()),
            Blocks::File { file, .. } => read_at(file, start, usize::try_from(bytes).ok()?).ok(),
        }
    }

    /// Sets the end of the blocks and their checksums; `None` if the numbers do not match.
    pub fn set_sums(&mut self, end: u64, of_blocks: &[u8]) -> Option<()> {
        if let Blocks::File {
            len, blocks, sums, ..
        } = self
        {
            let count = usize::try_from(end.div_ceil(BLOCK_BYTES as u64)).ok()?;
            (of_blocks.len() / 4 == count).then_some(())?;
            *blocks = Slots::new(count);
            *sums = of_blocks.to_vec();
            *len = end;
        }
        Some(())
    }

    /// Returns the bytes from `at` on, at least up to the end of the block.
    #[inline]
    pub fn rest(&self, at: u64) -> Option<&[u8]> {
        match self {
            Blocks::Memory(bytes) => bytes.get(usize::try_from(at).ok()?..),
            Blocks::File { blocks, .. } => {
                let index = (at / BLOCK_BYTES as u64) as usize;
                let block = match blocks.get(index) {
                    Some(block) => block?,
                    None => self.read_block(index)?,
                };
                block.get((at % BLOCK_BYTES as u64) as usize..)
            }
        }
    }

    /// Returns `len` bytes from `at` on, over any number of blocks: for the few texts that start at
    /// a block and are longer.
    #[cold]
    pub fn run(&self, at: u64, len: usize) -> Option<&[u8]> {
        let Blocks::File { blocks, runs, .. } = self else {
            return self.rest(at)?.get(..len);
        };
        at.is_multiple_of(BLOCK_BYTES as u64).then_some(())?;
        let index = (at / BLOCK_BYTES as u64) as usize;
        let read = || {
            let mut bytes = Vec::with_capacity(len);
            while bytes.len() < len {
                let rest = self.rest(at.checked_add(bytes.len() as u64)?)?;
                bytes.extend_from_slice(&rest[..rest.len().min(len - bytes.len())]);
            }
            Some(bytes.into_boxed_slice())
        };
        let run = runs
            .get_or_init(|| Slots::new(blocks.count))
            .get_or_read(index, read);
        run.filter(|run| run.len() == len)
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
        let start = index as u64 * BLOCK_BYTES as u64;
        let size = len.checked_sub(start)?.min(BLOCK_BYTES as u64);
        let read = || {
            let block = read_at(file, start, size as usize).ok()?;
            let whole = Some(crc32(&block)) == u32_in(sums, index * 4);
            whole.then(|| block.into_boxed_slice())
        };
        let block = blocks.get_or_read(index, read);
        if block.is_none() && index < blocks.count {
            damaged.store(true, Ordering::Relaxed);
        }
        block
    }

    /// Whether a block with a wrong checksum was found. Bytes in memory are not checked.
    pub fn is_damaged(&self) -> bool {
        match self {
            Blocks::Memory(_) => false,
            Blocks::File { damaged, .. } => damaged.load(Ordering::Relaxed),
        }
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Blocks::Memory(bytes) => bytes.capacity(),
            Blocks::File {
                blocks, runs, sums, ..
            } => {
                let runs = runs.get().map_or(0, Slots::heap_bytes);
                blocks.heap_bytes() + runs + sums.len()
            }
        }
    }
}

/// Blocks that have been read, by number. Memory for their entries is allocated in groups, when one
/// of a group is used: opening a large file must not cost memory in proportion to its blocks.
#[derive(Debug, Default)]
pub struct Slots {
    count: usize,
    groups: Box<[OnceLock<Group>]>,
    /// Memory of the allocated groups and blocks: counting it each time would take longer the
    /// larger the file is.
    held_bytes: AtomicUsize,
}

/// The inner `None` marks a block with a wrong checksum.
type Slot = OnceLock<Option<Box<[u8]>>>;
type Group = Box<[Slot; GROUP]>;

const GROUP: usize = 8;

impl Slots {
    fn new(count: usize) -> Slots {
        let groups = count.div_ceil(GROUP);
        Slots {
            count,
            groups: (0..groups).map(|_| OnceLock::new()).collect(),
            held_bytes: AtomicUsize::new(0),
        }
    }

    /// Returns a block; `None` if it was not read yet.
    #[inline]
    fn get(&self, index: usize) -> Option<Option<&[u8]>> {
        let group = self.groups.get(index / GROUP)?.get()?;
        Some(group[index % GROUP].get()?.as_deref())
    }

    fn get_or_read(&self, index: usize, read: impl FnOnce() -> Option<Box<[u8]>>) -> Option<&[u8]> {
        let group = self
            .groups
            .get(index / GROUP)
            .filter(|_| index < self.count)?
            .get_or_init(|| {
                self.add_held(size_of::<[Slot; GROUP]>());
                Box::new([const { OnceLock::new() }; GROUP])
            });
        let read = || {
            let block = read();
            self.add_held(block.as_ref().map_or(0, |block| block.len()));
            block
        };
        group[index % GROUP].get_or_init(read).as_deref()
    }

    fn add_held(&self, bytes: usize) {
        self.held_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn heap_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed) + size_of_val(&*self.groups)
    }
}
