//! Python's own frames: where an interpreter keeps them, and how a record holds them.
//!
//! CPython runs functions in `_PyEval_EvalFrameDefault`, and keeps a chain of frames of its
//! own. From 3.11 on, one call of that function runs several Python frames: a *group*. A
//! record holds the chain and marks the end of each group, so that the reader can put each group
//! in the place of its native frame.

mod entry;
mod tasks;

pub use entry::Entry;
pub use tasks::{
    AWAITING_MAX, COROUTINE_FRAME, IS_TEXT, RUNNING_MAX, TASK_ENTRIES, TASK_STEPS, TASK_TEXT,
    TEXT_ASCII, TEXT_LENGTH, TEXT_STATE, TEXT_WIDE, TYPE_FLAGS, TaskLayout, dict, object,
};

/// Room for the bytes of a Python frame that are read.
pub const FRAME_ROOM: usize = 128;

/// Bytes of a code object that are read, from the word with its first line on. In all versions
/// they contain its identity.
pub const CODE_BYTES: usize = 96;

/// How many words of a code object, pointers to its names, distinguish it from another one that
/// later has the same address.
pub const IDENTITY_WORDS: usize = 4;

/// The value of an offset that a version does not have.
pub const NONE: u32 = u32::MAX;

/// How the walk recognizes the end of a group of frames.
pub mod style {
    /// Each frame is a group, and has its instruction as a number: up to 3.10.
    pub const EACH: u32 = 0;
    /// The last frame of a group has its byte `is_entry` set: 3.11.
    pub const FLAGGED: u32 = 1;
    /// Behind each group is a frame that belongs to C and runs no code: from 3.12 on.
    pub const OWNED_BY_C: u32 = 2;
}

/// `FRAME_OWNED_BY_CSTACK`, the lowest owner of a frame that is not Python.
pub const OWNER_C: u8 = 3;

/// Where one version of CPython keeps what the walk needs: offsets in its structures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Layout {
    /// How groups end: a [`style`].
    pub style: u32,
    /// Offset in a thread state of the word that says whose state it is.
    pub thread_identity: u32,
    /// Offset in a thread state of the pointer to the innermost frame, or to a C frame.
    pub thread_frame: u32,
    /// Offset in a C frame of the pointer to the innermost frame; [`NONE`] without C frames.
    pub c_frame: u32,
    /// Bytes of a frame that are read, less than [`FRAME_ROOM`].
    pub frame_bytes: u32,
    /// Offset in a frame of the pointer to its caller's frame.
    pub frame_previous: u32,
    /// Offset in a frame of the pointer to its code object.
    pub frame_code: u32,
    /// Offset in a frame of its instruction: a pointer, or (in the style `EACH`) a number.
    pub frame_instruction: u32,
    /// Offset in a frame of the byte that says whether a group ends here.
    pub frame_owner: u32,
    /// Bytes of one instruction, where instructions are numbers; 0 where they are pointers.
    pub instruction_bytes: u32,
    /// Offset in a code object of its first instruction.
    pub code_start: u32,
    /// Offset in a code object of its first line, 32 bits.
    pub code_first_line: u32,
    /// Offset in a code object of the words that identify it.
    pub code_identity: u32,
    /// Offset in a thread state of the thread's `pthread_t`, which is its `fs` as well.
    pub thread_pthread: u32,
    /// Offset from a `pthread_t` of the word that has the address of the thread's state; 0 if that
    /// is not known.
    pub own_state: i64,
    /// Address of the process's global lock; 0 if it is not known.
    pub gil: u64,
    /// Where asyncio keeps its tasks.
    pub tasks: TaskLayout,
}

/// Bytes of the global lock (`struct _gil_runtime_state`). A thread that waits for the lock waits
/// somewhere in it: it has a condition and a mutex for the lock, and two more to hand it over.
pub const GIL_BYTES: u64 = 208;

/// Offset in the global lock of the pointer to the state of the thread that has it, or had it last.
pub const GIL_HOLDER: u64 = 8;

/// How many words of the global lock are read to see who has it: an interval, [`GIL_HOLDER`],
/// and 1 while it is held, in 32 bits.
pub const GIL_WORDS: usize = 3;

/// Offset in a `pthread_t` of glibc of the thread's number (`struct pthread` of `nptl/descr.h`).
pub const TID_IN_PTHREAD: u64 = 720;

/// Where the interpreter keeps the state of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct ThreadState {
    /// Address of the state.
    pub address: u64,
    /// The word at [`Layout::thread_identity`] as long as the state is that thread's.
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
    /// It came to the end of the chain.
    pub const WHOLE: u32 = 1;
    /// There is no room for more frames.
    pub const TOO_DEEP: u32 = 2;
    /// A frame or a code object could not be read.
    pub const UNREADABLE: u32 = 3;
    /// Where the thread's frames are is not known.
    pub const NO_THREAD: u32 = 4;
    /// The known thread state belongs to another thread by now.
    pub const STALE: u32 = 5;
    /// The frames changed while they were read. This cannot be if the thread is interrupted.
    pub const MOVED: u32 = 6;
}

/// Whether the thread had the global lock when it was interrupted.
pub mod lock {
    /// The lock's address is not known, or it could not be read.
    pub const UNKNOWN: u32 = 0;
    pub const NOT_HELD: u32 = 1;
    pub const HELD: u32 = 2;
}

/// A word of the header: the number of Python entries, how their walk ended, and a [`lock`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary(pub u16);

impl Summary {
    const STATUS_SHIFT: u32 = 10;
    const LOCK_SHIFT: u32 = 13;

    /// Packs the parts. `status` and `lock` are constants of the modules of these names.
    #[inline(always)]
    pub const fn new(entries: u32, status: u32, lock: u32) -> Self {
        let entries = entries & ((1 << Self::STATUS_SHIFT) - 1);
        Self((lock << Self::LOCK_SHIFT | status << Self::STATUS_SHIFT | entries) as u16)
    }

    /// Returns the number of entries, of two words each.
    #[inline(always)]
    pub const fn frames(self) -> u32 {
        self.0 as u32 & ((1 << Self::STATUS_SHIFT) - 1)
    }

    /// Returns how the walk ended: a [`status`].
    pub const fn status(self) -> u32 {
        self.0 as u32 >> Self::STATUS_SHIFT & 7
    }

    /// Returns whether the thread had the global lock: a [`lock`].
    pub const fn lock(self) -> u32 {
        self.0 as u32 >> Self::LOCK_SHIFT & 3
    }
}

const _: () = assert!(crate::limits::PYTHON_FRAMES_MAX < 1 << Summary::STATUS_SHIFT);

/// Returns a hash of a code object's first line and of the pointers to its names. Two code
/// objects hardly ever have the same.
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
