//! Tasks of asyncio: where a process keeps which one runs, what each is called, and which awaits
//! which.

use super::Entry;

/// Where one version of asyncio keeps what is read of its tasks: offsets in its structures, and
/// [`NONE`](super::NONE) where it has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct TaskLayout {
    /// Of a task: the pointer to its name, a string that the program gave it or a number.
    /// [`NONE`](super::NONE) if nothing is known of tasks.
    pub name: u32,
    /// Of a task: the pointer to its coroutine.
    pub coroutine: u32,
    /// Of a thread state: the pointer to the task that it runs, from 3.14 on.
    pub running: u32,
    /// Of a task or another future: the pointer to what awaits it, from 3.14 on.
    pub awaited_by: u32,
    /// Of such: the byte that says that this is a set of several.
    pub is_set: u32,
    /// Of such: the byte that says that it is a task.
    pub is_task: u32,
    /// Of a task, before 3.14: the pointer to what is called first when it is done.
    pub callback: u32,
    /// Of a task, before 3.14: the pointer to what it waits for.
    pub waits_for: u32,
    /// Of a group of tasks, before 3.14: its attributes; [`NONE`](super::NONE) if a pointer before
    /// it leads to them.
    pub group_values: u32,
    /// What there is for alignment.
    pub reserved: u32,
    /// Before 3.14: the dictionary that has the task which runs for each event loop; 0 if it is not
    /// known where that is.
    pub running_by_loop: u64,
}

impl TaskLayout {
    /// Nothing is known of tasks.
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

/// Of a coroutine: its frame, in it (`gi_iframe` of `PyGenObject`), from 3.12 on.
pub const COROUTINE_FRAME: u32 = 72;

/// Offsets in any object, and what else does not change between versions.
pub mod object {
    /// `ob_type`.
    pub const TYPE: u64 = 8;
    /// Of a method that is bound to an object (`m_self` of `PyCFunctionObject`): that one.
    pub const BOUND_TO: u64 = 24;
    /// Of a function (`PyFunctionObject`): the pointer to the tuple of what it knows of functions
    /// around it; of that (`PyTupleObject`) the fourth pointer, where `gather` and `wait` have their
    /// future (`Lib/asyncio/tasks.py`); and of what that leads to (`PyCellObject`) the pointer to the
    /// object.
    pub const CLOSURE: u64 = 72;
    pub const CELL: u64 = 24 + 3 * 8;
    pub const CELL_CONTENT: u64 = 16;
    /// Before an object, in 3.12: a pointer to its attributes, less 1.
    pub const VALUES_BEFORE: u64 = 24;
    /// Of the attributes of a group (`Lib/asyncio/taskgroups.py`): the task that made it, and what
    /// that waits for at its end.
    pub const GROUP_PARENT: u64 = 4 * 8;
    pub const GROUP_DONE: u64 = 9 * 8;
    /// Of a set (`PySetObject`): how many it has.
    pub const SET_SIZE: u64 = 24;
}

/// A dictionary whose keys are not all strings (`PyDictObject`, `PyDictKeysObject`).
pub mod dict {
    /// Of a dictionary: the pointer to its keys.
    pub const KEYS: u64 = 32;
    /// Of keys: the byte with the logarithm of how many bytes of numbers are before the entries.
    pub const INDEX_BITS: u64 = 9;
    /// Of keys: how many entries were used.
    pub const USED: u64 = 24;
    /// Of keys: what is before the entries without the numbers.
    pub const HEAD: u64 = 32;
    /// Words of an entry, and which of them is the value.
    pub const WORDS: usize = 3;
    pub const VALUE: usize = 2;
}

/// Event loops whose tasks are looked at, before 3.14: the smallest dictionary has so many entries.
pub const RUNNING_MAX: usize = 5;

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

/// Entries of a record that a task takes: itself, room for its name, and where its coroutine is.
pub const TASK_ENTRIES: usize = 2 + TASK_TEXT / size_of::<Entry>();

/// Tasks and other futures that await each other and are looked at.
pub const AWAITING_MAX: usize = 15;

/// Steps from a task to what awaits it, and to the next one that runs.
pub const TASK_STEPS: usize = 32;

const _: () = assert!(crate::limits::PYTHON_FRAMES_MAX + TASK_STEPS * TASK_ENTRIES < 1 << 10);
