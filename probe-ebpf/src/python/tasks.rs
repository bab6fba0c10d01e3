//! Tasks of asyncio: where a process keeps which one runs, what each is called, and which one
//! awaits which.

use super::Entry;

/// Where one version of asyncio keeps what is read of its tasks: offsets in its structures, or
/// [`NONE`](super::NONE) for what it does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct TaskLayout {
    /// Offset in a task of the pointer to its name, a string that the program gave it, or a number.
    /// [`NONE`](super::NONE) if nothing is known about tasks.
    pub name: u32,
    /// Offset in a task of the pointer to its coroutine.
    pub coroutine: u32,
    /// Offset in a thread state of the pointer to the task that it runs, from 3.14 on.
    pub running: u32,
    /// Offset in a task or another future of the pointer to what awaits it, from 3.14 on.
    pub awaited_by: u32,
    /// Offset there of the byte that says that a set of several awaits it.
    pub is_set: u32,
    /// Offset there of the byte that says that it is a task.
    pub is_task: u32,
    /// Offset in a task of the pointer to what is called first when it is done, before 3.14.
    pub callback: u32,
    /// Offset in a task of the pointer to what it waits for, before 3.14.
    pub waits_for: u32,
    /// Offset in a group of tasks of its attributes, before 3.14; [`NONE`](super::NONE) if a
    /// pointer in front of the group leads to them.
    pub group_values: u32,
    /// Unused: aligns the next field.
    pub reserved: u32,
    /// Address of the dictionary that has the running task of each event loop, before 3.14; 0 if it
    /// is not known.
    pub running_by_loop: u64,
}

impl TaskLayout {
    /// The layout if nothing is known about tasks.
    pub const UNKNOWN: TaskLayout = TaskLayout {
        name: super::NONE,
        coroutine: super::NONE,
        running: super::NONE,
        awaited_by: super::NONE,
        is_set: super::NONE,
        is_task: super::NONE,
        callback: super::NONE,
        waits_for: super::NONE,
        group_values: super::NONE,
        reserved: 0,
        running_by_loop: 0,
    };
}

/// Offset in a coroutine of its frame (`gi_iframe` of `PyGenObject`), from 3.12 on.
pub const COROUTINE_FRAME: u32 = 72;

/// Offsets in objects of several types that do not change between versions.
pub mod object {
    /// In any object, the pointer to its type (`ob_type`).
    pub const TYPE: u64 = 8;
    /// In a bound method (`PyCFunctionObject`), the pointer to its object (`m_self`).
    pub const BOUND_TO: u64 = 24;
    /// In a function (`PyFunctionObject`), the pointer to the tuple of its closure.
    pub const CLOSURE: u64 = 72;
    /// In that tuple (`PyTupleObject`), the fourth pointer: there `gather` and `wait` have a cell
    /// with their future (`Lib/asyncio/tasks.py`).
    pub const CELL: u64 = 24 + 3 * 8;
    /// In a cell (`PyCellObject`), the pointer to the object.
    pub const CELL_CONTENT: u64 = 16;
    /// How far before an object, in 3.12, is a word with the address of its attributes less 1.
    pub const VALUES_BEFORE: u64 = 24;
    /// In the attributes of a group (`Lib/asyncio/taskgroups.py`), the task that made the group.
    pub const GROUP_PARENT: u64 = 4 * 8;
    /// There, the future that this task waits for at the group's end.
    pub const GROUP_DONE: u64 = 9 * 8;
    /// In a set (`PySetObject`), the number of its elements.
    pub const SET_SIZE: u64 = 24;
}

/// Offsets in a dictionary whose keys are not all strings (`PyDictObject`, `PyDictKeysObject`).
pub mod dict {
    /// In a dictionary, the pointer to its keys.
    pub const KEYS: u64 = 32;
    /// In the keys, the byte with log2 of the bytes of the index, which is before the entries.
    pub const INDEX_BITS: u64 = 9;
    /// In the keys, the number of entries that were used.
    pub const USED: u64 = 24;
    /// Bytes of the keys in front of the index.
    pub const HEAD: u64 = 32;
    /// Words of an entry.
    pub const WORDS: usize = 3;
    /// The number of the word of an entry that is the value.
    pub const VALUE: usize = 2;
}

/// Event loops whose tasks are read, before 3.14: as many as the smallest dictionary has entries.
pub const RUNNING_MAX: usize = 5;

/// Offset in a type of its flags (`tp_flags`).
pub const TYPE_FLAGS: u64 = 168;
/// The number of the flag that strings have (`Py_TPFLAGS_UNICODE_SUBCLASS`).
pub const IS_TEXT: u32 = 28;

/// Offset in a string of its length.
pub const TEXT_LENGTH: u32 = 16;
/// Offset in a string of what kind it is (`state` of `PyASCIIObject`).
pub const TEXT_STATE: u32 = 32;
/// Offset in a string of its first character, if all characters are ASCII.
pub const TEXT_ASCII: u64 = 40;
/// Offset in a string of its first character, if not all characters are ASCII.
pub const TEXT_WIDE: u64 = 56;

/// Maximum number of bytes of a task's name in a record.
pub const TASK_TEXT: usize = 48;

/// Entries of a record for one task: the task, room for its name, and where its coroutine is.
pub const TASK_ENTRIES: usize = 2 + TASK_TEXT / size_of::<Entry>();

/// Maximum number of tasks and other futures, each awaiting the one before, that are read.
pub const AWAITING_MAX: usize = 15;

/// Maximum number of steps from a task to what awaits it, or to the next one that runs.
pub const TASK_STEPS: usize = 32;

const _: () = assert!(crate::limits::PYTHON_FRAMES_MAX + TASK_STEPS * TASK_ENTRIES < 1 << 10);
