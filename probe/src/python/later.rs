//! Reads Python's frames of a running thread from its memory a moment after its sample, when there
//! is no BPF program that could do so at that moment.
//!
//! What is read must be of one moment, and must not be put where it does not belong:
//!
//! 1. All pages that the chain of frames leads through are read twice in succession. The chain is
//!    used if all frames but the innermost are the same both times, and otherwise read once more
//!    ([`chain`]). A change that is undone within those microseconds, as in a short loop, is not
//!    noticed: then a caller's line may be that of another call in the same function.
//! 2. The thread's stack is read after that, and compared with the kernel's copy of it. Calls whose
//!    part of the stack is the same have not returned in between; what was called inside of them is
//!    of another moment, and `merge` does not mix it with the native frames of the sample.
//!
//! This is done by a reader, like everything that a process may delay ([`crate::files`]).

mod chain;
mod pieces;
mod tasks;

use super::task;
use crate::decode::{Later, PythonFrames};
use crate::proc_stat::is_ready_to_run;
use crate::stack::StackCopy;
use chain::Chain;
use pieces::{PAGE, Pieces};
use probe_ebpf::limits::PYTHON_FRAMES_MAX;
use probe_ebpf::python::{
    CODE_BYTES, Layout, NONE, TASK_ENTRIES, TASK_STEPS, TaskLayout, ThreadState, status,
};
use std::collections::{BTreeSet, HashMap};
use symbolize::{Files, Reason};

/// Maximum number of attempts to read a chain that changes while it is being read.
const TRIES: usize = 8;

/// Maximum number of pages that a chain may lead through. The need for each may be known only when
/// the one before has been read. Up to Python 3.10 each frame is an object of its own.
const PAGES_MAX: usize = 100;

/// Maximum bytes of the stack that are compared. If the last page of them is the same, so is the
/// rest.
const STACK_MAX: u64 = 32 << 10;

/// Maximum number of threads whose pages are remembered; with more, all are forgotten.
const THREADS_MAX: usize = 4096;

/// Reads frames of threads.
#[derive(Debug)]
pub struct Walker {
    way: Files,
    /// For each thread the pages that its chain led through last, and its code objects.
    last: HashMap<u32, Last>,
}

#[derive(Debug, Default, Clone)]
struct Last {
    pages: BTreeSet<u64>,
    codes: BTreeSet<u64>,
}

impl Last {
    /// Adds pages to those that were used; others may be needed as well.
    fn need(&mut self, more: BTreeSet<u64>, used: BTreeSet<u64>) {
        if self.pages.len() + more.len() > PAGES_MAX {
            self.pages = used;
        }
        if self.pages.len() + more.len() > PAGES_MAX {
            // A chain that changed may have led anywhere.
            self.pages.clear();
        }
        self.pages.extend(more.into_iter().take(PAGES_MAX));
    }
}

/// The result of one request.
struct Reading {
    before: Pieces,
    after: Pieces,
    codes: Pieces,
    stack: Option<Vec<u8>>,
}

impl Walker {
    /// Starts without threads. Memory is read through `way`.
    pub fn new(way: Files) -> Self {
        Self {
            way,
            last: HashMap::new(),
        }
    }

    /// Forgets a process or thread whose number belongs to another one from now on.
    pub fn forget(&mut self, tid: u32) {
        self.last.remove(&tid);
    }

    /// Reads the frames of a thread as it is now, for a sample with this copy of its stack.
    pub fn walk(
        &mut self,
        pid: u32,
        tid: u32,
        layout: &Layout,
        thread: &ThreadState,
        copy: &StackCopy,
    ) -> PythonFrames {
        let mut known = self.last.remove(&tid).unwrap_or_default();
        let found = self.try_to_walk((pid, tid), layout, thread, copy, &mut known);
        if self.last.len() >= THREADS_MAX {
            self.last.clear();
        }
        self.last.insert(tid, known);
        match found {
            Ok(frames) => frames,
            Err(status) => PythonFrames {
                status,
                ..PythonFrames::default()
            },
        }
    }

