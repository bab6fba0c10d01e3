//! The pool of words that holds all tables, in chunks that are made and removed as needed.

use super::maps::{CHUNK_BYTES, Chunk, Chunks, WINDOW_SHIFT, WINDOWS, Window};
use super::ranges::Ranges;
use super::resting::Resting;
use probe_ebpf::table::{CHUNK_SHIFT, CHUNK_WORDS, CHUNKS_MAX};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// Number of words that are not used: the number 0 in a page index means that a page has no rows.
const RESERVED_WORDS: u32 = 1;

/// A chunk is emptied if the others have this many times as much free room as it has words in use:
/// free room is in pieces, of which not all are large enough.
const ROOM_TO_EMPTY: u64 = 2;

/// No chunk is emptied while no more than this fraction (1/n) of what is in use is free: moving all
/// of it again and again would cost more than the memory is worth.
const FREE_PART: u64 = 4;

/// Words with consecutive numbers, all in one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Number of the first word.
    pub first: u32,
    /// How many words it has.
    pub words: u32,
}

/// The existing chunks, by index.
pub type ChunkSet = Arc<[Option<Arc<Chunk>>]>;

/// All words, and which of them are free.
pub struct Pool {
    store: Box<dyn Chunks>,
    chunks: ChunkSet,
    /// The window that was last written to, and its number in the pool.
    open: Option<(usize, Window)>,
    free: Ranges,
    resting: Resting<Vec<Run>>,
    resting_words: u64,
    made: u64,
    refused: u64,
}

impl Pool {
    /// Makes a pool of at most `bytes_max` bytes.
    pub fn new(store: Box<dyn Chunks>, bytes_max: u64) -> Self {
        let chunks_max = usize::try_from(bytes_max / CHUNK_BYTES as u64)
            .unwrap_or(usize::MAX)
            .clamp(1, CHUNKS_MAX);
        Self {
            store,
            chunks: vec![None; chunks_max].into(),
            open: None,
            free: Ranges::new(CHUNK_SHIFT),
            resting: Resting::new(),
            resting_words: 0,
            made: 0,
            refused: 0,
        }
    }

    /// Allocates `words` words; `None` when the pool is full.
    pub fn allocate(&mut self, words: u32) -> Option<Run> {
        if words == 0 || words as usize > CHUNK_WORDS - RESERVED_WORDS as usize {
            return None;
        }
        loop {
            if let Some(first) = self.free.take(words) {
                return Some(Run { first, words });
            }
            if !self.add_chunk() {
                return None;
            }
        }
    }

    /// Allocates a copy of a run in another chunk that exists; `None` if none has room, or if the
    /// memory cannot be mapped.
    pub fn copy_out(&mut self, run: Run) -> Option<Run> {
        let words = self.read(run)?;
        let chunk = chunk_of(run);
        let first = self.free.take_outside(run.words, &words_of_chunk(chunk))?;
        let copy = Run {
            first,
            words: run.words,
        };
        if self.write(copy, 0, words.into_iter()).is_none() {
            self.discard(vec![copy]);
            return None;
        }
        // Whoever sees a pointer to the copy sees its words.
        fence(Ordering::Release);
        Some(copy)
    }

    /// Returns the words of a run; `None` if its memory cannot be mapped.
    pub fn read(&mut self, run: Run) -> Option<Vec<u32>> {
        let mut words = Vec::with_capacity(run.words as usize);
        let end = run.first + run.words;
        let mut place = run.first;
        while place < end {
            let window = self.open(place >> WINDOW_SHIFT)?;
            let rest = window.words_from(place as usize);
            let here = &rest[..rest.len().min((end - place) as usize)];
            words.extend(here.iter().map(|word| word.load(Ordering::Relaxed)));
            place += here.len() as u32;
        }
        Some(words)
    }

