//! The code of files, in the process that writes it out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::READ_NAMES_BYTES_MAX;
use super::code_answer::CodeAnswer;
use super::code_order::{CodeFiles, CodeOrder, FunctionOrder};
use super::kept_lines::find_debug_file;
use super::run_time_order::{RunTimeAnswer, RunTimeOrder};
use crate::cache::Cache;
use crate::code::{self, CodeLines, run_time};
use crate::files::Reply;
use crate::jit::maps::CodeMaps;
use crate::object::Object;
use crate::{ElfSymbols, Lines, OpenError, Reason};

/// Maximum memory of the symbols and debug information of all files, except the one that was used
/// last.
const BYTES_MAX: usize = 64 << 20;

/// Maximum number of processes whose maps are kept: each look at their code gives them new numbers.
const MAPS_MAX: usize = 4;

/// Maximum memory of these maps, except those that were used last.
const MAPS_BYTES_MAX: usize = 16 << 20;

/// What was read of the files that were used last, by their numbers.
#[derive(Debug)]
pub struct KeptCode {
    files: Cache<u64, Result<Arc<CodeFile>, Reason>>,
    /// Maps of code that was made at run time, by the numbers of processes.
    maps: Cache<u64, Arc<Mutex<CodeMaps>>>,
    asked: Mutex<Instant>,
}

/// What was read of one file.
#[derive(Debug)]
struct CodeFile {
    symbols: Mutex<ElfSymbols>,
    lines: CodeLines,
    /// Whether the table of lines that was given along cannot be used.
    is_table_refused: bool,
}

impl Default for KeptCode {
    fn default() -> KeptCode {
        KeptCode {
            files: Cache::with_bytes_max(BYTES_MAX),
            maps: Cache::new(MAPS_MAX, MAPS_BYTES_MAX),
            asked: Mutex::new(Instant::now()),
        }
    }
}

impl KeptCode {
    /// Answers a question about the file with that number.
    pub fn answer(&self, number: u64, order: CodeOrder) -> Result<Reply, Reason> {
        *lock(&self.asked) = Instant::now();
        match order {
            CodeOrder::DebugFile(question) => find_debug_file(&question.file, &question.places),
            CodeOrder::Function(files, order) => self.function(number, files, &order),
            CodeOrder::RunTime(order) => Ok(self.run_time(number, &order)),
        }
    }

    fn function(
        &self,
        number: u64,
        files: CodeFiles,
        order: &FunctionOrder,
    ) -> Result<Reply, Reason> {
        let slot = self.files.slot(number);
        let file = slot.get_or_init(|| {
            let read = CodeFile::read(files);
            read.map(Arc::new).map_err(|error| error.reason())
        });
        let file = file.clone()?;
        let mut symbols = lock(&file.symbols);
        let found = code::find(&symbols, &file.lines, &order.question());
        symbols.bound_names(READ_NAMES_BYTES_MAX);
        drop(symbols);
        let answer = CodeAnswer {
            no_lines: file.lines.missing(),
            is_table_damaged: file.is_table_refused || file.lines.is_table_damaged(),
            found,
        };
        self.files.trim(heap_bytes);
        Ok(Reply {
            bytes: answer.write(),
            file: None,
        })
    }

    fn run_time(&self, number: u64, order: &RunTimeOrder) -> Reply {
        let maps = Arc::clone(self.maps.slot(number).get_or_init(Arc::default));
        let mut maps = lock(&maps);
        maps.take([order.map.as_ref(), order.dump.as_ref()]);
        maps.update();
        let answer = RunTimeAnswer {
            is_dump: maps.has_dump(),
            found: run_time::find(&mut maps, &order.question()),
        };
        drop(maps);
        self.maps.trim(|maps| lock(maps).heap_bytes());
        Reply {
            bytes: answer.write(),
            file: None,
        }
    }

    /// Drops everything if there was no question for so long. Returns whether nothing is left to
    /// drop.
    pub fn forget_unused(&self, unused_for: Duration) -> bool {
        let is_unused = lock(&self.asked).elapsed() >= unused_for;
        if is_unused {
            self.files.clear();
            self.maps.clear();
        }
        is_unused || self.files.values().is_empty() && self.maps.values().is_empty()
    }
}

impl CodeFile {
    fn read(files: CodeFiles) -> Result<CodeFile, OpenError> {
        let object = Object::read(&files.file)?;
        let symbols = ElfSymbols::with_debug_files(object, &files.places)?;
        let mut is_table_refused = false;
        let lines = CodeLines::new(&symbols, || {
            let lines = read_lines(files, symbols.object(), &mut is_table_refused);
            lines.map_err(|error| error.reason())
        });
        Ok(CodeFile {
            symbols: Mutex::new(symbols),
            lines,
            is_table_refused,
        })
    }
}

/// Reads the lines of a file: from their table if there is one that can be used, else from debug
/// information.
fn read_lines(
    files: CodeFiles,
    main: &Object,
    is_table_refused: &mut bool,
) -> Result<Option<Arc<Lines>>, OpenError> {
    if let Some((table, key)) = files.table {
        if let Ok(lines) = Lines::of_table(main, table, &key) {
            return Ok(Some(Arc::new(lines)));
        }
        *is_table_refused = true;
    }
    let separate = files.separate.as_ref().map(Object::read).transpose()?;
    let bytes_max = files.debug_bytes_max;
    let lines = Lines::with_separate(main, separate, files.places, None, bytes_max)?;
    Ok(lines.map(Arc::new))
}

fn heap_bytes(file: &Result<Arc<CodeFile>, Reason>) -> usize {
    let Ok(file) = file else {
        return 0;
    };
    lock(&file.symbols).heap_bytes() + file.lines.heap_bytes()
}

/// A panic while a lock is held would be a bug, after which this process ends.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
