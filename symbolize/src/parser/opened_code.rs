//! The code of a file, on the asking side.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::code_answer::CodeAnswer;
use super::code_order::{CodeSubject, write_debug_file, write_function};
use super::lines_order::{self, Subject, Wanted};
use super::opened::OpenedFile;
use super::opened_lines::{LinesPlace, read_place};
use crate::code::CodeQuestion;
use crate::debug_file::DebugFiles;
use crate::files::Work;
use crate::table_cache::{TableCache, TableKey};
use crate::{Files, Reason};

/// The code of one file, which another process finds.
#[derive(Debug)]
pub struct OpenedCode {
    opened: Arc<OpenedFile>,
    /// Where its debug files may be.
    places: DebugFiles,
    /// Sends the questions to a parser process.
    way: Files,
    /// The tables of lines that earlier runs have stored.
    cache: Option<Arc<TableCache>>,
    /// Maximum memory of debug information.
    bytes_max: u64,
    /// Set by the first question.
    debug: OnceLock<Debug>,
    is_damaged: AtomicBool,
}

/// The debug information of a file.
#[derive(Debug)]
struct Debug {
    /// The file that has it, if it is another one: a process that replaces another one has to read
    /// the same file.
    separate: Option<File>,
    /// The key of the table of its lines in the cache.
    key: Option<TableKey>,
    /// That table, if an earlier run has stored it. Only the parser reads it.
    table: Option<File>,
}

impl OpenedCode {
    /// Asks nothing yet.
    pub fn new(
        opened: Arc<OpenedFile>,
        places: DebugFiles,
        way: &Files,
        cache: Option<&Arc<TableCache>>,
        bytes_max: u64,
    ) -> OpenedCode {
        OpenedCode {
            opened,
            places,
            way: way.clone(),
            cache: cache.cloned(),
            bytes_max,
            debug: OnceLock::new(),
            is_damaged: AtomicBool::new(false),
        }
    }

    /// Has the code of a function found.
    pub fn find(&self, question: &CodeQuestion<'_>) -> Result<CodeAnswer, Reason> {
        let debug = match self.debug.get() {
            Some(debug) => debug,
            None => {
                let debug = self.find_debug()?;
                self.debug.get_or_init(|| debug)
            }
        };
        let subject = CodeSubject {
            file: self.opened.file(),
            separate: debug.separate.as_ref(),
            table: debug.table.as_ref().zip(debug.key.as_ref()),
            places: &self.places,
            debug_bytes_max: self.bytes_max,
        };
        let (message, files) = write_function(subject, question);
        let reply = self.opened.order(&self.way, Work::Code, &files, &message)?;
        let answer = CodeAnswer::read(&reply.bytes, question.bytes_max).ok_or(Reason::Refused)?;
        if answer.is_table_damaged && subject.table.is_some() {
            self.is_damaged.store(true, Ordering::Relaxed);
        }
        Ok(answer)
    }

    /// Finds the debug information, and its table in the cache.
    fn find_debug(&self) -> Result<Debug, Reason> {
        let subject = Subject {
            file: self.opened.file(),
            separate: None,
            places: &self.places,
            bytes_max: self.bytes_max,
            key: &[],
        };
        let (message, files) = lines_order::write(Wanted::DebugFile, subject, &[]);
        let message = write_debug_file(&message);
        let reply = self.opened.order(&self.way, Work::Code, &files, &message)?;
        let place = read_place(reply, self.opened.file())?;
        let LinesPlace { separate, key } = place.unwrap_or_default();
        let kept = self.cache.as_ref().zip(key.as_ref());
        let table = kept.and_then(|(cache, key)| cache.open_unread(key));
        Ok(Debug {
            separate,
            key,
            table,
        })
    }

    /// The file itself.
    pub fn file(&self) -> &File {
        self.opened.file()
    }

    /// Whether the table on disk turned out to differ from what was written.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    /// The key of the table in the cache; `None` if it cannot be stored there.
    pub fn key(&self) -> Option<&TableKey> {
        self.debug.get()?.key.as_ref()
    }
}
