//! What a file has of Python: an interpreter, asyncio's part in C, or nothing.
//!
//! A process without rights finds it out, and sends it to the one that asked:
//!
//! ```text
//! 1 and an interpreter, or 0; then 0, or 1 for a file that has asyncio's part,
//!     or 2 and where its tasks are
//! ```
//!
//! A hostile file may have taken over the process that answers, so nothing in the answer is
//! trusted.

use std::fs::File;

use super::{Asyncio, Interpreter, TaskLayout};
use crate::OpenError;
use crate::object::{Object, Summary};
use crate::wire::Taken;

const NOTHING: u8 = 0;
const SOMETHING: u8 = 1;
const WITH_TASKS: u8 = 2;

/// What a file has of Python.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PythonFile {
    /// Its interpreter; `None` if it has none, or one of an unknown version.
    pub interpreter: Option<Interpreter>,
    /// Set if it has asyncio's part in C; inside the positions of tasks, if it contains them.
    pub asyncio: Option<Option<TaskLayout>>,
}

impl PythonFile {
    /// Looks for Python in a file of this name. A damaged interpreter counts as none.
    pub fn read(file: &File, file_name: &[u8]) -> Result<PythonFile, OpenError> {
        let object = Object::read(file)?;
        let has_asyncio = Asyncio::may_be(&Summary::of(&object), file_name);
        Ok(PythonFile {
            interpreter: Interpreter::find(&object, file_name).ok().flatten(),
            asyncio: has_asyncio.then(|| Asyncio::find(&object)),
        })
    }

    /// Encodes it for another process.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match &self.interpreter {
            None => out.push(NOTHING),
            Some(interpreter) => {
                out.push(SOMETHING);
                interpreter.write(&mut out);
            }
        }
        match self.asyncio {
            None => out.push(NOTHING),
            Some(None) => out.push(SOMETHING),
            Some(Some(tasks)) => {
                out.push(WITH_TASKS);
                Asyncio::write(tasks, &mut out);
            }
        }
        out
    }

    /// Decodes the result of [`PythonFile::to_bytes`]; `None` if it is malformed.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<PythonFile> {
        let mut bytes = Taken(bytes);
        let found = PythonFile {
            interpreter: match bytes.u8()? {
                NOTHING => None,
                SOMETHING => Some(Interpreter::take(&mut bytes)?),
                _ => return None,
            },
            asyncio: match bytes.u8()? {
                NOTHING => None,
                SOMETHING => Some(None),
                WITH_TASKS => Some(Some(Asyncio::take(&mut bytes)?)),
                _ => return None,
            },
        };
        bytes.0.is_empty().then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::{TaskLinks, interpreter};
    use proptest::prelude::*;

    fn tasks() -> TaskLayout {
        TaskLayout {
            name: 136,
            coroutine: 128,
            links: TaskLinks::Told {
                running: 872,
                awaited_by: 96,
                is_set: 109,
                is_task: 108,
            },
        }
    }

    #[test]
    fn answers_arrive_as_they_were_given() {
        for interpreter in [None, Some(interpreter::example())] {
            for asyncio in [None, Some(None), Some(Some(tasks()))] {
                let interpreter = interpreter.clone();
                let found = PythonFile {
                    interpreter,
                    asyncio,
                };
                let bytes = found.to_bytes();
                assert_eq!(PythonFile::from_bytes(&bytes), Some(found.clone()));
                for len in 0..bytes.len() {
                    assert_eq!(PythonFile::from_bytes(&bytes[..len]), None, "{len}");
                }
                assert_eq!(PythonFile::from_bytes(&[&bytes[..], &[0]].concat()), None);
            }
        }
    }

    proptest! {
        #[test]
        fn damage_makes_another_answer_or_none(
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let found = PythonFile {
                interpreter: Some(interpreter::example()),
                asyncio: Some(Some(tasks())),
            };
            let mut bytes = found.to_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Some(found) = PythonFile::from_bytes(&bytes) {
                prop_assert_eq!(PythonFile::from_bytes(&found.to_bytes()), Some(found));
            }
        }

        #[test]
        fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            _ = PythonFile::from_bytes(&bytes);
        }
    }
}
