//! The memory of one process that runs Python, in the process that asks what is in it.
//!
//! A reader opens `/proc/PID/mem`, for which it needs rights; a process that has the open file needs
//! none to read from it, and can read that memory and no other: once the target has ended or runs
//! another program, nothing is read from it any more. The file is sent along with each question
//! ([`memory_order`](super::memory_order)). Without parser processes this one reads it.

use std::fs::File;
use std::os::fd::AsFd as _;

use rustix::fs::{OFlags, fcntl_getfl};

use super::memory_order::{Answer, Question};
use super::opened::next_number;
use crate::files::{Order, Work};
use crate::python::{
    Check, FoundFunction, Lack, Layout, Look, Seen, Trampoline, Version, WantedCode,
};
use crate::{Files, Reason, Writers};

/// The memory of one process.
#[derive(Debug)]
pub struct ProcessMemory {
    /// Distinguishes it from all that parser processes were asked about before: no parser that has
    /// read other memory gets this.
    number: u64,
    pid: u32,
    file: File,
}

impl ProcessMemory {
    /// Opens the memory of a process as it is now, for reading.
    pub fn open(pid: u32, way: &Files) -> Result<ProcessMemory, Reason> {
        let file = way.open_memory(pid)?;
        // The process that has opened it may have been taken over, and a parser gets it.
        let flags = fcntl_getfl(&file).map_err(|_| Reason::Refused)?;
        if flags & OFlags::RWMODE != OFlags::RDONLY {
            return Err(Reason::Refused);
        }
        Ok(ProcessMemory {
            number: next_number(),
            pid,
            file,
        })
    }

    /// Inspects the process.
    pub fn look(&self, look: Look, way: &Files) -> Result<Box<Seen>, Lack> {
        match self.ask(&Question::Look(look), way)? {
            Answer::Look(seen) => seen,
            _ => Err(Reason::Refused.into()),
        }
    }

    /// Reads the functions of code objects, in their order. The interpreter must have this version,
    /// and the process this layout. `check` must be the one that parser processes have.
    pub fn functions(
        &self,
        wanted: Vec<WantedCode>,
        (version, layout): (Version, Layout),
        check: Check,
        way: &Files,
    ) -> Result<Vec<FoundFunction>, Reason> {
        let count = wanted.len();
        let question = Question::Functions {
            version,
            layout,
            wanted,
            check,
        };
        let Answer::Functions(mut found) = self.ask(&question, way)? else {
            return Err(Reason::Refused);
        };
        // The last ones may not have fitted into the message.
        found.resize(count, Err(Reason::CodeGone));
        Ok(found)
    }

    /// Returns the kind of trampolines in the mapping that begins there; `None` if it has none.
    pub fn trampoline(&self, start: u64, way: &Files) -> Result<Option<Trampoline>, Reason> {
        match self.ask(&Question::Trampoline(start), way)? {
            Answer::Trampoline(found) => Ok(found),
            _ => Err(Reason::Refused),
        }
    }

    /// Counts the threads that the interpreter of this version lists, up to `max`.
    pub fn count_threads(
        &self,
        version: Version,
        runtime: u64,
        max: u32,
        way: &Files,
    ) -> Result<u32, Lack> {
        let question = Question::Threads {
            version,
            runtime,
            max,
        };
        match self.ask(&question, way)? {
            Answer::Threads(count) => count,
            _ => Err(Reason::Refused.into()),
        }
    }

    /// Has a parser process answer a question, or answers it in this thread if there are none.
    fn ask(&self, question: &Question, way: &Files) -> Result<Answer, Reason> {
        if !way.has_parsers() {
            return question.answer(&self.file);
        }
        let mut message = Vec::new();
        question.write(&mut message);
        let reply = way.parse(&Order {
            work: Work::PythonMemory,
            file: self.number,
            writers: Writers::UNKNOWN,
            process: Some(self.pid),
            files: &[self.file.as_fd()],
            message: &message,
        })?;
        Answer::read(question, &reply.bytes).ok_or(Reason::Refused)
    }
}
