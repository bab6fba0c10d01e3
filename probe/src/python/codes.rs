//! The code objects of one process, each read once.

use super::budget::Budget;
use super::names::Registry;
use crate::modules::Modules;
use crate::sample::{Frame, PythonName};
use probe_ebpf::python::{Entry, check};
use std::collections::HashMap;
use std::sync::Arc;
use symbolize::python::{Found, Lack, Layout, Lines, Memory, module_of, read_code};
use symbolize::{Reason, sanitize};

/// Code objects of one process that are remembered; then all are forgotten. Large programs
/// have some ten thousand.
const CODES_MAX: usize = 1 << 16;

/// Places in them that are remembered.
const FRAMES_MAX: usize = 1 << 18;

/// How often a code object is tried to be read that was gone.
const TRIES_MAX: u8 = 4;

/// What was read.
#[derive(Debug, Default)]
pub struct Codes {
    known: HashMap<(u64, u32), Known>,
    frames: HashMap<Entry, Frame>,
}

#[derive(Debug, Clone)]
enum Known {
    Function(Arc<Function>),
    Trampoline,
    Gone { tries: u8, reason: Reason },
}

#[derive(Debug)]
struct Function {
    name: Arc<str>,
    file: Arc<str>,
    lines: Lines,
}

impl Codes {
    /// The frame that an entry of a record is; `None` if it is the interpreter's own.
    pub fn frame(
        &mut self,
        entry: Entry,
        layout: &Layout,
        memory: &impl Memory,
        modules: &mut Modules,
        names: &mut Registry,
        budget: &mut Budget,
    ) -> Option<Frame> {
        if let Some(frame) = self.frames.get(&entry) {
            return Some(*frame);
        }
        match self.function(entry, layout, memory, budget) {
            Ok(None) => None,
            Ok(Some(function)) => {
                let name = PythonName {
                    function: function.name.clone(),
                    file: function.file.clone(),
                    line: function.lines.at(entry.offset()).unwrap_or(0),
                };
                let frame = names.frame(name, modules);
                if self.frames.len() >= FRAMES_MAX {
                    self.frames.clear();
                }
                self.frames.insert(entry, frame);
                Some(frame)
            }
            Err(reason) => Some(names.nameless(reason, modules)),
        }
    }

    fn function(
        &mut self,
        entry: Entry,
        layout: &Layout,
        memory: &impl Memory,
        budget: &mut Budget,
    ) -> Result<Option<Arc<Function>>, Reason> {
        let key = (entry.code(), entry.check());
        let tried = match self.known.get(&key) {
            Some(Known::Function(function)) => return Ok(Some(function.clone())),
            Some(Known::Trampoline) => return Ok(None),
            Some(Known::Gone { tries, reason }) if *tries >= TRIES_MAX => return Err(*reason),
            Some(Known::Gone { tries, .. }) => *tries,
            None => 0,
        };
        if !budget.take_code() {
            return Err(Reason::CodeGone);
        }
        if self.known.len() >= CODES_MAX {
            self.known.clear();
        }
        let found = read(entry, layout, memory);
        let known = match &found {
            Ok(Some(function)) => Known::Function(function.clone()),
            Ok(None) => Known::Trampoline,
            Err(reason) => Known::Gone {
                tries: tried + 1,
                reason: *reason,
            },
        };
        self.known.insert(key, known);
        found
    }
}

fn read(
    entry: Entry,
    layout: &Layout,
    memory: &impl Memory,
) -> Result<Option<Arc<Function>>, Reason> {
    let is_wanted = |first_line: u32, identity: &_| check(first_line, identity) == entry.check();
    match read_code(memory, entry.code(), layout, is_wanted) {
        Ok(Found::Code(code)) => {
            let name = format!("{}.{}", module_of(&code.file), code.name);
            Ok(Some(Arc::new(Function {
                name: sanitize(name.as_bytes()).into(),
                file: sanitize(code.file.as_bytes()).into(),
                lines: code.lines,
            })))
        }
        Err(Lack::Unreadable(reason @ (Reason::NoPermission | Reason::Remote))) => Err(reason),
        Ok(Found::Trampoline) => Ok(None),
        Ok(Found::Gone) | Err(_) => Err(Reason::CodeGone),
    }
}
