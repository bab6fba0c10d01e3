//! Caches the memory of a process in *blocks*, each of which is read once: a request costs far more
//! than the bytes that it reads, and the next needed bytes are often near by.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::time::Instant;

use super::memory::Memory;
use crate::Reason;

/// Size and alignment of a block. A page has several.
const BLOCK: u64 = 1 << 10;

/// Smallest page size: a part of a page can be read if all of it can.
const PAGE: u64 = 4 << 10;

/// Maximum number of blocks in a request: a quarter of what one request may read.
const ASKED_MAX: usize = 256;

/// Maximum number of cached blocks, twice the longest read; then all are dropped.
const KEPT_MAX: usize = 2 << 10;

/// Caches the memory of a process, of which `/proc/PID/mem` is open; each block is as it was when it
/// was first read. Reading may take long, as the process can block its reader: after `until` no block
/// is read any more, which is the error [`Remote`](Reason::Remote).
pub fn blocks_of(memory: &File, until: Instant) -> impl Memory + '_ {
    let piece = move |&(start, len): &(u64, u64)| {
        if Instant::now() < until {
            read_piece(memory, start, len)
        } else {
            Err(Reason::Remote)
        }
    };
    Blocks::new(move |pieces: &[(u64, u64)]| pieces.iter().map(piece).collect())
}

