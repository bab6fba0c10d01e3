//! The stage after names: source lines and inlined functions. A thread of its own requests them; if
//! there are parser processes, one of them reads the debug information. Both run at the lowest
//! priority.
//!
//! Debug information is read in two ways. A request reads only the units that contain the requested
//! frames, which is fast the first time. When there was no request for a while, the table of the
//! whole file is made, unless the file is large, and stored on disk: from then on, and in later
//! runs, every request is a look-up in it.

use super::naming::NamedModule;
use probe::channel::{Receiver, RecvTimeoutError, Sender, channel};
use probe::confine::{self, Duty};
use profile::{Frame, FrameId, ModuleId, SourceFrame};
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use symbolize::parser::FileLines;
use symbolize::parser::names::SourceLine;
use symbolize::{FileOffset, Symbolizer};

/// Time without requests after which the tables of whole files are made.
const QUIET: Duration = Duration::from_secs(2);

/// Maximum time to wait for that: on a busy machine there are always requests.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum size of debug information of which the whole table is made: a second of one CPU, once
/// for each build of a program. For larger files only the requested units are read.
const WHOLE_BYTES_MAX: usize = 16 << 20;

/// The same for a table that cannot be stored on disk, so that all of it is in memory. It is up to
/// three times as large.
const WHOLE_IN_MEMORY_BYTES_MAX: usize = 1 << 20;

/// Maximum memory of debug information per file. A profiler must stay small compared with what it
/// observes: functions in larger units have names, but no lines.
pub const DEBUG_BYTES_MAX: u64 = 48 << 20;

/// Maximum memory of debug information of all files together, except the one that was used last.
pub const LINES_BYTES_MAX: usize = 16 << 20;

/// Time after which unused debug information of a file is dropped. Reading a large unit again takes
/// a tenth of a second.
const UNUSED: Duration = Duration::from_secs(30);

/// Minimum time between two attempts to free memory while requests arrive.
const GIVE_BACK_EVERY: Duration = Duration::from_secs(1);

/// Nice value of the thread: the lowest priority.
const NICE: i32 = 19;

/// A request for frames of one module whose names are known.
#[derive(Debug)]
struct Request {
    module: Arc<NamedModule>,
    frames: Vec<(FrameId, u64)>,
}

/// The functions at a frame, innermost first; empty if there is no debug information for it.
#[derive(Debug)]
pub struct Source {
    /// Number of the frame in the profile.
    pub frame: FrameId,
    /// Module and address of the frame when it was requested: its number may belong to another
    /// frame by now.
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

    /// Whether the answer is still for the frame that the number stands for: it may belong to
    /// another frame by now.
    pub fn is_for(&self, frame: Option<Frame>) -> bool {
        frame.is_some_and(|frame| (frame.module, frame.address) == self.was)
    }

    /// The functions in the form that the store takes, innermost first.
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
    /// Number of frames that were requested and not answered.
    asked: usize,
    pause: Arc<Pause>,
}

/// Stops the thread before its next request.
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

    /// Waits while paused; returns at once otherwise.
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
        // The queue is closed, and the thread has to notice that.
        self.pause.set(false);
    }
}

impl Sources {
    /// Starts the thread. If it cannot be started, frames have names but no lines.
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

    /// Stops the thread after its current request, or lets it continue.
    pub fn set_paused(&self, is_paused: bool) {
        self.pause.set(is_paused);
    }

    /// Requests the lines of frames, in this order.
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
            // Without the thread there are names, but no lines.
            let _ = requests.send(request);
        }
    }

    /// Takes the answers that are ready.
    pub fn answers(&mut self) -> Vec<Source> {
        let answers: Vec<Source> = self.answers.try_iter().flatten().collect();
        self.asked = self.asked.saturating_sub(answers.len());
        answers
    }

    /// Number of frames that were requested and not answered; 0 while paused.
    pub fn outstanding(&self) -> usize {
        if self.pause.is_on() { 0 } else { self.asked }
    }
}

/// The state of the thread.
struct Worker {
    symbolizer: Arc<Symbolizer>,
    results: Sender<Vec<Source>>,
    /// Files of which lines were requested, and which have no whole table yet.
    unfinished: Vec<FileLines>,
    /// When the last table was made, or the first one was wanted.
    since: Instant,
    /// Whether debug information was read since free memory was last returned to the system.
    holds_memory: bool,
    /// When memory was last returned while requests arrived.
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

    /// Answers requests as they arrive. In between it makes tables, and returns memory when there
    /// is nothing else to do.
    fn run(mut self, queue: &Receiver<Request>) {
        // An error is ignored: without the right to lower its priority the thread works all the
        // same.
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

    /// Answers a request; an error if no answers are wanted any more.
    fn answer(&mut self, request: &Request) -> Result<(), ()> {
        self.holds_memory = true;
        // A bug in a parser must affect only one file's lines.
        let found = faults::catch("finding source lines", || self.find_all(request));
        let sources = found.unwrap_or_else(|_| without_lines(request));
        self.results.send(sources).map_err(|_| ())
    }

    /// Finds the lines of all frames of a request; empty for a file without debug information.
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
        let is_kept = lines.may_be_kept() && self.symbolizer.tables().is_some();
        let whole_max = if is_kept {
            WHOLE_BYTES_MAX
        } else {
            WHOLE_IN_MEMORY_BYTES_MAX
        };
        if !is_known && !lines.is_finished() && lines.unread_bytes() <= whole_max {
            if self.unfinished.is_empty() {
                self.since = Instant::now();
            }
            self.unfinished.push(lines);
        }
        let source =
            |(asked, chain): (&(FrameId, u64), _)| Source::new(&request.module, *asked, chain);
        request.frames.iter().zip(chains).map(source).collect()
    }

    /// Makes the table of one file, for further look-ups and runs.
    fn finish_one(&mut self) {
        let Some(lines) = self.unfinished.pop() else {
            return;
        };
        self.since = Instant::now();
        let tables = self.symbolizer.tables();
        // It fails for files that are too large: these are still read unit by unit.
        _ = faults::catch("finding source lines", || lines.finish(tables));
    }
}

/// Returns the answers for a file without lines: every frame gets one, so that none is waited for.
fn without_lines(request: &Request) -> Vec<Source> {
    let none = |asked: &(FrameId, u64)| Source::new(&request.module, *asked, Vec::new());
    request.frames.iter().map(none).collect()
}