    /// Tries to read the frames; the error is a [`status`].
    fn try_to_walk(
        &self,
        (pid, tid): (u32, u32),
        layout: &Layout,
        thread: &ThreadState,
        copy: &StackCopy,
        known: &mut Last,
    ) -> Result<PythonFrames, u32> {
        let mut moved = 0;
        for _ in 0..TRIES + PAGES_MAX {
            let reading = self
                .read(pid, known, copy)
                .map_err(|_| status::UNREADABLE)?;
            let chain = Chain::read(&reading.before, layout, thread);
            let told = tasks::entries(&reading.before, layout, thread);
            let missing = reading.before.take_missing();
            let used = reading.before.take_used();
            if !missing.is_empty() {
                known.need(missing, used);
                continue;
            }
            let still = chain.filter(|chain| chain.was_still(&reading.after, layout));
            let Some(chain) = still else {
                moved += 1;
                if moved >= TRIES {
                    break;
                }
                continue;
            };
            if chain.status == status::STALE {
                return Err(status::STALE);
            }
            known.pages = used;
            // Tasks change more often than frames that call others.
            let is_same = tasks::entries(&reading.after, layout, thread) == told;
            let mut entries = self
                .entries(pid, &chain, layout, &reading.codes, known)
                .ok_or(status::UNREADABLE)?;
            if is_same {
                entries.extend(told);
            }
            let same_from = reading.stack.map(|now| copy.bytes.same_from(&now));
            return Ok(PythonFrames {
                status: chain.status,
                entries,
                later: Some(Later {
                    same_from: same_from.unwrap_or(u64::MAX),
                    same_frames_from: usize::MAX,
                    is_running: is_ready_to_run(pid, tid),
                }),
                ..PythonFrames::default()
            });
        }
        Err(match moved {
            0 => status::UNREADABLE,
            _ => status::MOVED,
        })
    }

    /// Returns the entries of a chain. Code objects that have not been read yet are read now, as
    /// they live longer than a call. `None` if one cannot be read.
    fn entries(
        &self,
        pid: u32,
        chain: &Chain,
        layout: &Layout,
        codes: &Pieces,
        known: &mut Last,
    ) -> Option<Vec<probe_ebpf::python::Entry>> {
        let wanted = chain
            .frames
            .iter()
            .filter_map(|frame| frame.code_words(layout));
        let wanted: BTreeSet<u64> = wanted.collect();
        let found = chain.entries(codes, layout);
        let entries = match found {
            Some(entries) => Some(entries),
            None => {
                let pieces: Vec<_> = wanted.iter().map(|at| (*at, CODE_BYTES as u64)).collect();
                let read = self.way.pieces(pid, &pieces).ok()?;
                let codes = Pieces::new(wanted.iter().copied().zip(read));
                chain.entries(&codes, layout)
            }
        };
        known.codes = wanted;
        entries
    }

    /// Reads all pages twice, then code objects, then the stack.
    fn read(&self, pid: u32, known: &Last, copy: &StackCopy) -> Result<Reading, Reason> {
        let pages = || known.pages.iter().map(|page| (*page, PAGE));
        let codes = known.codes.iter().map(|code| (*code, CODE_BYTES as u64));
        let length = (copy.bytes.size() as u64).min(STACK_MAX);
        let stack = (copy.registers.sp, length);
        let wanted: Vec<_> = pages().chain(pages()).chain(codes).chain([stack]).collect();
        let mut read = self.way.pieces(pid, &wanted)?.into_iter();
        let mut take = |starts: &BTreeSet<u64>| {
            let pieces = starts.iter().map(|start| (*start, read.next().flatten()));
            Pieces::new(pieces.collect::<Vec<_>>())
        };
        Ok(Reading {
            before: take(&known.pages),
            after: take(&known.pages),
            codes: take(&known.codes),
            stack: read.next().flatten(),
        })
    }
}

