//! The lines of files, in the process that reads debug information.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};

use super::lines_order::{LinesQuestion, Wanted, write_lines, write_program};
use super::names::SourceLine;
use crate::cache::Cache;
use crate::debug_file::DebugFiles;
use crate::demangle::shown;
use crate::files::Reply;
use crate::object::Object;
use crate::table::SourceFrame;
use crate::{FileId, FileOffset, Lines, Reason, lines, sanitize};

/// Maximum memory of the debug information of all files, except the one that was used last.
const BYTES_MAX: usize = 10 << 20;

/// The lines of the files that were used last, by their numbers.
#[derive(Debug)]
pub struct KeptLines(Cache<u64, Result<Option<Arc<Lines>>, Reason>>);

impl Default for KeptLines {
    fn default() -> KeptLines {
        KeptLines(Cache::with_bytes_max(BYTES_MAX))
    }
}

impl KeptLines {
    /// Answers a question about the file with that number.
    pub fn answer(&self, number: u64, question: LinesQuestion) -> Result<Reply, Reason> {
        match question.wanted {
            Wanted::DebugFile => find_debug_file(&question.file, &question.places),
            Wanted::IsLacking => {
                let main = Object::read(&question.file).map_err(|error| error.reason())?;
                let is_lacking = lines::lacks_debug_file(&main, &question.places);
                Ok(Reply {
                    bytes: vec![is_lacking.into()],
                    file: None,
                })
            }
            Wanted::Places => {
                let offsets = question.offsets.clone();
                let lines = self.lines(number, question)?;
                let chains = offsets.iter().map(|offset| lines_at(&lines, *offset));
                let bytes = write_lines(lines.unread_bytes(), chains);
                self.0.trim(heap_bytes);
                Ok(Reply { bytes, file: None })
            }
            Wanted::WholeTable => {
                let key = question.key.clone();
                let table = whole_table(&*self.lines(number, question)?, &key)?;
                // From now on the asking process uses the table itself.
                self.0.forget(&number);
                Ok(Reply {
                    file: Some(table.into()),
                    bytes: Vec::new(),
                })
            }
        }
    }

    /// Drops data that was not used for so long and can be read again. Returns whether nothing is
    /// left to drop.
    pub fn forget_units(&self, unused_for: Duration) -> bool {
        let kept = self.0.values().into_iter().flatten().flatten();
        // Visits all, without short-circuiting.
        let left = kept.filter(|lines| !lines.forget_units(unused_for));
        left.count() == 0
    }

    fn lines(&self, number: u64, question: LinesQuestion) -> Result<Arc<Lines>, Reason> {
        let slot = self.0.slot(number);
        let lines = slot.get_or_init(|| {
            let LinesQuestion {
                file,
                separate,
                places,
                bytes_max,
                ..
            } = question;
            let open = || {
                let main = Object::read(&file)?;
                let separate = separate.as_ref().map(Object::read).transpose()?;
                Lines::with_separate(&main, separate, places, None, bytes_max)
            };
            open()
                .map(|lines| lines.map(Arc::new))
                .map_err(|error| error.reason())
        });
        lines.clone()?.ok_or(Reason::Stripped)
    }
}

fn heap_bytes(lines: &Result<Option<Arc<Lines>>, Reason>) -> usize {
    match lines {
        Ok(Some(lines)) => lines.heap_bytes(),
        Ok(None) | Err(_) => 0,
    }
}

/// Returns which file has the debug information of a program, and the identity of the program.
pub fn find_debug_file(file: &File, places: &DebugFiles) -> Result<Reply, Reason> {
    let main = Object::read(file).map_err(|error| error.reason())?;
    let separate = lines::separate(&main, places);
    let has_info = separate.as_ref().unwrap_or(&main).has_debug_info();
    let id: Option<FileId> = has_info
        .then(|| main.file_id().map_err(|error| error.reason()))
        .transpose()?;
    Ok(Reply {
        bytes: write_program(id.as_ref()),
        file: separate.and_then(|object| object.source().descriptor()),
    })
}

/// Makes the table of all lines of a file, as a file in memory.
fn whole_table(lines: &Lines, key: &[u8]) -> Result<File, Reason> {
    let memory = memfd_create("proftop-lines", MemfdFlags::CLOEXEC);
    let mut table = BufWriter::new(File::from(memory.map_err(|_| Reason::Refused)?));
    lines
        .write_whole(key, &mut table)
        .map_err(|error| error.reason())?;
    table.flush().map_err(|_| Reason::Refused)?;
    table.into_inner().map_err(|_| Reason::Refused)
}

/// Returns the functions at a place, innermost first; empty if the debug information has none.
pub fn lines_at(lines: &Lines, offset: FileOffset) -> Vec<SourceLine> {
    let found = lines.find(offset);
    found.map_or_else(Vec::new, |(table, addr)| {
        table.find(addr).map(source_line).collect()
    })
}

/// Converts a line of a table to one that is safe to print.
pub fn source_line(frame: SourceFrame<'_>) -> SourceLine {
    SourceLine {
        function: frame.function.map_or_else(String::new, shown),
        file: sanitize(&frame.path()).into_owned(),
        line: frame.line,
    }
}
