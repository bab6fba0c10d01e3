//! The stage after names: lines of source text, and functions that were inlined. A thread of its
//! own asks for them; debug information is read by a process without rights, where there are
//! such, and both yield to everybody else.
//!
//! Debug information is read in two ways. A question reads only the units that hold the
//! frames asked for, which is fast the first time. When nobody has asked for a while,
//! the table of the whole file is made, unless the file is large, and kept on disk:
//! from then on, and in later runs, every question is a look into it.

use super::naming::NamedModule;
use probe::confine::{self, Duty};
use profile::{Frame, FrameId, ModuleId, SourceFrame};
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use symbolize::parser::FileLines;
use symbolize::parser::names::SourceLine;
use symbolize::{FileOffset, Symbolizer};

/// How long nothing may be asked before the tables of whole files are made.
const QUIET: Duration = Duration::from_secs(2);

/// How long they wait at most: on a busy machine it is never quiet.
const PATIENCE: Duration = Duration::from_secs(5);

/// Debug information of which the whole table is made: a second of one CPU, once
/// for each build of a program. What is larger stays with the units that are
/// asked for.
const WHOLE_BYTES_MAX: usize = 16 << 20;

/// Debug information that is held in memory at once, per file. A profiler must stay small
/// beside what it watches: units that are larger have names, and no lines.
pub const DEBUG_BYTES_MAX: u64 = 48 << 20;

/// Debug information that is held of all files together, but for the one that was asked for
/// last.
pub const LINES_BYTES_MAX: usize = 16 << 20;

/// What was read of a file is dropped when nobody has asked for so long. Reading a large unit
/// again takes a tenth of a second.
const UNUSED: Duration = Duration::from_secs(30);

/// How often memory is given back while questions come.
const GIVE_BACK_EVERY: Duration = Duration::from_secs(1);

/// Below everything else, as the kernel counts.
const NICE: i32 = 19;

/// Frames of one module whose names are known.
#[derive(Debug)]
struct Request {
    module: Arc<NamedModule>,
    frames: Vec<(FrameId, u64)>,
}

/// The functions that a frame stands for, innermost first; none if there is no
/// debug information for it.
#[derive(Debug)]
pub struct Source {
    pub frame: FrameId,
    /// What the frame was when it was asked for: its number may be another
    /// frame's by now.
    was: (ModuleId, u64),
    chain: Vec<SourceLine>,
}

impl Source {
    fn new(module: &NamedModule, (frame, address): (FrameId, u64), chain: Vec<SourceLine>) -> Self {
        Self {
            frame,
            was: (module.id(), address),
            chain,
        }
    }

    /// Whether the answer is for what the frame's number stands for now: it may be
    /// another frame's since the lines were asked for.
    pub fn is_for(&self, frame: Option<Frame>) -> bool {
        frame.is_some_and(|frame| (frame.module, frame.address) == self.was)
    }

    /// The functions as the store wants them, innermost first.
    pub fn chain(&self) -> Vec<SourceFrame<'_>> {
        let mut chain = Vec::with_capacity(self.chain.len());
        for link in &self.chain {
            chain.push(SourceFrame {
                function: &link.function,
                file: &link.file,
                line: link.line,
            });
        }
        chain
    }
}

/// The thread and the two queues. Dropping it ends the thread.
#[derive(Debug)]
pub struct Sources {
    requests: Option<Sender<Request>>,
    answers: Receiver<Vec<Source>>,
    /// Frames that were asked for and not answered.
    asked: usize,
    pause: Arc<Pause>,
}

/// Holds the thread before its next question.
#[derive(Debug, Default)]
struct Pause {
    is_paused: Mutex<bool>,
    ended: Condvar,
}

impl Pause {
    fn set(&self, is_paused: bool) {
        *self
            .is_paused
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = is_paused;
        self.ended.notify_all();
    }

    fn is_on(&self) -> bool {
        *self
            .is_paused
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns at once if there is none.
    fn wait(&self) {
        let is_paused = self
            .is_paused
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let waited = self.ended.wait_while(is_paused, |is_paused| *is_paused);
        drop(waited);
    }
}

impl Drop for Sources {
    fn drop(&mut self) {
        // Its queue is closed: it has to see that.
        self.pause.set(false);
    }
}

impl Sources {
    /// Starts the thread. If it cannot be started, frames have names and no lines.
    pub fn start(symbolizer: Arc<Symbolizer>) -> Self {
        let (requests, queue) = channel();
        let (results, answers) = channel();
        let pause = Arc::new(Pause::default());
        let its_pause = Arc::clone(&pause);
        let started = thread::Builder::new().name("lines".into()).spawn(move || {
            confine::thread(Duty::Parsing);
            Worker::new(symbolizer, results, its_pause).run(&queue);
        });
        Self {
            requests: started.is_ok().then_some(requests),
            answers,
            asked: 0,
            pause,
        }
    }

    /// Has the thread answer nothing more after its present question, or go on.
    pub fn set_paused(&self, is_paused: bool) {
        self.pause.set(is_paused);
    }