/// For fuzzers: reads bytes as what the threads of a process have in its memory, and returns the
/// number of frames and tasks found.
pub fn walk_anything(bytes: &[u8]) -> usize {
    /// The address at which the memory begins. Pointers to it are easily generated.
    const START: u64 = PAGE;
    let Some((choice, memory)) = bytes.split_first_chunk::<24>() else {
        return 0;
    };
    let at = |number: usize| u32::from(choice[number] & 31) * 8;
    let address = |number: usize| START + u64::from(choice[number]) * 8;
    let has = |bit: u8, offset| {
        if choice[23] >> bit & 1 != 0 {
            offset
        } else {
            NONE
        }
    };
    let layout = Layout {
        style: u32::from(choice[0]) % 3,
        thread_identity: at(1),
        thread_frame: at(2),
        c_frame: has(0, at(3)),
        frame_bytes: 128,
        frame_previous: at(4),
        frame_code: at(5),
        frame_instruction: at(6),
        frame_owner: at(7),
        instruction_bytes: 2,
        code_start: at(8),
        code_first_line: at(9) + u32::from(choice[9] >> 7) * 4,
        code_identity: at(10),
        thread_pthread: 0,
        own_state: 0,
        gil: 0,
        tasks: TaskLayout {
            name: has(1, at(11)),
            coroutine: at(12),
            running: has(2, at(13)),
            awaited_by: has(3, at(14)),
            is_set: has(4, at(15) + 5),
            is_task: has(5, at(16) + 4),
            callback: at(17),
            waits_for: at(18),
            group_values: has(6, at(18)),
            reserved: 0,
            running_by_loop: address(19),
        },
    };
    let pages = || {
        let chunks = memory.chunks(PAGE as usize).take(PAGES_MAX);
        (START..)
            .step_by(PAGE as usize)
            .zip(chunks)
            .map(|(start, chunk)| {
                let mut page = chunk.to_vec();
                page.resize(PAGE as usize, 0);
                (
                    start,
                    (start >> 12 & 7 != u64::from(choice[22] & 7)).then_some(page),
                )
            })
    };
    let (before, after) = (Pieces::new(pages()), Pieces::new(pages()));
    let thread = ThreadState {
        address: address(20),
        identity: u64::from(choice[21]),
    };
    let told = tasks::entries(&before, &layout, &thread);
    assert!(told.len() <= TASK_STEPS * TASK_ENTRIES + 1);
    assert_eq!(told, tasks::entries(&after, &layout, &thread));
    let (none, found) = task::split(&told);
    assert!(none.is_empty() && found.len() <= told.len());
    let Some(chain) = Chain::read(&before, &layout, &thread) else {
        // Only what was not read, or cannot be, is missing.
        let missing = before.take_missing();
        assert!(missing.iter().all(|page| page % PAGE == 0));
        return told.len();
    };
    assert!(chain.frames.len() <= PYTHON_FRAMES_MAX);
    assert!(chain.was_still(&after, &layout), "nothing has changed");
    if let Some(entries) = chain.entries(&before, &layout) {
        assert_eq!(entries.len(), chain.frames.len());
        assert!(entries.iter().all(|entry| !entry.is_task()));
    }
    chain.frames.len() + told.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_support::{Random, wait_until};

    #[test]
    fn any_memory_is_walked_to_an_end() {
        let mut random = Random::new(18);
        let (mut some, mut many) = (0, 0);
        for _ in 0..3000 {
            let mut bytes: Vec<u8> = (0..24).map(|_| random.byte()).collect();
            // Most often the page that cannot be read is none of these.
            bytes[22] |= 4;
            for _ in 0..2 * PAGE / 8 {
                let word = match random.below(4) {
                    0 => random.below(4),
                    1 => random.number(),
                    _ => PAGE + 8 * random.below(2 * PAGE / 8),
                };
                bytes.extend(word.to_le_bytes());
            }
            // The thread that the state belongs to.
            let at = 8 * usize::from(bytes[20]) + 8 * usize::from(bytes[1] & 31);
            let identity = u64::from(bytes[21]).to_le_bytes();
            bytes[24 + at..][..8].copy_from_slice(&identity);
            let found = walk_anything(&bytes);
            some += usize::from(found > 0);
            many += usize::from(found > 20);
        }
        assert!(some > 100 && many > 0, "{some} gave some, {many} many");
    }

    #[test]
    fn a_thread_that_sleeps_does_not_run() {
        let pid = std::process::id();
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert!(is_ready_to_run(pid, own));
        assert!(!is_ready_to_run(pid, u32::MAX));
        let (sender, tids) = std::sync::mpsc::channel();
        let sleeper = std::thread::spawn(move || {
            let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
            sender.send(own).unwrap();
            std::thread::park();
        });
        let tid = tids.recv().unwrap();
        wait_until("it sleeps", || !is_ready_to_run(pid, tid));
        sleeper.thread().unpark();
        sleeper.join().unwrap();
    }
}
