//! Finds the tasks of asyncio.
//!
//! 1. From 3.14 on, asyncio describes its structures for debuggers in a section of the file that
//!    has its C part (`Modules/_asynciomodule.c`), which is a library or the interpreter itself. A
//!    thread state has the task that it runs, and each task has what awaits it.
//! 2. In 3.12 and 3.13, a dictionary has the running task of each event loop, and a task has the
//!    callbacks for when it is done. The module `_asyncio` of the process has that dictionary under
//!    a name.

use super::dict::{read_dict, read_word};
use super::layout::{Layout, TaskLayout, TaskLinks};
use super::memory::{Lack, Memory, word};
use super::modules::{MODULE_DICT, find_modules, value_of};
use crate::object::{ASYNCIO_SECTION, Object, Summary};
use crate::wire::{Taken, put_u32};

/// Size of `Py_AsyncioModuleDebugOffsets`: offsets in a task, in an interpreter, in a thread state.
const BYTES: u32 = 104;

/// Positions in it: of the size of a task, and of the offsets in a task.
const TASK_SIZE: u32 = 0;
const TASK_NAME: u32 = 8;
const TASK_AWAITED_BY: u32 = 16;
const TASK_IS_TASK: u32 = 24;
const TASK_IS_SET: u32 = 32;
const TASK_COROUTINE: u32 = 40;

/// Positions of the size of a thread state, and of the offset of the task that it runs.
const THREAD_SIZE: u32 = 72;
const RUNNING_TASK: u32 = 88;

/// Maximum size of a structure.
const SIZE_MAX: u64 = 1 << 16;

/// Prefix of the name of the library with asyncio's C part.
const FILE_NAME: &[u8] = b"_asyncio.";

/// Searches a file for asyncio's description of its structures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asyncio;

impl Asyncio {
    /// Whether a file may have the C part, whatever its name.
    pub fn may_be(summary: &Summary, file_name: &[u8]) -> bool {
        file_name.starts_with(FILE_NAME) || summary.has_asyncio
    }

    /// Reads the description from a file; `None` if it has none, or an impossible one.
    pub fn find(object: &Object) -> Option<TaskLayout> {
        let section = object.section_by_name(ASYNCIO_SECTION)?;
        let what = "the offsets of asyncio";
        let bytes = object.section_data(section, BYTES.into(), what).ok()?;
        Asyncio::read(&bytes)
    }

    /// Encodes the positions of tasks for another process.
    pub(super) fn write(tasks: TaskLayout, out: &mut Vec<u8>) {
        let words = match tasks.links {
            TaskLinks::Told {
                running,
                awaited_by,
                is_set,
                is_task,
            } => [running, awaited_by, is_set, is_task],
            // No file tells these.
            TaskLinks::Callbacks { .. } => [u32::MAX; 4],
        };
        for word in [tasks.name, tasks.coroutine].into_iter().chain(words) {
            put_u32(out, word);
        }
    }

    /// Decodes what [`Asyncio::write`] has encoded; `None` if it is malformed.
    pub(super) fn take(bytes: &mut Taken<'_>) -> Option<TaskLayout> {
        let mut inside = |size: u32| {
            let offset = bytes.u32()?;
            let is_inside = offset.is_multiple_of(size) && u64::from(offset) < SIZE_MAX;
            is_inside.then_some(offset)
        };
        Some(TaskLayout {
            name: inside(8)?,
            coroutine: inside(8)?,
            links: TaskLinks::Told {
                running: inside(8)?,
                awaited_by: inside(8)?,
                is_set: inside(1)?,
                is_task: inside(1)?,
            },
        })
    }

    /// Parses such a section.
    pub fn read(bytes: &[u8]) -> Option<TaskLayout> {
        let told = |at| word(bytes, at).ok();
        let inside = |size, at, bytes: u64| {
            let (size, offset) = (told(size)?, told(at)?);
            let is_inside = offset.is_multiple_of(bytes)
                && size <= SIZE_MAX
                && offset < size
                && size - offset >= bytes;
            is_inside.then_some(offset as u32)
        };
        Some(TaskLayout {
            name: inside(TASK_SIZE, TASK_NAME, 8)?,
            coroutine: inside(TASK_SIZE, TASK_COROUTINE, 8)?,
            links: TaskLinks::Told {
                running: inside(THREAD_SIZE, RUNNING_TASK, 8)?,
                awaited_by: inside(TASK_SIZE, TASK_AWAITED_BY, 8)?,
                is_set: inside(TASK_SIZE, TASK_IS_SET, 1)?,
                is_task: inside(TASK_SIZE, TASK_IS_TASK, 1)?,
            },
        })
    }
}