    /// Asks for the lines of frames, in this order.
    pub fn ask(&mut self, frames: impl Iterator<Item = (FrameId, u64, Arc<NamedModule>)>) {
        let Some(requests) = &self.requests else {
            return;
        };
        let mut order: Vec<Request> = Vec::new();
        let mut place: HashMap<*const NamedModule, usize> = HashMap::new();
        for (frame, address, module) in frames.filter(|(_, _, module)| module.is_file()) {
            self.asked += 1;
            let index = *place.entry(Arc::as_ptr(&module)).or_insert_with(|| {
                order.push(Request {
                    module,
                    frames: Vec::new(),
                });
                order.len() - 1
            });
            order[index].frames.push((frame, address));
        }
        for request in order {
            // Without the thread there are no lines; names there are.
            let _ = requests.send(request);
        }
    }

    /// The answers that have come.
    pub fn answers(&mut self) -> Vec<Source> {
        let answers: Vec<Source> = self.answers.try_iter().flatten().collect();
        self.asked = self.asked.saturating_sub(answers.len());
        answers
    }

    /// How many frames were asked for and not answered; none while nothing is.
    pub fn outstanding(&self) -> usize {
        if self.pause.is_on() { 0 } else { self.asked }
    }
}

/// The thread's own part.
struct Worker {
    symbolizer: Arc<Symbolizer>,
    results: Sender<Vec<Source>>,
    /// Files of which lines were asked, without a whole table yet.
    unfinished: Vec<FileLines>,
    /// When a table was made last, or one was wanted first.
    since: Instant,
    /// Debug information was read since the allocator was last asked to give
    /// back what is free.
    holds_memory: bool,
    /// When it was asked so while questions came.
    given_back: Instant,
    pause: Arc<Pause>,
}

impl Worker {
    fn new(symbolizer: Arc<Symbolizer>, results: Sender<Vec<Source>>, pause: Arc<Pause>) -> Self {
        Self {
            symbolizer,
            results,
            unfinished: Vec::new(),
            since: Instant::now(),
            holds_memory: false,
            given_back: Instant::now(),
            pause,
        }
    }

    /// Answers questions as they come; in between makes tables, and gives memory back
    /// when there is nothing else to do.
    fn run(mut self, queue: &Receiver<Request>) {
        // Whoever may not even lower it works all the same.
        _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
        loop {
            let is_idle = self.unfinished.is_empty() && !self.holds_memory;
            let next = if is_idle {
                queue.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                queue.recv_timeout(QUIET)
            };
            self.pause.wait();
            match next {
                Ok(request) => {
                    if self.answer(&request).is_err() {
                        return;
                    }
                    if self.since.elapsed() > PATIENCE {
                        self.finish_one();
                    }
                    if self.given_back.elapsed() > GIVE_BACK_EVERY {
                        self.symbolizer.forget_units(UNUSED);
                        probe::memory::give_back_much();
                        self.given_back = Instant::now();
                    }
                }
                Err(RecvTimeoutError::Timeout) if self.unfinished.is_empty() => {
                    self.holds_memory = !self.symbolizer.forget_units(UNUSED);
                    probe::memory::give_back_much();
                }
                Err(RecvTimeoutError::Timeout) => self.finish_one(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Answers a request; an error if nobody wants answers any more.
    fn answer(&mut self, request: &Request) -> Result<(), ()> {
        self.holds_memory = true;
        // A parser's mistake must cost one file's lines, not all that follow.
        let found = faults::catch("finding source lines", || self.find_all(request));
        let sources = found.unwrap_or_else(|_| without_lines(request));
        self.results.send(sources).map_err(|_| ())
    }

    /// The lines of all frames of a request. A file without debug information has none.
    fn find_all(&mut self, request: &Request) -> Vec<Source> {
        let lines = request
            .module
            .with_source(|source| self.symbolizer.file_lines(source));
        request.module.close_root();
        let Some(Ok(Some(lines))) = lines else {
            return without_lines(request);
        };
        let offsets = request.frames.iter().map(|(_, offset)| FileOffset(*offset));
        let Ok(chains) = lines.find_all(&offsets.collect::<Vec<_>>()) else {
            return without_lines(request);
        };
        let is_known = self.unfinished.iter().any(|known| known.is(&lines));
        if !is_known && !lines.is_finished() && lines.unread_bytes() <= WHOLE_BYTES_MAX {
            if self.unfinished.is_empty() {
                self.since = Instant::now();
            }
            self.unfinished.push(lines);
        }
        let source =
            |(asked, chain): (&(FrameId, u64), _)| Source::new(&request.module, *asked, chain);
        request.frames.iter().zip(chains).map(source).collect()
    }

    /// Makes the table of one file, for the look-ups and the runs to come.
    fn finish_one(&mut self) {
        let Some(lines) = self.unfinished.pop() else {
            return;
        };
        self.since = Instant::now();
        let tables = self.symbolizer.tables();
        // It fails for what is too large: then units go on being read.
        _ = faults::catch("finding source lines", || lines.finish(tables));
    }
}

/// The answer of a file that has no lines: every frame gets one, so that none is waited
/// for.
fn without_lines(request: &Request) -> Vec<Source> {
    let none = |asked: &(FrameId, u64)| Source::new(&request.module, *asked, Vec::new());
    request.frames.iter().map(none).collect()
}
