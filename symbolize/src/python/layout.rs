//! Where each version of CPython keeps what is read of it: offsets in its structures.
//!
//! Each version has a file with the offsets of the ordinary x86-64 build, read from the
//! debug information of real builds. From 3.13 on the process tells them itself, in the
//! `_Py_DebugOffsets` at the start of `_PyRuntime`. What a process has is held against what
//! it must look like before anything is believed (`threads`, `code`).

mod offsets;
mod v3_10;
mod v3_11;
mod v3_12;
mod v3_13;
mod v3_14;
mod v3_15;
mod v3_8;
mod v3_9;

use super::Version;
use super::memory::{Lack, Memory};

/// The offsets of one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Of `_PyRuntime`: the pointer to the first interpreter.
    pub runtime_interpreters: u32,
    /// Of an interpreter: the pointer to the next one.
    pub interpreter_next: u32,
    /// Of an interpreter: the pointer to its first thread state.
    pub interpreter_threads: u32,
    /// Thread states.
    pub thread: ThreadLayout,
    /// Frames.
    pub frame: FrameLayout,
    /// Code objects.
    pub code: CodeLayout,
    /// Of an interpreter: the pointer to the dictionary of its modules.
    pub interpreter_modules: u32,
    /// Where the global lock is.
    pub gil: Gil,
    /// How dictionaries and attributes are kept.
    pub objects: Objects,
    /// Of a string of ASCII characters: its first one.
    pub ascii_data: u32,
    /// Of another string: its first character.
    pub wide_data: u32,
    /// Where asyncio keeps its tasks; `None` if that is not known, or is told by its file.
    pub tasks: Option<TaskLayout>,
}

/// Offsets in a thread state (`PyThreadState`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadLayout {
    /// The pointer to the next thread state.
    pub next: u32,
    /// The pointer to the innermost frame, or to a C frame.
    pub frame: u32,
    /// Of a C frame (`_PyCFrame`), the pointer to the innermost frame; `None` if there are
    /// no C frames.
    pub c_frame: Option<u32>,
    /// `thread_id`, the `pthread_t`.
    pub thread_id: u32,
    /// `native_thread_id`, what `gettid` gave; `None` before 3.11.
    pub native_thread_id: Option<u32>,
}

/// Offsets in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLayout {
    /// The bytes from its start that hold all of these.
    pub bytes: u32,
    /// The pointer to the caller's frame.
    pub previous: u32,
    /// The pointer to the code object.
    pub code: u32,
    /// The instruction: a pointer, or a number.
    pub instruction: u32,
    /// What the number of an instruction is multiplied by for an offset in bytes; `None`
    /// where it is a pointer.
    pub instruction_bytes: Option<u32>,
    /// Which frames one call of the interpreter's loop runs.
    pub groups: Groups,
    /// Whether the chain of every thread ends with a frame that no call made: from 3.15 on.
    pub has_base: bool,
}

/// Which frames one call of the interpreter's loop runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Groups {
    /// One.
    Each,
    /// Several: the last has this byte set.
    Flagged(u32),
    /// Several: behind them is one whose owner, this byte, is C.
    OwnedByC(u32),
}

/// Bytes of a code object, from the word with its first line on, in which its identity is in all
/// versions: both are read at once.
pub const IDENTITY_REACH: u32 = 96;

/// Offsets in a code object (`PyCodeObject`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeLayout {
    /// The bytes from its start that hold all of these.
    pub bytes: u32,
    /// `co_firstlineno`.
    pub first_line: u32,
    /// `co_filename`.
    pub file: u32,
    /// `co_name`.
    pub name: u32,
    /// `co_qualname`; `None` before 3.11.
    pub qualified_name: Option<u32>,
    /// The table of lines.
    pub line_table: u32,
    /// How that is written.
    pub lines: LineTable,
    /// Four words that are never written again, and that two code objects hardly have in
    /// common: pointers to its names and tables.
    pub identity: u32,
    /// The first instruction; 0 where frames have numbers of instructions.
    pub start: u32,
}

impl CodeLayout {
    /// The name that tells most.
    pub(super) fn name_or_qualified(&self) -> u32 {
        self.qualified_name.unwrap_or(self.name)
    }
}

/// Offsets in a task of asyncio (`TaskObj` of `Modules/_asynciomodule.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskLayout {
    /// The pointer to its name.
    pub name: u32,
    /// The pointer to its coroutine.
    pub coroutine: u32,
    /// Which task runs, and what awaits it.
    pub links: TaskLinks,
}

/// Which task runs, and what awaits a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskLinks {
    /// From 3.14 on.
    Told {
        /// Of a thread state: the pointer to the task that it runs.
        running: u32,
        /// Of a task or other future: the pointer to what awaits it.
        awaited_by: u32,
        /// Of such: the byte that says that this is a set of several.
        is_set: u32,
        /// Of such: the byte that says that it is a task.
        is_task: u32,
    },
    /// In 3.12 and 3.13 a dictionary has the task that runs for each event loop.
    Callbacks {
        /// Of a task or other future: the pointer to what is called first when it is done.
        callback: u32,
        /// Of a task: the pointer to what it waits for.
        waits_for: u32,
        /// Of a `TaskGroup`: its attributes; `None` if a pointer before it leads to them.
        group_values: Option<u32>,
    },
}

/// How a table of lines is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineTable {
    /// `co_lnotab`: up to 3.9.
    Steps,
    /// `co_linetable` of 3.10 (PEP 626).
    Ranges,
    /// `co_linetable` from 3.11 on (PEP 657).
    Locations,
}

/// Where the global lock is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gil {
    /// In `_PyRuntime`, so far from its start: up to 3.11.
    Runtime(u32),
    /// An interpreter has a pointer to it there.
    Interpreter(u32),
}

/// How dictionaries and the attributes of objects are kept, which changed more often than
/// anything else that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Objects {
    /// Where attributes are.
    pub attributes: Attributes,
    /// Of a type that a program made: the pointer to the names of its objects' attributes.
    pub cached_keys: u32,
}

/// Where the attributes of an object are whose class a program made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attributes {
    /// In a dictionary, the type says where: up to 3.10.
    Dict,
    /// In an array, or in a dictionary, by two pointers before the object: 3.11.
    TwoPointers,
    /// The same by one pointer, whose lowest bit says which it is: 3.12.
    OnePointer,
    /// Behind the object, unless the pointer before it leads to a dictionary: from 3.13 on.
    Inline,
}

impl Objects {
    /// From the start of an array of values to its first one.
    pub(super) fn values_start(&self) -> u64 {
        match self.attributes {
            Attributes::Inline => 8,
            Attributes::Dict | Attributes::TwoPointers | Attributes::OnePointer => 0,
        }
    }
}

impl Layout {
    /// That of a process with its `_PyRuntime` at this address.
    pub fn of(version: Version, memory: &impl Memory, runtime: u64) -> Result<Layout, Lack> {
        match (version.major, version.minor) {
            (3, 8) => Ok(v3_8::LAYOUT),
            (3, 9) => Ok(v3_9::LAYOUT),
            (3, 10) => Ok(v3_10::LAYOUT),
            (3, 11) => Ok(v3_11::LAYOUT),
            (3, 12) => Ok(v3_12::LAYOUT),
            (3, 13) => v3_13::TOLD.read(version, memory, runtime),
            (3, 14) => v3_14::TOLD.read(version, memory, runtime),
            (3, 15) => v3_15::TOLD.read(version, memory, runtime),
            _ => Err(Lack::UnknownVersion(version)),
        }
    }
}
