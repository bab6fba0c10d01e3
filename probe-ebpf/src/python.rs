//! Python's own frames: where an interpreter keeps them, and how they stand in a record.
//!
//! CPython runs functions in `_PyEval_EvalFrameDefault`, and keeps a chain of frames of its
//! own. From 3.11 on, one call of that function runs several Python frames: a *group*. A
//! record has the chain with the ends of the groups, so that each group can be put in the
//! place of its native frame.

mod entry;
mod tasks;

pub use entry::Entry;
pub use tasks::{
    AWAITING_MAX, COROUTINE_FRAME, IS_TEXT, RUNNING_MAX, TASK_ENTRIES, TASK_STEPS, TASK_TEXT,
    TEXT_ASCII, TEXT_LENGTH, TEXT_STATE, TEXT_WIDE, TYPE_FLAGS, TaskLayout, dict, object,
};

/// Bytes of a Python frame that are looked at.
pub const FRAME_ROOM: usize = 128;

/// Bytes of a code object that are looked at, from the word with its first line on: its identity
/// is in them in all versions.
pub const CODE_BYTES: usize = 96;

/// Words of a code object that tell it from another one, which may later have its address:
/// pointers to its names.
pub const IDENTITY_WORDS: usize = 4;

/// What there is no offset for.
pub const NONE: u32 = u32::MAX;

/// How the ends of groups are known.
pub mod style {
    /// Each frame is a group, and instructions have numbers: up to 3.10.
    pub const EACH: u32 = 0;
    /// The last frame of a group has its byte `is_entry` set: 3.11.
    pub const FLAGGED: u32 = 1;
    /// Behind a group is a frame that belongs to C and runs no code: from 3.12 on.
    pub const OWNED_BY_C: u32 = 2;
}

/// `FRAME_OWNED_BY_CSTACK`, the first of the owners that are not Python's.
pub const OWNER_C: u8 = 3;

/// Where one version of CPython keeps what the walk needs: offsets in its structures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Layout {
    /// A [`style`].
    pub style: u32,
    /// Of a thread state: the word that tells whose it is.
    pub thread_identity: u32,
    /// Of a thread state: the pointer to the innermost frame, or to a C frame.
    pub thread_frame: u32,
    /// Of a C frame: the pointer to the innermost frame; [`NONE`] if there are none.
    pub c_frame: u32,
    /// Bytes of a frame that are read, at most [`FRAME_ROOM`].
    pub frame_bytes: u32,
    /// Of a frame: the pointer to its caller's.
    pub frame_previous: u32,
    /// Of a frame: the pointer to its code object.
    pub frame_code: u32,
    /// Of a frame: the instruction, as a pointer, or (in the style `EACH`) a number.
    pub frame_instruction: u32,
    /// Of a frame: the byte that tells of the end of a group.
    pub frame_owner: u32,
    /// What a number of an instruction is multiplied by; 0 where it is a pointer.
    pub instruction_bytes: u32,
    /// Of a code object: its first instruction.
    pub code_start: u32,
    /// Of a code object: its first line, 32 bits.
    pub code_first_line: u32,
    /// Of a code object: the words that identify it.
    pub code_identity: u32,
    /// Of a thread state: the thread's `pthread_t`, which is its `fs` as well.
    pub thread_pthread: u32,
    /// Of a `pthread_t`: the word that has the address of the thread's own state; 0 if that is
    /// not known.
    pub own_state: i64,
    /// Where the process's global lock is; 0 if that is not known.
    pub gil: u64,
    /// Where asyncio keeps its tasks.
    pub tasks: TaskLayout,
}

/// Bytes of the global lock (`struct _gil_runtime_state`), in all of which a thread that
/// waits for it may wait: a condition and a mutex of its own, and two for handing it over.
pub const GIL_BYTES: u64 = 208;

/// Of the global lock: the pointer to the state of the thread that has it, or had it last.
pub const GIL_HOLDER: u64 = 8;

/// The words of the global lock that tell who has it: an interval, [`GIL_HOLDER`], and 1 while
/// it is held, in 32 bits.
pub const GIL_WORDS: usize = 3;

