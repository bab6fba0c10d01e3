//! The names of a process's generated code, on the asking side.

use std::fs::File;

use super::jit_order::{self, ADDRESSES_MAX, How, JitAnswer};
use super::opened;
use crate::files::{Order, Work};
use crate::jit::written::Written;
use crate::{Reason, Writers};

/// The names of one process's code, read by a parser process.
#[derive(Debug)]
pub struct OpenedJit {
    written: Written,
    /// Number of the process, unique within this run.
    number: u64,
    heap_bytes: usize,
}

/// The answer about addresses.
#[derive(Debug)]
pub struct NewNames {
    /// Whether there may be new names.
    pub is_new: bool,
    /// The names at the addresses in their order, demangled and safe to print; empty if they were
    /// requested only in case of new names, and there are none.
    pub names: Vec<Result<String, Reason>>,
}

impl OpenedJit {
    /// Gives the maps of a process the next number. Reads nothing yet.
    pub fn new(written: Written) -> OpenedJit {
        OpenedJit {
            written,
            number: opened::next_number(),
            heap_bytes: 0,
        }
    }

    /// Returns the names at these addresses, and whether any may be new.
    pub fn names(&mut self, how: How, addresses: &[u64]) -> NewNames {
        if how.reads_on {
            self.written.look();
        }
        let mut names = NewNames {
            is_new: false,
            names: Vec::new(),
        };
        while names.names.len() < addresses.len() {
            let left = &addresses[names.names.len()..];
            let asked = &left[..left.len().min(ADDRESSES_MAX)];
            // Of several questions only the first one reads what is new.
            let is_first = names.names.is_empty();
            let how = How {
                reads_on: how.reads_on && is_first,
                only_if_new: how.only_if_new && is_first,
            };
            let told = match self.ask(how, asked) {
                Ok(told) => told,
                Err(reason) => {
                    names.names.resize(addresses.len(), Err(reason));
                    return names;
                }
            };
            names.is_new |= told.is_new;
            if how.only_if_new && !told.is_new {
                return names;
            }
            // If names are long, the answer may lack the last ones.
            if told.names.is_empty() || told.names.len() > asked.len() {
                names.names.resize(addresses.len(), Err(Reason::Refused));
                return names;
            }
            let why = self.written.why_no_name();
            let found = told.names.into_iter().map(|name| name.ok_or(why));
            names.names.extend(found);
        }
        names
    }

    /// Whether the process had ended at the last look, so that nothing more will be written.
    pub fn has_ended(&self) -> bool {
        self.written.has_ended()
    }

    /// Bytes of heap in use in the process that reads the maps.
    pub fn heap_bytes(&self) -> usize {
        self.heap_bytes
    }

    fn ask(&mut self, how: How, addresses: &[u64]) -> Result<JitAnswer, Reason> {
        let [map, dump] = self.written.files();
        let Some(writers) = map.or(dump).map(writers) else {
            return Err(self.written.why_no_name());
        };
        let (message, files) = jit_order::write(how, [map, dump], addresses);
        let reply = self.written.way().parse(&Order {
            work: Work::JitNames,
            file: self.number,
            writers,
            process: None,
            files: &files,
            message: &message,
        })?;
        let answer = JitAnswer::read(&reply.bytes).ok_or(Reason::Refused)?;
        let has_dump = dump.is_some();
        if has_dump && !answer.is_dump {
            self.written.reject_dump();
        }
        self.heap_bytes = usize::try_from(answer.heap_bytes).unwrap_or(usize::MAX);
        Ok(answer)
    }
}

/// Who can write to a file.
pub fn writers(file: &File) -> Writers {
    Writers::of(file).unwrap_or(Writers::UNKNOWN)
}
