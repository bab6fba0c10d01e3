//! Code that a process made at run time, found in this process or in another one.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::code_order::RUN_TIME;
use super::opened;
use super::opened_jit::writers;
use super::run_time_order::{self, RunTimeAnswer};
use crate::code::run_time::{self, RunTimeFound, RunTimeQuestion};
use crate::files::{Order, Work};
use crate::jit::maps::CodeMaps;
use crate::jit::written::Written;
use crate::{Files, Reason};

/// The code of one process. If there are parser processes, one of them reads its map and its dump.
#[derive(Debug)]
pub struct RunTimeCode {
    written: Written,
    /// What was read of its files. `None` if another process reads them.
    here: Option<CodeMaps>,
    /// Number of the process, unique within this run.
    number: u64,
}

impl RunTimeCode {
    /// Looks for the files of a process, given by its directory in /proc
    /// ([`JitNames::hold`](crate::JitNames::hold)).
    pub fn new(process: Arc<OwnedFd>, way: Files) -> RunTimeCode {
        let has_parsers = way.has_parsers();
        let mut written = Written::new(process, way);
        written.look();
        let mut here = (!has_parsers).then(CodeMaps::default);
        if let Some(maps) = &mut here {
            maps.take(written.files());
            if !maps.has_dump() {
                written.reject_dump();
            }
            maps.update();
        }
        RunTimeCode {
            written,
            here,
            number: opened::next_number(),
        }
    }

    /// Finds the code of a function. An error if nothing says what is at the address, or if what
    /// says it cannot be read.
    pub fn find(&mut self, question: &RunTimeQuestion<'_>) -> Result<RunTimeFound, Reason> {
        let found = match &mut self.here {
            Some(maps) => run_time::find(maps, question),
            None => self.ask(question)?,
        };
        match found {
            RunTimeFound::Unknown => Err(self.written.why_no_name()),
            found => Ok(found),
        }
    }

    fn ask(&mut self, question: &RunTimeQuestion<'_>) -> Result<RunTimeFound, Reason> {
        let [map, dump] = self.written.files();
        let Some(writers) = map.or(dump).map(writers) else {
            return Ok(RunTimeFound::Unknown);
        };
        let has_dump = dump.is_some();
        let mut message = vec![RUN_TIME];
        let files = run_time_order::write(&mut message, [map, dump], question);
        let reply = self.written.way().parse(&Order {
            work: Work::Code,
            file: self.number,
            writers,
            process: None,
            files: &files,
            message: &message,
        })?;
        let answer = RunTimeAnswer::read(&reply.bytes, question.bytes_max);
        let answer = answer.ok_or(Reason::Refused)?;
        if has_dump && !answer.is_dump {
            self.written.reject_dump();
        }
        match answer.found {
            // Memory that is not of the function at the address is none of the parser's business.
            RunTimeFound::InMemory { start, .. } if start > question.address => {
                Err(Reason::Refused)
            }
            found => Ok(found),
        }
    }
}
