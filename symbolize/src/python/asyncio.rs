//! What asyncio tells debuggers of its structures: from 3.14 on, in a section of the file that has
//! its part in C (`Modules/_asynciomodule.c`), which is a library or the interpreter itself.

use super::memory::word;
use crate::object::Object;

const SECTION: &[u8] = b".AsyncioDebug";

/// Bytes of `Py_AsyncioModuleDebugOffsets`: of a task, of an interpreter, of a thread state.
const BYTES: u32 = 104;

/// In that: the size of a task, and where the offsets of its name and its coroutine are told.
const TASK_SIZE: u32 = 0;
const TASK_NAME: u32 = 8;
const TASK_COROUTINE: u32 = 40;

/// The same of a thread state and the task that it runs.
const THREAD_SIZE: u32 = 72;
const RUNNING_TASK: u32 = 88;

/// No structure that is told of is larger.
const SIZE_MAX: u64 = 1 << 16;

/// Where asyncio keeps which task a thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asyncio {
    /// Of a thread state: the pointer to the task that it runs.
    pub running_task: u32,
    /// Of a task: the pointer to its name.
    pub task_name: u32,
    /// Of a task: the pointer to its coroutine.
    pub task_coroutine: u32,
}

impl Asyncio {
    /// Whether a file may have the part in C, whatever its name.
    pub fn may_be(object: &Object) -> bool {
        object.section_by_name(SECTION).is_some()
    }

    /// What a file tells; `None` if it does not, or what cannot be.
    pub fn find(object: &Object) -> Option<Asyncio> {
        let section = object.section_by_name(SECTION)?;
        let what = "the offsets of asyncio";
        let bytes = object.section_data(section, BYTES.into(), what).ok()?;
        Asyncio::read(&bytes)
    }

    /// What such a section tells.
    pub fn read(bytes: &[u8]) -> Option<Asyncio> {
        let told = |at| word(bytes, at).ok();
        let inside = |size, at| {
            let (size, offset) = (told(size)?, told(at)?);
            let is_inside =
                offset.is_multiple_of(8) && size <= SIZE_MAX && offset < size && size - offset >= 8;
            is_inside.then_some(offset as u32)
        };
        Some(Asyncio {
            running_task: inside(THREAD_SIZE, RUNNING_TASK)?,
            task_name: inside(TASK_SIZE, TASK_NAME)?,
            task_coroutine: inside(TASK_SIZE, TASK_COROUTINE)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What CPython 3.14.10 and 3.15.2 tell.
    const VERSIONS: [[u64; 13]; 2] = [
        [
            168, 136, 96, 108, 109, 128, 152, 225_864, 10_880, 936, 864, 872, 880,
        ],
        [
            168, 136, 96, 108, 109, 128, 152, 226_240, 10_856, 1104, 1024, 1032, 1048,
        ],
    ];

    fn read(words: &[u64]) -> Option<Asyncio> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Asyncio::read(&bytes)
    }

    #[test]
    fn a_file_tells_where_tasks_are() {
        for (words, running_task) in VERSIONS.iter().zip([872, 1032]) {
            let asyncio = Asyncio {
                running_task,
                task_name: 136,
                task_coroutine: 128,
            };
            assert_eq!(read(words), Some(asyncio));
        }
    }

    #[test]
    fn what_cannot_be_is_not_believed() {
        for (at, value) in [
            (1, 137),
            (1, 168),
            (1, u64::MAX - 7),
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
