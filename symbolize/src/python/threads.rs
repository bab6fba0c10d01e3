//! The threads of an interpreter.

use std::collections::{BTreeMap, HashSet};

use super::layout::{Gil, Layout};
use super::memory::{Lack, Memory, pointer, word};

/// Maximum number of interpreters in one process.
pub const INTERPRETERS_MAX: usize = 256;

/// Offset of the tid from a `pthread_t`, in glibc and in musl on x86-64: musl's `struct pthread` is
/// in `src/internal/pthread_impl.h`.
pub const TIDS_IN_PTHREAD: [u64; 2] = [720, 48];

/// A thread as the interpreter knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// The address of its `PyThreadState`.
    pub state: u64,
    /// Its `pthread_t`.
    pub pthread: u64,
    /// Its tid, the result of `gettid`; `None` before 3.11.
    pub tid: Option<u64>,
}

impl Thread {
    /// Returns the kernel's tid of the thread; `None` if it is not in `tids`, which lead from the tid
    /// that the process itself sees to the kernel's.
    pub fn find_tid(&self, tids: &BTreeMap<u64, u32>, memory: &impl Memory) -> Option<u32> {
        if let Some(own) = self.tid {
            return tids.get(&own).copied();
        }
        TIDS_IN_PTHREAD.iter().find_map(|offset| {
            let start = self.pthread.checked_add(*offset)?;
            let bytes = memory.read(start, 4).ok()?;
            let own = u32::from_le_bytes(bytes.try_into().ok()?);
            tids.get(&own.into()).copied()
        })
    }
}

/// Returns the threads of all interpreters of a process, at most `max`. If a list changes while it
/// is read, the result may include threads that have ended, but none twice.
pub fn read_threads(
    memory: &impl Memory,
    runtime: u64,
    layout: &Layout,
    max: usize,
) -> Result<Vec<Thread>, Lack> {
    let mut threads = Vec::new();
    let mut seen = HashSet::new();
    for interpreter in read_interpreters(memory, runtime, layout)? {
        let head = memory.read(
            interpreter.wrapping_add(layout.interpreter_threads.into()),
            8,
        )?;
        read_list(
            memory,
            word(&head, 0)?,
            layout,
            &mut seen,
            &mut threads,
            max,
        )?;
    }
    Ok(threads)
}

/// Returns the addresses of the interpreters of a process, at most [`INTERPRETERS_MAX`].
pub fn read_interpreters(
    memory: &impl Memory,
    runtime: u64,
    layout: &Layout,
) -> Result<Vec<u64>, Lack> {
    let mut interpreters = Vec::new();
    let head = memory.read(runtime.wrapping_add(layout.runtime_interpreters.into()), 8)?;
    let mut interpreter = pointer(&head, 0)?;
    while interpreter != 0
        && interpreters.len() < INTERPRETERS_MAX
        && !interpreters.contains(&interpreter)
    {
        interpreters.push(interpreter);
        let next = memory.read(interpreter.wrapping_add(layout.interpreter_next.into()), 8)?;
        interpreter = word(&next, 0)?;
    }
    Ok(interpreters)
}

/// Returns the number of interpreters of a process: one, unless it created more.
pub fn count_interpreters(
    memory: &impl Memory,
    runtime: u64,
    layout: &Layout,
) -> Result<usize, Lack> {
    Ok(read_interpreters(memory, runtime, layout)?.len())
}

/// Returns the address of the global lock of the first interpreter, which other interpreters share
/// unless they were created with a lock of their own.
pub fn find_gil(memory: &impl Memory, runtime: u64, layout: &Layout) -> Result<u64, Lack> {
    match layout.gil {
        Gil::Runtime(at) => Ok(runtime.wrapping_add(at.into())),
        Gil::Interpreter(at) => {
            let interpreters = read_interpreters(memory, runtime, layout)?;
            // The list begins with the newest interpreter.
            let first = interpreters.last().copied().unwrap_or(0);
            pointer(&memory.read(first.wrapping_add(at.into()), 8)?, 0)
        }
    }
}

fn read_list(
    memory: &impl Memory,
    first: u64,
    layout: &Layout,
    seen: &mut HashSet<u64>,
    threads: &mut Vec<Thread>,
    max: usize,
) -> Result<(), Lack> {
    let offsets = &layout.thread;
    let last = offsets.native_thread_id.unwrap_or(0).max(offsets.thread_id);
    let bytes = last.max(offsets.next) + 8;
    let mut state = first;
    while state != 0 && threads.len() < max && seen.insert(state) {
        let fields = memory.read(state, bytes)?;
        let tid = offsets.native_thread_id.map(|at| word(&fields, at));
        threads.push(Thread {
            state,
            pthread: word(&fields, offsets.thread_id)?,
            tid: tid.transpose()?,
        });
        state = word(&fields, offsets.next)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::in_words::{VERSION, memory};

    /// Memory with these words; all others are 0.
    fn threads(words: &[(u64, u64)], max: usize) -> Result<Vec<Thread>, Lack> {
        let memory = memory(words);
        let layout = Layout::of(VERSION, &memory, 0x1000)?;
        read_threads(&memory, 0x1000, &layout, max)
    }

    /// Two interpreters, of two threads and of one.
    const WORDS: [(u64, u64); 9] = [
        (0x1000 + 40, 0x2000),
        (0x2000, 0x3000),
        (0x2000 + 72, 0x4000),
        (0x4000 + 8, 0x5000),
        (0x4000 + 136, 0x7000_0000),
        (0x4000 + 144, 17),
        (0x5000 + 144, 18),
        (0x3000 + 72, 0x6000),
        (0x6000 + 144, 19),
    ];

    #[test]
    fn the_threads_of_all_interpreters() {
        let found = threads(&WORDS, 10).unwrap();
        let tids: Vec<_> = found.iter().map(|thread| thread.tid).collect();
        assert_eq!(tids, [Some(17), Some(18), Some(19)]);
        assert_eq!((found[0].state, found[0].pthread), (0x4000, 0x7000_0000));
        assert_eq!(threads(&WORDS, 2).unwrap().len(), 2);
    }

    #[test]
    fn the_interpreters_of_a_process_are_counted() {
        let memory = memory(&WORDS);
        let layout = Layout::of(VERSION, &memory, 0x1000).unwrap();
        assert_eq!(count_interpreters(&memory, 0x1000, &layout), Ok(2));
    }

    #[test]
    fn lists_without_an_end_have_one() {
        let mut words = WORDS.to_vec();
        words.push((0x5000 + 8, 0x4000));
        words.push((0x3000, 0x2000));
        words.push((0x6000 + 8, 0x6000));
        assert_eq!(threads(&words, 100).unwrap().len(), 3);
    }

    #[test]
    fn an_interpreter_that_has_not_begun_has_no_threads() {
        assert_eq!(threads(&[], 10), Err(Lack::Implausible("a pointer")));
    }
}
