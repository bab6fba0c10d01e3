//! The offsets in the structures of each CPython version that are read.
//!
//! Each version has a file with the offsets of the ordinary x86-64 build, taken from the debug
//! information of real builds. From 3.13 on the process itself has them, in the `_Py_DebugOffsets`
//! at the start of `_PyRuntime`. The contents of a process are checked for plausibility before they
//! are used (`threads`, `code`).

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
use crate::wire::Taken;
use offsets::Told;

/// The offsets of one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// In `_PyRuntime`: the pointer to the first interpreter.
    pub runtime_interpreters: u32,
    /// In an interpreter: the pointer to the next one.
    pub interpreter_next: u32,
    /// In an interpreter: the pointer to its first thread state.
    pub interpreter_threads: u32,
    /// Thread states.
    pub thread: ThreadLayout,
    /// Frames.
    pub frame: FrameLayout,
    /// Code objects.
    pub code: CodeLayout,
    /// In an interpreter: the pointer to the dictionary of its modules.
    pub interpreter_modules: u32,
    /// Where the global lock is.
    pub gil: Gil,
    /// How dictionaries and attributes are stored.
    pub objects: Objects,
    /// In a string of ASCII characters: its first character.
    pub ascii_data: u32,
    /// In another string: its first character.
    pub wide_data: u32,
    /// Where asyncio has its tasks; `None` if that is unknown, or if asyncio's own file describes
    /// it.
    pub tasks: Option<TaskLayout>,
}

/// Offsets in a thread state (`PyThreadState`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadLayout {
    /// The pointer to the next thread state.
    pub next: u32,
    /// The pointer to the innermost frame, or to a C frame.
    pub frame: u32,
    /// In a C frame (`_PyCFrame`): the pointer to the innermost frame; `None` if there are no C
    /// frames.
    pub c_frame: Option<u32>,
    /// `thread_id`, the `pthread_t`.
    pub thread_id: u32,
    /// `native_thread_id`, the result of `gettid`; `None` before 3.11.
    pub native_thread_id: Option<u32>,
}

/// Offsets in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLayout {
    /// Number of bytes from its start that contain all of these.
    pub bytes: u32,
    /// The pointer to the caller's frame.
    pub previous: u32,
    /// The pointer to the code object.
    pub code: u32,
    /// The current instruction: a pointer, or a number.
    pub instruction: u32,
    /// Factor from the number of an instruction to an offset in bytes; `None` if it is a pointer.
    pub instruction_bytes: Option<u32>,
    /// Which frames belong to one call of the interpreter's loop.
    pub groups: Groups,
    /// Whether the chain of every thread ends with a frame without a call: from 3.15 on.
    pub has_base: bool,
}

/// Which frames belong to one call of the interpreter's loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Groups {
    /// One.
    Each,
    /// Several frames: the last one has this byte set.
    Flagged(u32),
    /// Several frames: they are followed by one whose owner, stored in this byte, is C.
    OwnedByC(u32),
}

/// Number of bytes of a code object, from the word with its first line on, that contain its
/// identity in all versions: both are read at once.
pub const IDENTITY_REACH: u32 = 96;

/// Offsets in a code object (`PyCodeObject`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeLayout {
    /// Number of bytes from its start that contain all of these.
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
    /// Encoding of that table.
    pub lines: LineTable,
    /// Four words that never change and that two code objects hardly have in common: pointers to
    /// its names and tables.
    pub identity: u32,
    /// The first instruction; 0 if frames have numbers of instructions.
    pub start: u32,
}

impl CodeLayout {
    /// The most informative name.
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
    /// Which task runs, and what awaits a task.
    pub links: TaskLinks,
}

/// Which task runs, and what awaits a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskLinks {
    /// From 3.14 on: described by asyncio itself.
    Told {
        /// In a thread state: the pointer to the running task.
        running: u32,
        /// In a task or other future: the pointer to what awaits it.
        awaited_by: u32,
        /// In a task or other future: the byte that says that this is a set of several.
        is_set: u32,
        /// In a task or other future: the byte that says that it is a task.
        is_task: u32,
    },
    /// In 3.12 and 3.13 a dictionary has the running task of each event loop.
    Callbacks {
        /// In a task or other future: the pointer to the first callback for when it is done.
        callback: u32,
        /// In a task: the pointer to what it waits for.
        waits_for: u32,
        /// In a `TaskGroup`: its attributes; `None` if a pointer before it leads to them.
        group_values: Option<u32>,
    },
}

/// Encoding of a table of lines.
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
    /// In `_PyRuntime`, at this offset: up to 3.11.
    Runtime(u32),
    /// An interpreter has a pointer to it at this offset.
    Interpreter(u32),
}

/// How dictionaries and the attributes of objects are stored, which changed more often than
/// anything else that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Objects {
    /// Where attributes are.
    pub attributes: Attributes,
    /// In a type defined in Python: the pointer to the names of its objects' attributes.
    pub cached_keys: u32,
}

/// Where the attributes of an object are whose class was defined in Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attributes {
    /// In a dictionary whose offset the type has: up to 3.10.
    Dict,
    /// In an array, or in a dictionary, by two pointers before the object: 3.11.
    TwoPointers,
    /// In an array, or in a dictionary, by one pointer whose lowest bit says which it is: 3.12.
    OnePointer,
    /// After the object, unless the pointer before it leads to a dictionary: from 3.13 on.
    Inline,
}

impl Objects {
    /// Offset of the first value in an array of values.
    pub(super) fn values_start(&self) -> u64 {
        match self.attributes {
            Attributes::Inline => 8,
            Attributes::Dict | Attributes::TwoPointers | Attributes::OnePointer => 0,
        }
    }
}

/// How the layout of a version is known.
enum Source {
    /// It is the same in every process.
    Fixed(Layout),
    /// Each process tells it.
    Told(&'static Told),
}

impl Source {
    fn of(version: Version) -> Option<Source> {
        Some(match (version.major, version.minor) {
            (3, 8) => Source::Fixed(v3_8::LAYOUT),
            (3, 9) => Source::Fixed(v3_9::LAYOUT),
            (3, 10) => Source::Fixed(v3_10::LAYOUT),
            (3, 11) => Source::Fixed(v3_11::LAYOUT),
            (3, 12) => Source::Fixed(v3_12::LAYOUT),
            (3, 13) => Source::Told(&v3_13::TOLD),
            (3, 14) => Source::Told(&v3_14::TOLD),
            (3, 15) => Source::Told(&v3_15::TOLD),
            _ => return None,
        })
    }
}

impl Layout {
    /// Returns the layout of a process with its `_PyRuntime` at this address.
    pub fn of(version: Version, memory: &impl Memory, runtime: u64) -> Result<Layout, Lack> {
        match Source::of(version) {
            Some(Source::Fixed(layout)) => Ok(layout),
            Some(Source::Told(told)) => told.read(version, memory, runtime),
            None => Err(Lack::UnknownVersion(version)),
        }
    }

    /// Encodes it for another process: what the process of this version has told.
    pub(crate) fn write(&self, version: Version, out: &mut Vec<u8>) {
        if let Some(Source::Told(told)) = Source::of(version) {
            told.write(self, out);
        }
    }

    /// Decodes the layout of a process of this version; `None` if it is malformed, or not one that
    /// [`Layout::of`] would accept.
    pub(crate) fn take(version: Version, bytes: &mut Taken<'_>) -> Option<Layout> {
        match Source::of(version)? {
            Source::Fixed(layout) => Some(layout),
            Source::Told(told) => told.take(bytes),
        }
    }
}
