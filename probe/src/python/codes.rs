//! The code objects of one process, each read once.

use super::names::Registry;
use crate::modules::Modules;
use crate::sample::{Frame, PythonName};
use probe_ebpf::python::{Entry, check};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use symbolize::parser::ProcessMemory;
use symbolize::python::{self, FoundFunction, Layout, Version};
use symbolize::{Files, Reason};

/// Maximum number of remembered code objects of one process; with more, all are forgotten. Large
/// programs have some ten thousand.
const CODES_MAX: usize = 1 << 16;

/// Maximum number of remembered places in them.
const FRAMES_MAX: usize = 1 << 18;

/// Maximum memory of the functions of one process; with more, all are forgotten. Most functions take
/// less than a kilobyte, but a process can make one with half a million lines.
const BYTES_MAX: usize = 32 << 20;

/// Maximum number of attempts to read a code object that was freed.
const TRIES_MAX: u8 = 4;

/// How soon a code object is requested again whose process could not be read. This does not count as
/// an attempt: the process may be left alone for a while because it did not answer.
const AGAIN: Duration = Duration::from_secs(1);

/// A code object, and what has been read of it, once that is done.
#[derive(Debug)]
pub struct Code {
    /// The function, or why it could not be read; `None` inside for the interpreter's own code.
    found: OnceLock<FoundFunction>,
    /// Number of attempts.
    tries: u8,
    /// When the last one began.
    begun: Instant,
    /// Bytes of all functions that are remembered together with this one.
    bytes: Arc<AtomicUsize>,
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
    /// Bytes of the functions in `known`.
    bytes: Arc<AtomicUsize>,
}

impl Code {
    /// Returns the number of attempts so far, if one more is to be made.
    fn tries_before_another(&self) -> Option<u8> {
        match self.found.get()? {
            Err(Reason::CodeGone) if self.tries < TRIES_MAX => Some(self.tries),
            Err(Reason::CodeGone) | Ok(_) => None,
            // The attempt that has failed does not count.
            Err(_) => (self.begun.elapsed() >= AGAIN).then_some(self.tries - 1),
        }
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
        let bytes = match &found {
            Ok(Some(function)) => function.heap_bytes(),
            Ok(None) | Err(_) => 0,
        };
        // Only dropping it comes later, which then has no effect.
        if self.code.found.set(found).is_ok() {
            self.code.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
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
            Some(code) => match (code.found.get(), code.tries_before_another()) {
                (None, _) => return Some(RecordPart::Unread(entry, code.clone())),
                (Some(_), Some(tries)) => tries,
                (Some(found), None) => {
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
        if self.known.len() >= CODES_MAX || self.bytes.load(Ordering::Relaxed) >= BYTES_MAX {
            self.known.clear();
            // What is still being read is not remembered any more.
            self.bytes = Arc::default();
        }
        let code = Arc::new(Code {
            found: OnceLock::new(),
            tries: tries + 1,
            begun: Instant::now(),
            bytes: self.bytes.clone(),
        });
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
        Err(reason) => are_missing(wanted, reason),
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

#[cfg(test)]
mod tests {
    use super::*;
    use symbolize::python::{Function, LineTable, Lines};

    fn function() -> Function {
        Function {
            name: "shop.pay".into(),
            file: "/srv/shop.py".into(),
            lines: Lines::decode(LineTable::Steps, &[0, 1, 6, 1], 10),
        }
    }

    /// Codes, with what they need to give frames.
    struct Run {
        codes: Codes,
        modules: Modules,
        names: Registry,
    }

    impl Run {
        fn new() -> Run {
            Run {
                codes: Codes::default(),
                modules: Modules::new(),
                names: Registry::default(),
            }
        }

        /// Takes a sample in a code object; returns the request for it, if there is one.
        fn sample(&mut self, address: u64) -> Option<WantedCode> {
            let mut wanted = Vec::new();
            let entry = Entry::frame(address, 0, 0, 0);
            let (modules, names) = (&mut self.modules, &mut self.names);
            self.codes.part(entry, modules, names, || true, &mut wanted);
            wanted.pop()
        }

        /// Has the time go by until code is requested again.
        fn wait(&mut self) {
            for code in self.codes.known.values_mut() {
                let code = Arc::get_mut(code).expect("no request is left");
                code.begun = code.begun.checked_sub(AGAIN).expect("since the start");
            }
        }
    }

    #[test]
    fn code_of_a_process_that_could_not_be_read_is_requested_again_later() {
        let mut run = Run::new();
        for _ in 0..3 * TRIES_MAX {
            let wanted = run.sample(1).expect("it has no name");
            wanted.came(Err(Reason::Remote));
            drop(wanted);
            assert!(run.sample(1).is_none(), "so soon");
            run.wait();
        }
        let wanted = run.sample(1).expect("it has no name");
        wanted.came(Ok(Some(function())));
        drop(wanted);
        run.wait();
        assert!(run.sample(1).is_none());
        assert_eq!(run.codes.frames.len(), 1);
    }

    #[test]
    fn code_that_was_freed_is_requested_a_few_times() {
        let mut run = Run::new();
        for _ in 0..TRIES_MAX {
            let wanted = run.sample(1).expect("it has no name");
            wanted.came(Err(Reason::CodeGone));
        }
        run.wait();
        assert!(run.sample(1).is_none());
    }

    #[test]
    fn functions_of_one_process_take_no_more_than_their_bound() {
        let mut run = Run::new();
        for address in 1..=100 {
            let wanted = run.sample(address).expect("it is new");
            wanted.came(Ok(Some(function())));
        }
        let bytes = run.codes.bytes.load(Ordering::Relaxed);
        assert_eq!(bytes, 100 * function().heap_bytes());
        assert_eq!(run.codes.known.len(), 100);
        run.codes.bytes.fetch_add(BYTES_MAX, Ordering::Relaxed);
        assert!(run.sample(101).is_some());
        assert_eq!(run.codes.known.len(), 1);
        assert_eq!(run.codes.bytes.load(Ordering::Relaxed), 0);
    }
}