    /// Returns the chunk that is to be emptied, if there is one: the one with the fewest words in
    /// use, if the others have ample room for them. Tables come and go, so that without this there
    /// are many chunks after a while, each with a few words in use.
    pub fn chunk_to_empty(&self) -> Option<usize> {
        let existing = (0..self.chunks.len()).filter(|index| self.chunks[*index].is_some());
        let in_use = |index: usize| {
            let free = self.free.free_in(&words_of_chunk(index));
            u64::from(usable(index).1) - free
        };
        let (used, index) = existing.map(|index| (in_use(index), index)).min()?;
        let free_here = u64::from(usable(index).1) - used;
        let free_elsewhere = self.free.free() - free_here;
        let is_much_free = self.free.free() > self.used_words() / FREE_PART;
        let has_room = free_elsewhere >= used * ROOM_TO_EMPTY;
        (used > 0 && is_much_free && has_room).then_some(index)
    }

    /// Writes words into a run from `offset` on. `None` if its memory cannot be mapped.
    pub fn write(
        &mut self,
        run: Run,
        offset: u32,
        mut words: impl Iterator<Item = u32>,
    ) -> Option<()> {
        let mut place = run.first + offset.min(run.words);
        let end = run.first + run.words;
        // One window at a time: tables have hundreds of thousands of words.
        while place < end {
            let window = self.open(place >> WINDOW_SHIFT)?;
            let room = window.words_from(place as usize);
            let room = &room[..room.len().min((end - place) as usize)];
            for into in room {
                let Some(word) = words.next() else {
                    return Some(());
                };
                into.store(word, Ordering::Relaxed);
            }
            place += room.len() as u32;
        }
        Some(())
    }

    /// Frees runs. Their words are used again when no reader can be using them any more.
    pub fn free(&mut self, runs: Vec<Run>, now_ns: u64) {
        self.resting_words += words_of(&runs);
        self.resting.push(runs, now_ns);
    }

    /// Frees runs that were never published.
    pub fn discard(&mut self, runs: Vec<Run>) {
        for run in runs {
            self.free.give(run.first, run.words);
        }
    }

    /// Frees what has rested, and removes an empty chunk; not all of them at once, because each
    /// takes some time. Returns whether there is more room now.
    pub fn sweep(&mut self, now_ns: u64) -> bool {
        self.open = None;
        let mut freed = false;
        while let Some(runs) = self.resting.pop(now_ns) {
            self.resting_words -= words_of(&runs);
            self.discard(runs);
            freed = true;
        }
        let removed = (0..self.chunks.len()).any(|index| self.remove_if_empty(index));
        freed || removed
    }

    /// Returns the existing chunks, for readers.
    pub fn chunks(&self) -> &ChunkSet {
        &self.chunks
    }

    /// Returns the number of chunks.
    pub fn chunk_count(&self) -> usize {
        self.chunks.iter().flatten().count()
    }

    /// Returns the number of words in use, without those that rest.
    pub fn used_words(&self) -> u64 {
        let all: u64 = (0..self.chunks.len())
            .filter(|index| self.chunks[*index].is_some())
            .map(|index| u64::from(usable(index).1))
            .sum();
        all - self.free.free() - self.resting_words
    }

    /// Returns the maximum number of words.
    pub fn words(&self) -> u64 {
        (0..self.chunks.len())
            .map(|index| u64::from(usable(index).1))
            .sum()
    }

    /// Returns the number of words that are free, or will be after their rest, or when more chunks
    /// are made.
    pub fn available_words(&self) -> u64 {
        self.words() - self.used_words()
    }

    /// Returns the number of chunks that were made so far.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Returns how often the kernel refused memory for a chunk.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn open(&mut self, number: u32) -> Option<&Window> {
        let number = number as usize;
        let is_open = self.open.as_ref().is_some_and(|(open, _)| *open == number);
        if !is_open {
            let chunk = self.chunks.get(number / WINDOWS)?.as_ref()?;
            self.open = Some((number, chunk.window(number % WINDOWS).ok()?));
        }
        self.open.as_ref().map(|(_, window)| window)
    }

    fn add_chunk(&mut self) -> bool {
        let Some(index) = self.chunks.iter().position(Option::is_none) else {
            return false;
        };
        match self.store.create(index as u32) {
            Ok(chunk) => {
                self.made += 1;
                self.replace(index, Some(Arc::new(chunk)));
                let (first, words) = usable(index);
                self.free.give(first, words);
                true
            }
            Err(_) => {
                self.refused += 1;
                false
            }
        }
    }

    fn remove_if_empty(&mut self, index: usize) -> bool {
        let (first, words) = usable(index);
        let is_empty = self.chunks[index].is_some() && self.free.take_at(first, words);
        if !is_empty {
            return false;
        }
        let removed = self.store.remove(index as u32).is_ok();
        if removed {
            self.replace(index, None);
        } else {
            // The chunk still exists and can be used.
            _ = self.free.give(first, words);
        }
        removed
    }

    /// Replaces a chunk in the set. Readers keep the old set.
    fn replace(&mut self, index: usize, chunk: Option<Arc<Chunk>>) {
        self.open = None;
        let mut chunks = self.chunks.to_vec();
        chunks[index] = chunk;
        self.chunks = chunks.into();
    }
}

