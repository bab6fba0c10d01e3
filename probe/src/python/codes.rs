//! The code objects of one process, each read once.

use super::names::Registry;
use crate::modules::Modules;
use crate::sample::{Frame, PythonName};
use probe_ebpf::python::{Entry, check};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use symbolize::python::{Found, Lack, Layout, Lines, Memory, module_of, read_codes};
use symbolize::{Reason, sanitize};

/// Code objects of one process that are remembered; then all are forgotten. Large programs
/// have some ten thousand.
const CODES_MAX: usize = 1 << 16;

/// Places in them that are remembered.
const FRAMES_MAX: usize = 1 << 18;

/// How often a code object is tried to be read that was gone.
const TRIES_MAX: u8 = 4;

/// A code object: what has been read of it, once that is done.
#[derive(Debug)]
pub struct Code {
    /// `None` if it is the interpreter's own.
    found: OnceLock<Result<Option<Function>, Reason>>,
    /// How often it was tried.
    tries: u8,
}

#[derive(Debug)]
pub struct Function {
    name: Arc<str>,
    file: Arc<str>,
    lines: Lines,
}

/// A code object that is to be read. Dropped without an answer it has none in time.
#[derive(Debug)]
pub struct WantedCode {
    entry: Entry,
    code: Arc<Code>,
}

/// What one entry of a record is.
#[derive(Debug, Clone)]
pub enum RecordPart {
    Frame(Frame),
    /// Its code object has not been read.
    Unread(Entry, Arc<Code>),
    /// The task whose coroutine is the frame before: what the program calls it.
    Task(Option<Arc<str>>),
    /// The task that awaits the one before: what the program calls it, and where its coroutine is.
    Awaiting(Option<Arc<str>>, Option<Box<RecordPart>>),
    /// So many tasks await the one before.
    Several(u64),
    GroupEnd,
}

/// What was read.
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

    pub fn is_read(&self) -> bool {
        self.found.get().is_some()
    }

    /// The frame of a place in it; `None` if it is the interpreter's own.
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
    /// It was read.
    fn came(&self, found: Result<Option<Function>, Reason>) {
        // Only dropping it comes later.
        _ = self.code.found.set(found);
    }
}

impl Drop for WantedCode {
    fn drop(&mut self) {
        self.came(Err(Reason::Remote));
    }
}

impl Codes {
    /// What an entry of a record is; `None` if it is the interpreter's own. Code that is to
    /// be read for that is added to `wanted`.
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

    /// Those were not asked for after all: it was none of their tries.
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

/// Reads the code objects of entries. To be done soon after those were seen: they may be freed.
/// `again` is the same memory, of which nothing has been read yet.
pub fn read(wanted: &[WantedCode], layout: &Layout, memory: &impl Memory, again: &impl Memory) {
    let is_wanted = |code: &WantedCode| {
        let own = code.entry.check();
        move |first_line: u32, identity: &_| check(first_line, identity) == own
    };
    let at = |code: &WantedCode| (code.entry.address(), is_wanted(code));
    let codes: Vec<_> = wanted.iter().map(at).collect();
    let found = read_codes(memory, again, &codes, layout);
    for (code, found) in wanted.iter().zip(found) {
        code.came(function(found));
    }
}

/// The function of a code object; `None` if it is the interpreter's own.
fn function(found: Result<Found, Lack>) -> Result<Option<Function>, Reason> {
    match found {
        Ok(Found::Code(code)) => {
            let name = format!("{}.{}", module_of(&code.file), code.name);
            Ok(Some(Function {
                name: sanitize(name.as_bytes()).into(),
                file: sanitize(code.file.as_bytes()).into(),
                lines: code.lines,
            }))
        }
        Err(Lack::Unreadable(reason @ (Reason::NoPermission | Reason::Remote))) => Err(reason),
        Ok(Found::Trampoline) => Ok(None),
        Ok(Found::Gone) | Err(_) => Err(Reason::CodeGone),
    }
}
