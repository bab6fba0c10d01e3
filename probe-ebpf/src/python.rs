//! Python's own frames: where an interpreter keeps them, and how they stand in a record.
//!
//! CPython runs functions in `_PyEval_EvalFrameDefault`, and keeps a chain of frames of its
//! own. From 3.11 on, one call of that function runs several Python frames: a *group*. A
//! record has the chain with the ends of the groups, so that each group can be put in the
//! place of its native frame.

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
    /// Of a thread state: the pointer to the task of asyncio that it runs; [`NONE`] if that is
    /// not known.
    pub running_task: u32,
    /// Where the process's global lock is; 0 if that is not known.
    pub gil: u64,
    /// Of a task: the pointer to its name, a string that the program gave it or a number.
    pub task_name: u32,
    /// Of a task: the pointer to its coroutine.
    pub task_coroutine: u32,
}

/// Bytes of the global lock (`struct _gil_runtime_state`), in all of which a thread that
/// waits for it may wait: a condition and a mutex of its own, and two for handing it over.
pub const GIL_BYTES: u64 = 208;

/// Of the global lock: the pointer to the state of the thread that has it, or had it last.
pub const GIL_HOLDER: u64 = 8;

/// The words of the global lock that tell who has it: an interval, [`GIL_HOLDER`], and 1 while
/// it is held, in 32 bits.
pub const GIL_WORDS: usize = 3;

/// Of a coroutine: its frame, in it (`gi_iframe` of `PyGenObject`), from 3.12 on.
pub const COROUTINE_FRAME: u32 = 72;

/// Of a type: its flags (`tp_flags`), and which bit of them strings have
/// (`Py_TPFLAGS_UNICODE_SUBCLASS`).
pub const TYPE_FLAGS: u64 = 168;
pub const IS_TEXT: u32 = 28;

/// Of a string: its length, what it is (`state` of `PyASCIIObject`), and its first character if all
/// are ASCII, and else.
pub const TEXT_LENGTH: u32 = 16;
pub const TEXT_STATE: u32 = 32;
pub const TEXT_ASCII: u64 = 40;
pub const TEXT_WIDE: u64 = 56;

/// Bytes of a task's name that a record has.
pub const TASK_TEXT: usize = 48;

/// Entries of a record that a task takes: itself, and room for its name.
pub const TASK_ENTRIES: usize = 1 + TASK_TEXT / size_of::<Entry>();

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
    assert!(size_of::<Layout>() == 72);
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

/// An entry of a record: a frame, or the end of a group, or behind all of these the task that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The address of the code object; above, flags.
    place: u64,
    /// Where in the code, and the code object's [`check`]. Of a task: the length of its name, and
    /// the string's `state`.
    detail: u64,
}

const ENDS_GROUP: u64 = 1 << 63;
const IS_FRAME: u64 = 1 << 62;
const IS_TASK: u64 = 1 << 61;
const HAS_NAME: u32 = 60;
const ADDRESS: u64 = (1 << 56) - 1;

impl Entry {
    /// A frame. `offset` is where in its code it is, in bytes, before the first one if
    /// negative; `ends_group` is 1 or 0.
    #[inline(always)]
    pub const fn frame(code: u64, offset: i32, check: u32, ends_group: u64) -> Self {
        Self {
            place: code & ADDRESS | IS_FRAME | ends_group << 63,
            detail: offset as u32 as u64 | (check as u64) << 32,
        }
    }

    /// The end of a group of frames.
    pub const END: Entry = Entry {
        place: ENDS_GROUP,
        detail: 0,
    };

    /// The task that ran, by its coroutine's code. If `has_name` is 1, and not 0, the program gave
    /// it a name, which is in the entries behind it as far as there is room: so many characters
    /// in a string of this `state`.
    #[inline(always)]
    pub const fn task(code: u64, has_name: u64, length: u32, state: u32) -> Self {
        Self {
            place: code & ADDRESS | IS_TASK | has_name << HAS_NAME,
            detail: length as u64 | (state as u64) << 32,
        }
    }

    pub const fn from_words(place: u64, detail: u64) -> Self {
        Self { place, detail }
    }

    #[inline(always)]
    pub const fn words(self) -> (u64, u64) {
        (self.place, self.detail)
    }

    pub const fn is_frame(self) -> bool {
        self.place & IS_FRAME != 0
    }

    /// A task, whose coroutine has the code [`Entry::code`].
    pub const fn is_task(self) -> bool {
        self.place & IS_TASK != 0
    }

    /// Characters of the name of a task and its `state`; `None` if it has no name.
    pub const fn task_name(self) -> Option<(u32, u32)> {
        match self.place >> HAS_NAME & 1 {
            0 => None,
            _ => Some((self.detail as u32, (self.detail >> 32) as u32)),
        }
    }

    /// Whether the group ends here, this entry included.
    pub const fn ends_group(self) -> bool {
        self.place & ENDS_GROUP != 0
    }

    /// The address of the code object.
    pub const fn code(self) -> u64 {
        self.place & ADDRESS
    }

    pub const fn offset(self) -> i32 {
        self.detail as u32 as i32
    }

    pub const fn check(self) -> u32 {
        (self.detail >> 32) as u32
    }
}

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
    fn an_entry_gives_back_what_was_put_into_it() {
        for (offset, check, ends_group) in [(-2, 7, 1), (i32::MAX, u32::MAX, 0)] {
            let entry = Entry::frame(0x7fff_1234_5670, offset, check, ends_group);
            let (place, detail) = entry.words();
            let entry = Entry::from_words(place, detail);
            assert!(entry.is_frame());
            assert_eq!(entry.code(), 0x7fff_1234_5670);
            assert_eq!(entry.offset(), offset);
            assert_eq!(entry.check(), check);
            assert_eq!(entry.ends_group(), ends_group == 1);
        }
        assert!(Entry::END.ends_group() && !Entry::END.is_frame());
        let code = 0x7fff_1234_5670;
        let (auto, named) = (Entry::task(code, 0, 7, 0xe4), Entry::task(code, 1, 7, 0xe4));
        for (task, name) in [(auto, None), (named, Some((7, 0xe4)))] {
            assert!(task.is_task() && !task.is_frame() && !task.ends_group());
            assert_eq!((task.code(), task.task_name()), (code, name));
        }
        assert!(!Entry::END.is_task() && !Entry::frame(code, 0, 0, 1).is_task());
    }

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