/// Returns the index of the chunk that a run lies in.
pub fn chunk_of(run: Run) -> usize {
    (run.first >> CHUNK_SHIFT) as usize
}

/// Returns the numbers of all words of a chunk.
fn words_of_chunk(index: usize) -> Range<u32> {
    let first = (index as u32) << CHUNK_SHIFT;
    first..first + CHUNK_WORDS as u32
}

/// Returns first word and number of words of a chunk that may be allocated.
fn usable(index: usize) -> (u32, u32) {
    let first = (index as u32) << CHUNK_SHIFT;
    match index {
        0 => (RESERVED_WORDS, CHUNK_WORDS as u32 - RESERVED_WORDS),
        _ => (first, CHUNK_WORDS as u32),
    }
}

fn words_of(runs: &[Run]) -> u64 {
    runs.iter().map(|run| u64::from(run.words)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::maps::TableMaps;
    use crate::tables::resting::REST_NS;
    use proptest::prelude::*;
    use std::io;

    const MIB: u64 = 1 << 20;

    fn pool(bytes_max: u64) -> Pool {
        Pool::new(TableMaps::in_memory().chunks, bytes_max)
    }

    struct NoMemory;

    impl Chunks for NoMemory {
        fn create(&mut self, _: u32) -> io::Result<Chunk> {
            Err(io::ErrorKind::OutOfMemory.into())
        }

        fn remove(&mut self, _: u32) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn chunks_come_and_go() {
        let mut pool = pool(2 * MIB);
        assert_eq!(pool.chunk_count(), 0);
        let words = CHUNK_WORDS as u32 - 1;
        let (a, b) = (pool.allocate(words).unwrap(), pool.allocate(words).unwrap());
        assert_eq!((a.first, b.first), (1, CHUNK_WORDS as u32));
        assert_eq!(pool.allocate(words), None, "the limit");
        pool.free(vec![a], 0);
        pool.sweep(REST_NS - 1);
        assert_eq!(
            (pool.chunk_count(), pool.used_words()),
            (2, u64::from(words))
        );
        pool.sweep(REST_NS);
        assert_eq!(
            (pool.chunk_count(), pool.used_words()),
            (1, u64::from(words))
        );
        assert!(pool.chunks()[0].is_none() && pool.chunks()[1].is_some());
    }

    #[test]
    fn words_are_where_they_were_written() {
        let mut pool = pool(MIB);
        let run = pool.allocate(3).unwrap();
        assert_eq!(pool.write(run, 1, [7, 8, 9].into_iter()), Some(()));
        let window = pool.chunks()[0].as_ref().unwrap().window(0).unwrap();
        let there = |at: usize| window.word(run.first as usize + at).load(Ordering::Relaxed);
        assert_eq!([there(0), there(1), there(2), there(3)], [0, 7, 8, 0]);
    }

    #[test]
    fn words_go_on_in_the_next_window_and_end_with_the_run() {
        let mut pool = pool(MIB);
        let window_words = 1u32 << WINDOW_SHIFT;
        let run = pool.allocate(2 * window_words).unwrap();
        let behind = pool.allocate(2).unwrap();
        assert_eq!(pool.write(behind, 0, [1, 2].into_iter()), Some(()));
        assert_eq!(pool.write(run, 3, 1000..), Some(()));
        let word = |pool: &mut Pool, number: u32| {
            let window = pool.open(number >> WINDOW_SHIFT).unwrap();
            window.word(number as usize).load(Ordering::Relaxed)
        };
        for offset in [3, 4, window_words - 2, window_words, 2 * window_words - 1] {
            let written = word(&mut pool, run.first + offset);
            assert_eq!(written, 1000 + offset - 3, "{offset}");
        }
        assert_eq!(word(&mut pool, run.first + 2), 0);
        assert_eq!(word(&mut pool, behind.first), 1, "the run has ended");
    }

    #[test]
    fn no_memory_is_an_answer() {
        let mut pool = Pool::new(Box::new(NoMemory), MIB);
        assert_eq!(pool.allocate(1), None);
        assert_eq!((pool.refused(), pool.chunk_count()), (1, 0));
    }

    #[test]
    fn a_chunk_with_little_in_use_is_emptied_into_others() {
        let mut pool = pool(4 * MIB);
        let half = CHUNK_WORDS as u32 / 2 - 1;
        let runs: Vec<Run> = (0..4).map(|_| pool.allocate(half).unwrap()).collect();
        let small = pool.allocate(100).unwrap();
        assert_eq!(pool.write(small, 0, 7..), Some(()));
        assert_eq!((chunk_of(small), pool.chunk_count()), (2, 3));
        assert_eq!(pool.chunk_to_empty(), None, "the others are full");
        assert_eq!(pool.copy_out(small), None);
        pool.discard(vec![runs[3]]);
        assert_eq!(pool.chunk_to_empty(), Some(2));
        let copy = pool.copy_out(small).unwrap();
        assert_eq!(chunk_of(copy), 1);
        assert_eq!(pool.read(copy), Some((7..107).collect()));
        pool.free(vec![small], 0);
        pool.sweep(REST_NS);
        assert_eq!((pool.chunk_count(), pool.chunk_to_empty()), (2, None));
    }

    #[test]
    fn more_than_a_chunk_is_refused_at_once() {
        let mut pool = pool(4 * MIB);
        assert_eq!(pool.allocate(CHUNK_WORDS as u32 + 1), None);
        assert_eq!(pool.chunk_count(), 0);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Allocate(u32),
        Free(usize),
        Wait(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (1u32..100_000).prop_map(Step::Allocate),
            any::<usize>().prop_map(Step::Free),
            (0u64..2 * REST_NS).prop_map(Step::Wait),
        ]
    }

    proptest! {
        #[test]
        fn live_and_resting_runs_never_overlap(steps in proptest::collection::vec(step(), 1..120)) {
            let mut pool = pool(4 * MIB);
            let (mut live, mut now_ns) = (Vec::<Run>::new(), 0);
            let mut gone: Vec<(u64, Run)> = Vec::new();
            for step in steps {
                match step {
                    Step::Allocate(words) => {
                        let Some(run) = pool.allocate(words) else { continue };
                        prop_assert_eq!(run.first >> CHUNK_SHIFT, (run.first + words - 1) >> CHUNK_SHIFT);
                        prop_assert!(run.first >= RESERVED_WORDS);
                        prop_assert_eq!(pool.write(run, 0, std::iter::empty()), Some(()));
                        let resting = gone.iter().filter(|(since, _)| now_ns - since < REST_NS);
                        for other in live.iter().chain(resting.map(|(_, run)| run)) {
                            let apart = run.first + run.words <= other.first
                                || other.first + other.words <= run.first;
                            prop_assert!(apart, "{:?} and {:?}", run, other);
                        }
                        live.push(run);
                    }
                    Step::Free(which) if !live.is_empty() => {
                        let run = live.swap_remove(which % live.len());
                        gone.push((now_ns, run));
                        pool.free(vec![run], now_ns);
                    }
                    Step::Free(_) => {}
                    Step::Wait(ns) => {
                        now_ns += ns;
                        pool.sweep(now_ns);
                    }
                }
            }
            pool.free(live, now_ns);
            while pool.sweep(now_ns + REST_NS) {}
            prop_assert_eq!(pool.chunk_count(), 0);
            prop_assert_eq!(pool.free.free(), 0);
        }
    }
}
