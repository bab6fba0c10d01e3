//! Lets a process without rights make tables: the encoding of its orders and answers.
//!
//! ```text
//! answer: whether there is a table, then whether everything was there that has to do with it,
//!     or else why there is none. Its file is the table, as a file of the cache
//! ```
//!
//! Untrusted code may run in that process by then: its answer is read like a file of the cache that
//! may be damaged.

use super::make::{Made, make};
use crate::tables::cache::format;
use crate::tables::no_table::NoTable;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, BufReader, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use symbolize::debug_file::DebugFiles;
use symbolize::files::{Reply, Work};
use symbolize::object::Object;
use symbolize::parser::table_order::{self, TableQuestion};
use symbolize::{Files, Reason};

const TABLE: u8 = 0;
const NO_TABLE: u8 = 1;

/// Lets a parser make the table of a file. `key` is its key in the cache.
pub fn ask(
    file: &OwnedFd,
    places: &DebugFiles,
    key: &str,
    way: &Files,
    work: Work,
) -> Result<Made, NoTable> {
    let file = file.try_clone().map_err(|_| NoTable::Unreadable)?;
    let reply = table_order::ask(work, file.into(), places, key, way).map_err(no_table)?;
    read_answer(reply, key).unwrap_or(Err(NoTable::Damaged))
}

/// Makes the table that an order is about, in the parser process.
pub fn answer(message: &[u8], files: Vec<OwnedFd>, way: &Files) -> Result<Reply, Reason> {
    let question = TableQuestion::read(message, files, way).ok_or(Reason::Refused)?;
    let object = Object::read(&question.file).map_err(|error| error.reason())?;
    Ok(match make(&object, Some(&question.places)) {
        Ok(Made { table, is_complete }) => Reply {
            bytes: vec![TABLE, u8::from(is_complete)],
            file: Some(in_memory(&format::encode(&table, &question.key))?.into()),
        },
        Err(reason) => Reply {
            bytes: vec![NO_TABLE, reason as u8],
            file: None,
        },
    })
}

/// Decodes an answer; `None` if it is not one.
fn read_answer(reply: Reply, key: &str) -> Option<Result<Made, NoTable>> {
    Some(match reply.bytes[..] {
        [TABLE, is_complete] => {
            let mut file = File::from(reply.file?);
            file.rewind().ok()?;
            let length = file.metadata().ok()?.len();
            let length = Some(length).filter(|length| *length <= format::FILE_BYTES_MAX)?;
            Ok(Made {
                table: format::decode(BufReader::new(file), length, key)?,
                is_complete: is_complete != 0,
            })
        }
        [NO_TABLE, reason] => Err(*NoTable::ALL.get(usize::from(reason))?),
        _ => return None,
    })
}

fn in_memory(bytes: &[u8]) -> Result<File, Reason> {
    let memory = memfd_create("proftop-table", MemfdFlags::CLOEXEC).map_err(io::Error::from);
    let write = |memory: OwnedFd| {
        let mut file = File::from(memory);
        file.write_all(bytes).map(|()| file)
    };
    memory.and_then(write).map_err(|_| Reason::Refused)
}

/// Converts the reason why a file could not be understood to the reason why there is no table.
pub fn no_table(reason: Reason) -> NoTable {
    match reason {
        Reason::Damaged | Reason::Mistake => NoTable::Damaged,
        Reason::Unsupported => NoTable::UnsupportedMachine,
        // The process was ended by a limit of time or memory.
        Reason::Refused => NoTable::TooLarge,
        _ => NoTable::Unreadable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_none_costs_one_table() {
        let file = || Some(in_memory(b"no table").unwrap().into());
        let pipe = || Some(rustix::pipe::pipe().unwrap().0);
        let answers = [
            (vec![TABLE, 1], None),
            (vec![TABLE, 1], file()),
            (vec![TABLE, 1], pipe()),
            (vec![NO_TABLE, u8::MAX], None),
            (vec![2, 0], file()),
            (vec![TABLE], file()),
            (Vec::new(), None),
        ];
        for (bytes, file) in answers {
            assert!(read_answer(Reply { file, bytes }, "key").is_none());
        }
        let bytes = vec![NO_TABLE, NoTable::NoUnwindInfo as u8];
        let none = read_answer(Reply { file: None, bytes }, "key").expect("an answer");
        assert_eq!(none.err(), Some(NoTable::NoUnwindInfo));
    }
}
