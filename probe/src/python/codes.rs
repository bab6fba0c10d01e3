//! The code objects of one process, each read once.

use super::names::Registry;
use crate::modules::Modules;
use crate::sample::{Frame, PythonName};
use probe_ebpf::python::{Entry, check};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use symbolize::parser::ProcessMemory;
use symbolize::python::{self, FoundFunction, Layout, Version};
use symbolize::{Files, Reason};

/// Maximum number of remembered code objects of one process; with more, all are forgotten. Large
/// programs have some ten thousand.
const CODES_MAX: usize = 1 << 16;

/// Maximum number of remembered places in them.
const FRAMES_MAX: usize = 1 << 18;

/// Maximum number of attempts to read a code object that was freed.
const TRIES_MAX: u8 = 4;

/// A code object, and what has been read of it, once that is done.
#[derive(Debug)]
pub struct Code {
    /// The function, or why it could not be read; `None` inside for the interpreter's own code.
    found: OnceLock<FoundFunction>,
    /// Number of attempts.
    tries: u8,
}

/// A code object that is to be read. If it is dropped without an answer, the request has failed.
#[derive(Debug)]
pub struct WantedCode {
    entry: Entry,
    code: Arc<Code>,
}

/// The meaning of one entry of a record.
#[derive(Debug, Clone)]
pub enum RecordPart {
    /// A frame of Python.
    Frame(Frame),
    /// A frame whose code object has not been read.
    Unread(Entry, Arc<Code>),
    /// The task whose coroutine is the previous frame, with the name that the program has given it.
    Task(Option<Arc<str>>),
    /// The task that awaits the previous one, with the name that the program has given it, and the
    /// position of its coroutine.
    Awaiting(Option<Arc<str>>, Option<Box<RecordPart>>),
    /// Number of tasks that await the previous one.
    Several(u64),
    /// The end of the frames that one call of the interpreter's loop runs.
    GroupEnd,
}

/// The code objects of a process that were read.
#[derive(Debug, Default)]
pub struct Codes {
    known: HashMap<(u64, u32), Arc<Code>>,
    frames: HashMap<Entry, Frame>,
}

impl Code {
    fn new(tries: u8) -> Arc<Self> {
        let found = OnceLock::new();
        Arc::new(Self { found, tries })
    }

    /// Whether reading it is over, successfully or not.
    pub fn is_read(&self) -> bool {
        self.found.get().is_some()
    }

    /// Returns the frame of a place in it; `None` if it is the interpreter's own.
    pub fn frame(
        &self,
        entry: Entry,
        modules: &mut Modules,
        names: &mut Registry,
    ) -> Option<Frame> {
        match self.found.get() {
            Some(Ok(None)) => None,
            Some(Ok(Some(function))) => {
                let name = PythonName {
                    function: function.name.clone(),
                    file: function.file.clone(),
                    line: function.lines.at(entry.offset()).unwrap_or(0),
                };
                Some(names.frame(name, modules))
            }
            Some(Err(reason)) => Some(names.nameless(*reason, modules)),
            None => Some(names.nameless(Reason::Remote, modules)),
        }
    }
}

impl WantedCode {
    /// Stores the result of reading it.
    fn came(&self, found: FoundFunction) {
        // Only dropping it comes later, which then has no effect.
        _ = self.code.found.set(found);
    }
}

impl Drop for WantedCode {
    fn drop(&mut self) {
        self.came(Err(Reason::Remote));
    }
}

impl Codes {
    /// Returns the meaning of an entry of a record; `None` if it is the interpreter's own. Adds
    /// code that has to be read for that to `wanted`.
    pub fn part(
        &mut self,
        entry: Entry,
        modules: &mut Modules,
        names: &mut Registry,
        may_read: impl FnOnce() -> bool,
        wanted: &mut Vec<WantedCode>,
    ) -> Option<RecordPart> {
        if let Some(frame) = self.frames.get(&entry) {
            return Some(RecordPart::Frame(*frame));
        }
        let key = (entry.address(), entry.check());
        let tries = match self.known.get(&key) {
            None => 0,
            Some(code) => match code.found.get() {
                None => return Some(RecordPart::Unread(entry, code.clone())),
                Some(Err(_)) if code.tries < TRIES_MAX => code.tries,
                Some(found) => {
                    let is_named = matches!(found, Ok(Some(_)));
                    let frame = code.frame(entry, modules, names)?;
                    if is_named {
                        self.remember(entry, frame);
                    }
                    return Some(RecordPart::Frame(frame));
                }
            },
        };
        if !may_read() {
            return Some(RecordPart::Frame(names.nameless(Reason::CodeGone, modules)));
        }
        if self.known.len() >= CODES_MAX {
            self.known.clear();
        }
        let code = Code::new(tries + 1);
        self.known.insert(key, code.clone());
        wanted.push(WantedCode {
            entry,
            code: code.clone(),
        });
        Some(RecordPart::Unread(entry, code))
    }

    /// Forgets the code objects that are unread, because their request was refused: this does not
    /// count as an attempt to read them.
    pub fn forget_unread(&mut self) {
        self.known.retain(|_, code| code.is_read());
    }

    fn remember(&mut self, entry: Entry, frame: Frame) {
        if self.frames.len() >= FRAMES_MAX {
            self.frames.clear();
        }
        self.frames.insert(entry, frame);
    }
}

/// Reads the code objects of entries. Has to be done soon after those were seen, as they may be
/// freed.
pub fn read(
    wanted: &[WantedCode],
    (version, layout): (Version, Layout),
    memory: &ProcessMemory,
    way: &Files,
) {
    let code = |code: &WantedCode| python::WantedCode {
        address: code.entry.address(),
        check: code.entry.check(),
    };
    let asked = wanted.iter().map(code).collect();
    match memory.functions(asked, (version, layout), check, way) {
        Ok(found) => wanted
            .iter()
            .zip(found)
            .for_each(|(code, found)| code.came(found)),
        Err(reason) => wanted.iter().for_each(|code| code.came(Err(reason))),
    }
}

/// Answers a request for code objects whose process has no memory that could be read.
pub fn are_missing(wanted: &[WantedCode], reason: Reason) {
    let reason = match reason {
        Reason::FileGone => Reason::CodeGone,
        other => other,
    };
    wanted.iter().for_each(|code| code.came(Err(reason)));
}