/// Reads a piece of memory; `None` if not all of it is readable. The error
/// [`FileGone`](Reason::FileGone) says that the process has ended or runs another program: it has
/// none of its memory any more, which the kernel tells by reading nothing.
fn read_piece(memory: &File, start: u64, len: u64) -> Result<Option<Vec<u8>>, Reason> {
    let mut bytes = vec![0; len as usize];
    let mut done = 0;
    while done < bytes.len() {
        match memory.read_at(&mut bytes[done..], start + done as u64) {
            Ok(0) => return Err(Reason::FileGone),
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(bytes))
}

/// Memory of which each block is as it was when it was first read.
#[derive(Debug)]
pub struct Blocks<R> {
    /// Reads several pieces of memory, given as first address and length.
    read: R,
    known: RefCell<HashMap<u64, Box<[u8]>>>,
}

impl<R: Fn(&[(u64, u64)]) -> Result<Vec<Option<Vec<u8>>>, Reason>> Blocks<R> {
    /// An empty cache.
    pub fn new(read: R) -> Self {
        Self {
            read,
            known: RefCell::default(),
        }
    }

    /// Reads the blocks of these ranges that are not cached.
    fn fetch(&self, ranges: &[(u64, u32)]) -> Result<(), Reason> {
        let known = self.known.borrow();
        let all: BTreeSet<u64> = ranges.iter().flat_map(blocks).collect();
        let mut missing: Vec<u64> = all
            .iter()
            .copied()
            .filter(|block| !known.contains_key(block))
            .collect();
        let kept = known.len();
        drop(known);
        if kept + missing.len() > KEPT_MAX {
            self.known.borrow_mut().clear();
            missing = all.into_iter().take(KEPT_MAX).collect();
        }
        missing
            .chunks(ASKED_MAX)
            .try_for_each(|blocks| self.ask(blocks))
    }

    /// Reads blocks; neighbours in one page are read as one piece.
    fn ask(&self, blocks: &[u64]) -> Result<(), Reason> {
        let are_one =
            |one: &u64, next: &u64| one + 1 == *next && !(next * BLOCK).is_multiple_of(PAGE);
        let pieces = blocks.chunk_by(are_one);
        let pieces: Vec<_> = pieces
            .map(|blocks| (blocks[0] * BLOCK, blocks.len() as u64 * BLOCK))
            .collect();
        let read = (self.read)(&pieces)?;
        let mut known = self.known.borrow_mut();
        for ((start, _), bytes) in pieces.iter().zip(read) {
            let bytes = bytes.unwrap_or_default();
            for (number, bytes) in (start / BLOCK..).zip(bytes.chunks_exact(BLOCK as usize)) {
                known.insert(number, bytes.into());
            }
        }
        Ok(())
    }
}

/// The numbers of the blocks that overlap a range; empty if the range is not in user space.
fn blocks(&(address, length): &(u64, u32)) -> std::ops::Range<u64> {
    const USER: u64 = 1 << 56;
    let end = address.saturating_add(length.into());
    if end < USER && length > 0 {
        address / BLOCK..end.div_ceil(BLOCK)
    } else {
        0..0
    }
}

impl<R: Fn(&[(u64, u64)]) -> Result<Vec<Option<Vec<u8>>>, Reason>> Memory for Blocks<R> {
    fn read(&self, address: u64, length: u32) -> Result<Vec<u8>, Reason> {
        let range = (address, length);
        self.fetch(&[range])?;
        let known = self.known.borrow();
        let mut bytes = Vec::with_capacity(length as usize + 2 * BLOCK as usize);
        for block in blocks(&range) {
            bytes.extend_from_slice(known.get(&block).ok_or(Reason::Refused)?);
        }
        let start = (address % BLOCK) as usize;
        let wanted = bytes.get(start..start + length as usize);
        wanted.map(Vec::from).ok_or(Reason::Refused)
    }

    fn announce(&self, ranges: &[(u64, u32)]) {
        // An error is reported when the memory is really read.
        _ = self.fetch(ranges);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::time::Duration;
    use test_support::wait_until;

    const START: u64 = 0x10_0000;

    /// Memory from [`START`] on whose bytes count upwards, and the number of requests.
    fn read<T>(bytes: usize, test: impl FnOnce(&dyn Memory, &Cell<usize>) -> T) -> T {
        let asked = Cell::new(0);
        let blocks = Blocks::new(|pieces: &[(u64, u64)]| {
            asked.set(asked.get() + 1);
            let piece = |&(start, length): &(u64, u64)| {
                let from = start.checked_sub(START)?;
                let is_there = from + length <= bytes as u64;
                is_there.then(|| (from..from + length).map(|at| at as u8).collect())
            };
            Ok(pieces.iter().map(piece).collect())
        });
        test(&blocks, &asked)
    }

    #[test]
    fn what_lies_near_by_is_read_at_once() {
        read(8192, |memory, asked| {
            assert_eq!(memory.read(START + 5, 3), Ok(vec![5, 6, 7]));
            assert_eq!(memory.read(START + 1022, 4).unwrap(), [254, 255, 0, 1]);
            assert_eq!(memory.read(START + 1020, 8).unwrap().len(), 8);
            assert_eq!(asked.get(), 2, "a block each");
            let all = memory.read(START, 8192).unwrap();
            assert!(all.iter().enumerate().all(|(at, byte)| at as u8 == *byte));
            assert_eq!(asked.get(), 3);
        });
    }

    #[test]
    fn what_is_announced_is_read_by_one_request() {
        read(1 << 20, |memory, asked| {
            let ranges: Vec<_> = (0..200).map(|number| (START + 5000 * number, 40)).collect();
            memory.announce(&ranges);
            for (start, length) in ranges {
                assert_eq!(memory.read(start, length).unwrap().len(), 40);
            }
            assert_eq!(asked.get(), 1);
        });
    }

    #[test]
    fn what_is_not_there_is_refused() {
        read(4096, |memory, _| {
            memory.announce(&[(START + 4000, 200), (8, 8)]);
            assert_eq!(memory.read(START + 4000, 200), Err(Reason::Refused));
            assert_eq!(memory.read(START + 4000, 96).unwrap().len(), 96);
            for start in [0, START - 1, START + 4096, u64::MAX - 7, u64::MAX] {
                assert_eq!(memory.read(start, 8), Err(Reason::Refused), "{start:x}");
            }
        });
    }

    #[test]
    fn memory_of_a_process_is_read_until_it_has_none() {
        let text = *b"bytes of this test";
        let open = |pid: u32| File::open(format!("/proc/{pid}/mem")).unwrap();
        let own = open(std::process::id());
        let until = Instant::now() + Duration::from_secs(600);
        let memory = blocks_of(&own, until);
        let read = memory.read(text.as_ptr() as u64, text.len() as u32);
        assert_eq!(read.unwrap(), text);
        assert_eq!(memory.read(4096, 8), Err(Reason::Refused), "not mapped");
        let mut other = std::process::Command::new("sleep");
        let mut other = other.arg("1000").spawn().expect("a process");
        let pid = other.id();
        // `startstack` of proc_pid_stat(5), which is 0 until the program is executed. Before that the
        // memory is that of this test.
        let place = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            let (name, fields) = stat.rsplit_once(") ").unwrap();
            let start = fields.split(' ').nth(25).unwrap().parse::<u64>().unwrap();
            if name.ends_with("(sleep") { start } else { 0 }
        };
        wait_until("it runs its program", || place() > 0);
        let held = open(pid);
        let stack = place() & !15;
        let read = blocks_of(&held, until).read(stack, 8);
        assert_eq!(read.map(|it| it.len()), Ok(8));
        other.kill().expect("it is ours");
        other.wait().expect("it is ours");
        let after = blocks_of(&held, until).read(stack, 8);
        assert_eq!(after, Err(Reason::FileGone));
    }

    #[test]
    fn nothing_is_read_after_a_moment() {
        let text = *b"bytes of this test";
        let own = File::open("/proc/self/mem").unwrap();
        let memory = blocks_of(&own, Instant::now());
        let read = memory.read(text.as_ptr() as u64, text.len() as u32);
        assert_eq!(read, Err(Reason::Remote));
    }

    #[test]
    fn no_more_is_kept_than_the_bound() {
        let blocks = Blocks::new(|pieces: &[(u64, u64)]| {
            let zeros = |(_, length): &(u64, u64)| Some(vec![0; *length as usize]);
            Ok(pieces.iter().map(zeros).collect())
        });
        for number in 0..10 {
            assert!(blocks.read(number << 20, 1 << 20).is_ok());
            assert!(blocks.known.borrow().len() <= KEPT_MAX);
        }
    }
}