/// Returns the dictionary in which asyncio of 3.12 and 3.13 has the running task of each event
/// loop. `None` if the process has not loaded asyncio. If there are several interpreters, that of
/// the first.
pub fn find_running_tasks(
    memory: &impl Memory,
    runtime: u64,
    layout: &Layout,
) -> Result<Option<u64>, Lack> {
    let modules = find_modules(memory, runtime, layout, "_asyncio")?;
    let Some(module) = modules.last() else {
        return Ok(None);
    };
    let attributes = read_word(memory, module.wrapping_add(MODULE_DICT))?;
    let attributes = read_dict(memory, attributes, layout)?;
    Ok(value_of(memory, &attributes, "_current_tasks", layout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::in_words::{VERSION, memory, text};

    /// Contents of the section in CPython 3.14.10 and 3.15.2.
    const VERSIONS: [[u64; 13]; 2] = [
        [
            168, 136, 96, 108, 109, 128, 152, 225_864, 10_880, 936, 864, 872, 880,
        ],
        [
            168, 136, 96, 108, 109, 128, 152, 226_240, 10_856, 1104, 1024, 1032, 1048,
        ],
    ];

    fn read(words: &[u64]) -> Option<TaskLayout> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Asyncio::read(&bytes)
    }

    #[test]
    fn a_file_tells_where_tasks_are() {
        for (words, running) in VERSIONS.iter().zip([872, 1032]) {
            let tasks = TaskLayout {
                name: 136,
                coroutine: 128,
                links: TaskLinks::Told {
                    running,
                    awaited_by: 96,
                    is_set: 109,
                    is_task: 108,
                },
            };
            assert_eq!(read(words), Some(tasks));
        }
    }

    const RUNTIME: u64 = 0x1000;
    const INTERPRETER: u64 = 0x2000;
    const MODULES: u64 = 0x3000;
    const MODULE_KEYS: u64 = 0x4000;
    const MODULE: u64 = 0x5000;
    const NAMES: u64 = 0x6000;
    const NAME_KEYS: u64 = 0x7000;
    const TEXTS: u64 = 0x8000;
    const RUNNING: u64 = 0x9000;

    /// Looks for the dictionary in a process of 3.12 that has imported a module of this name, in
    /// which this is called [`RUNNING`].
    fn imported(module: &str, name: &str) -> Result<Option<u64>, Lack> {
        let mut words = vec![
            (RUNTIME + 40, INTERPRETER),
            (INTERPRETER + 944, MODULES),
            (MODULES + 32, MODULE_KEYS),
            (MODULE_KEYS + 8, 1 << 16 | 3 << 8),
            (MODULE_KEYS + 24, 1),
            (MODULE_KEYS + 40, TEXTS),
            (MODULE_KEYS + 48, MODULE),
            (MODULE + 16, NAMES),
            (NAMES + 32, NAME_KEYS),
            (NAME_KEYS + 8, 1 << 16 | 3 << 8),
            (NAME_KEYS + 24, 1),
            (NAME_KEYS + 40, TEXTS + 0x100),
            (NAME_KEYS + 48, RUNNING),
        ];
        words.extend(text(TEXTS, module));
        words.extend(text(TEXTS + 0x100, name));
        let memory = memory(&words);
        let layout = Layout::of(VERSION, &memory, RUNTIME)?;
        find_running_tasks(&memory, RUNTIME, &layout)
    }

    #[test]
    fn the_module_has_the_tasks_that_run() {
        assert_eq!(imported("_asyncio", "_current_tasks"), Ok(Some(RUNNING)));
        assert_eq!(imported("_asyncio", "_other"), Ok(None));
        assert_eq!(imported("asyncio", "_current_tasks"), Ok(None));
    }

    #[test]
    fn what_cannot_be_is_not_believed() {
        for (at, value) in [
            (1, 137),
            (1, 168),
            (1, u64::MAX - 7),
            (2, 97),
            (3, 168),
            (4, u64::MAX),
            (5, 1 << 40),
            (0, 1 << 40),
            (9, 8),
            (11, 933),
        ] {
            let mut words = VERSIONS[0];
            words[at] = value;
            assert_eq!(read(&words), None, "{value} at {at}");
        }
        assert_eq!(read(&VERSIONS[0][..11]), None);
        assert_eq!(read(&[]), None);
    }
}