/// Of a `pthread_t` of glibc: the thread's number (`struct pthread` of `nptl/descr.h`).
pub const TID_IN_PTHREAD: u64 = 720;

/// Where the interpreter keeps what it knows of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct ThreadState {
    pub address: u64,
    /// What is at [`Layout::thread_identity`] as long as it is that thread's.
    pub identity: u64,
}

const _: () = {
    assert!(size_of::<Layout>() == 72 + size_of::<TaskLayout>());
    assert!(size_of::<ThreadState>() == 16);
};

/// How the walk of Python frames ended.
pub mod status {
    /// The process is not known to run Python.
    pub const NO_PYTHON: u32 = 0;
    /// At the end of the chain.
    pub const WHOLE: u32 = 1;
    /// There is no room for more frames.
    pub const TOO_DEEP: u32 = 2;
    /// A frame or a code object could not be read.
    pub const UNREADABLE: u32 = 3;
    /// Where the thread's frames are is not known.
    pub const NO_THREAD: u32 = 4;
    /// What was known of the thread is another thread's by now.
    pub const STALE: u32 = 5;
    /// The frames changed while they were read: never where the thread is interrupted.
    pub const MOVED: u32 = 6;
}

/// Whether the thread had the global lock when it was interrupted.
pub mod lock {
    /// Where the lock is is not known, or it could not be read.
    pub const UNKNOWN: u32 = 0;
    pub const NOT_HELD: u32 = 1;
    pub const HELD: u32 = 2;
}

/// How many Python frames a record has, who had the global lock, and how their walk ended: a word of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary(pub u16);

impl Summary {
    const STATUS_SHIFT: u32 = 10;
    const LOCK_SHIFT: u32 = 13;

    /// `status` and `lock` are of the modules of these names.
    #[inline(always)]
    pub const fn new(entries: u32, status: u32, lock: u32) -> Self {
        let entries = entries & ((1 << Self::STATUS_SHIFT) - 1);
        Self((lock << Self::LOCK_SHIFT | status << Self::STATUS_SHIFT | entries) as u16)
    }

    /// The entries, of two words each.
    #[inline(always)]
    pub const fn frames(self) -> u32 {
        self.0 as u32 & ((1 << Self::STATUS_SHIFT) - 1)
    }

    pub const fn status(self) -> u32 {
        self.0 as u32 >> Self::STATUS_SHIFT & 7
    }

    /// A [`lock`].
    pub const fn lock(self) -> u32 {
        self.0 as u32 >> Self::LOCK_SHIFT & 3
    }
}

const _: () = assert!(crate::limits::PYTHON_FRAMES_MAX < 1 << Summary::STATUS_SHIFT);

/// A number that two code objects hardly have in common: of the first line and the pointers
/// to names of a code object.
#[inline(always)]
pub const fn check(first_line: u32, identity: &[u64; IDENTITY_WORDS]) -> u32 {
    // FNV's prime; what is in the high bits is folded in at the end.
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut hash = first_line as u64;
    hash = (hash ^ identity[0]).wrapping_mul(PRIME);
    hash = (hash ^ identity[1]).wrapping_mul(PRIME);
    hash = (hash ^ identity[2]).wrapping_mul(PRIME);
    hash = (hash ^ identity[3]).wrapping_mul(PRIME);
    (hash ^ hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_gives_back_what_was_put_into_it() {
        for lock in [lock::UNKNOWN, lock::NOT_HELD, lock::HELD] {
            let summary = Summary::new(512, status::STALE, lock);
            assert_eq!((summary.frames(), summary.status()), (512, status::STALE));
            assert_eq!(summary.lock(), lock);
        }
    }

    #[test]
    fn code_objects_are_told_apart_by_every_part() {
        let identity = [0x7f00_0000_1000, 0x7f00_0000_2000, 0x7f00_0000_3000, 4];
        let own = check(17, &identity);
        assert_ne!(own, check(18, &identity));
        for word in 0..IDENTITY_WORDS {
            let mut other = identity;
            other[word] += 16;
            assert_ne!(own, check(17, &other));
        }
    }
}
