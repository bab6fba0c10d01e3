//! Parser processes from outside: sends orders, waits for them, and ends them.

use super::answer::{MORE, NoAnswer, Waiting};
use super::cpu_time;
use super::message::{Terms, Word, read_request, read_word, write_order, write_word};
use super::pool::{Pool, Reader};
use super::socket::send;
use super::spawner::For;
use rustix::fs::FileType;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use symbolize::files::{Order, Reply, Request, Work};
use symbolize::opener::Blocker;
use symbolize::{Reason, Writers};

/// Maximum number of parsers that wait for an order; beyond that, the one that has waited longest
/// is ended.
const IDLE_MAX: usize = 8;

/// Maximum number of parsers that have the memory of a process and wait for an order about it. These
/// do not count as the others do: each is for one process, of which a server may have many, and takes
/// 0.1 MB of memory by itself.
const MEMORIES_MAX: usize = 32;

/// How long to wait for a busy parser that already knows most files.
const PATIENCE: Duration = Duration::from_secs(1);

/// If there are several parsers for the same work, one without orders for this long is ended: their
/// memory holds the same data. A parser that has the memory of a process is ended then in any case.
const SPARE: Duration = Duration::from_secs(10);

/// How often an order is given if its parser ends while working on it: it may have been killed from
/// outside, or memory was short for a moment.
const TRIES: usize = 4;

/// Work on a file that no parser has survived is not tried again for this long.
const GIVEN_UP: Duration = Duration::from_secs(60);

/// Maximum number of files that are avoided; with more, the first ones are tried again sooner.
const GIVEN_UP_MAX: usize = 256;

/// Maximum CPU time for one order: more than any useful work takes.
const CPU: Duration = Duration::from_secs(20);

/// The same for a recording. The largest ones take one or two minutes.
const CPU_OF_RECORDING: Duration = Duration::from_secs(300);

/// Maximum time for one order by the clock, on a machine that is too busy to give it the CPU time.
const TIME: Duration = Duration::from_secs(120);

/// Maximum time by the clock for an order about the memory of a process, which may make its readers
/// wait. The parser itself begins to read no more after a second.
pub const TIME_OF_MEMORY: Duration = Duration::from_millis(1200);

/// Maximum time by the clock for work of low priority, and for recordings.
const TIME_BEHIND_OTHERS: Duration = Duration::from_secs(1200);

/// How often the CPU time of an order is checked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// For each parser, maximum number of files that it is known to have read, the last ones.
const KNOWN_MAX: usize = 64;

/// A process that reads files of certain writers (the users who can write to them), for one kind of
/// work.
#[derive(Debug)]
struct Parser {
    reader: Reader,
    work: Work,
    writers: Writers,
    known: VecDeque<u64>,
    /// Time of its last order.
    used: Instant,
}

/// All parsers.
#[derive(Debug)]
pub struct Parsers {
    pool: Arc<Pool>,
    state: Mutex<ParsersState>,
    /// Notified when a parser has done its order or has ended.
    done: Condvar,
}

#[derive(Debug, Default)]
struct ParsersState {
    /// The parsers that wait for an order, the one used last at the end.
    idle: Vec<Parser>,
    /// The orders that are being performed, each by a parser of its own.
    busy: Vec<(Work, Writers)>,
    /// Files on which parsers for some work have ended, and until when that work is not tried
    /// again.
    given_up: VecDeque<(Work, u64, Instant)>,
    /// Number of failed orders.
    failed: u64,
}

/// The ways in which an order can fail.
enum Failed {
    /// The order takes too long, and would do so in any other parser.
    InTime,
    /// The memory of the process could not be read in time. If true, the parser waits for it or is not
    /// done with it; if false, it only had no CPU.
    Waiting(bool),
    /// The parser has ended: killed from outside, by a limit of memory, or because of what it read.
    Gone,
}

impl Parsers {
    /// Starts without parsers; they are forked through `pool` when needed.
    pub fn new(pool: Arc<Pool>) -> Self {
        Self {
            pool,
            state: Mutex::default(),
            done: Condvar::new(),
        }
    }

    /// Performs an order; `ask` performs the requests of the parser.
    pub fn perform(
        &self,
        order: &Order<'_>,
        ask: &dyn Fn(&Request<'_>, &Terms) -> Result<Reply, Reason>,
    ) -> Result<Reply, Reason> {
        if self.state().is_given_up(order) {
            return Err(Reason::Refused);
        }
        let place = order.process.map(Blocker::Process);
        if place.is_some_and(|place| self.pool.avoids(place)) {
            return Err(Reason::Remote);
        }
        for _ in 0..TRIES {
            let Ok(mut parser) = self.take(order) else {
                self.end(order, None);
                break;
            };
            match parser.perform(order, ask) {
                // The state that a fault left behind in the parser is not relied upon.
                Ok(Err(Reason::Mistake)) => {
                    self.end(order, Some(&parser));
                    return Err(Reason::Mistake);
                }
                Ok(reply) if is_used_once(order) => {
                    self.end(order, Some(&parser));
                    return reply;
                }
                // The next order about the process comes with other memory, if there is any.
                Ok(Err(Reason::FileGone)) if order.work == Work::PythonMemory => {
                    self.end(order, Some(&parser));
                    return Err(Reason::FileGone);
                }
                Ok(reply) => {
                    place
                        .into_iter()
                        .for_each(|place| self.pool.has_answered(place));
                    self.give_back(order, parser);
                    return reply;
                }
                Err(Failed::Waiting(is_held)) => {
                    self.end(order, None);
                    self.pool.give_up(&parser.reader, place.filter(|_| is_held));
                    return Err(Reason::Remote);
                }
                Err(failed) => {
                    self.end(order, Some(&parser));
                    if let Failed::InTime = failed {
                        break;
                    }
                }
            }
        }
        self.state().give_up(order, Instant::now());
        Err(Reason::Refused)
    }

    /// Returns a sentence about failed orders; `None` if there are none.
    pub fn note(&self) -> Option<String> {
        let failed = self.state().failed;
        (failed > 0).then(|| {
            format!(
                "{failed} times a file or the memory of a process could not be understood within the bounds of time and memory: names, lines, callers, source text or packages are missing"
            )
        })
    }

    /// Returns a parser that knows the file, or else any idle one of its kind, or else a new one.
    /// From now on such work counts as being performed, until [`Parsers::give_back`] or
    /// [`Parsers::end`].
    fn take(&self, order: &Order<'_>) -> io::Result<Parser> {
        let is_it = |parser: &Parser| parser.may_do(order);
        let knows = |parser: &Parser| is_it(parser) && parser.known.contains(&order.file);
        let kind = (order.work, order.writers);
        let deadline = Instant::now() + patience(order.work);
        let mut state = self.state();
        let idle = loop {
            let place = state
                .idle
                .iter()
                .rposition(knows)
                .or_else(|| state.idle.iter().rposition(is_it));
            let left = deadline.saturating_duration_since(Instant::now());
            match place {
                Some(place) => break Some(state.idle.remove(place)),
                None if left.is_zero() || !state.busy.contains(&kind) => break None,
                None => {
                    let waited = self.done.wait_timeout(state, left);
                    (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        };
        state.busy.push(kind);
        drop(state);
        match idle {
            Some(parser) => Ok(parser),
            None => Ok(Parser {
                reader: self.spawn(order)?,
                work: order.work,
                writers: order.writers,
                known: VecDeque::new(),
                used: Instant::now(),
            }),
        }
    }

    fn spawn(&self, order: &Order<'_>) -> io::Result<Reader> {
        let reader = self.pool.spawn(for_whom(order.work))?;
        if order.process.is_some() {
            // One that takes no orders is not waited for longer than one that does not answer.
            reader.socket.set_write_timeout(Some(TIME_OF_MEMORY))?;
        }
        Ok(reader)
    }

    /// Returns a parser whose order is done, so that it may get another one; it is ended if there
    /// are enough.
    fn give_back(&self, order: &Order<'_>, parser: Parser) {
        let now = Instant::now();
        let surplus: Vec<Parser> = {
            let mut state = self.state();
            state.end_work(order);
            let is_spare = |other: &mut Parser| {
                let is_like_it = other.work == parser.work && other.writers == parser.writers;
                (is_like_it || other.has_memory()) && now - other.used > SPARE
            };
            let mut surplus: Vec<Parser> = state.idle.extract_if(.., is_spare).collect();
            let has_memory = parser.has_memory();
            state.idle.push(Parser {
                used: now,
                ..parser
            });
            let is_of_kind = |other: &Parser| other.has_memory() == has_memory;
            let max = if has_memory { MEMORIES_MAX } else { IDLE_MAX };
            if state.idle.iter().filter(|other| is_of_kind(other)).count() > max {
                let first = state.idle.iter().position(is_of_kind);
                surplus.extend(first.map(|first| state.idle.remove(first)));
            }
            surplus
        };
        self.done.notify_one();
        for parser in surplus {
            self.pool.end_one(parser.reader.pid);
        }
    }

    /// Handles a failed order: ends its parser, if it had one.
    fn end(&self, order: &Order<'_>, parser: Option<&Parser>) {
        self.state().end_work(order);
        self.done.notify_one();
        if let Some(parser) = parser {
            self.pool.end_one(parser.reader.pid);
        }
    }

    fn state(&self) -> MutexGuard<'_, ParsersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The rights and bounds of a parser for such work.
fn for_whom(work: Work) -> For {
    match work {
        Work::Code | Work::Sites => For::FindingCode,
        Work::Recordings => For::ReadingRecordings,
        Work::Names
        | Work::Lines
        | Work::Tables
        | Work::WantedTables
        | Work::JitNames
        | Work::Python
        | Work::PythonMemory
        | Work::Facts
        | Work::Archives
        | Work::Packages => For::Parsing,
    }
}

/// Whether a parser works on such an order only once. A parser that one recording has taken over must
/// not read another one, and the same holds for systems and for files whose writers are unknown.
fn is_used_once(order: &Order<'_>) -> bool {
    match order.work {
        Work::Recordings | Work::Packages => true,
        // It gets no other memory.
        Work::PythonMemory => false,
        _ => order.writers == Writers::UNKNOWN,
    }
}

/// Maximum CPU time for one order of such work.
fn cpu(work: Work) -> Duration {
    if work == Work::Recordings {
        CPU_OF_RECORDING
    } else {
        CPU
    }
}

/// Maximum time for such work by the clock.
fn time(work: Work) -> Duration {
    match work {
        Work::Names
        | Work::WantedTables
        | Work::JitNames
        | Work::Python
        | Work::PythonMemory
        | Work::Code
        | Work::Facts
        | Work::Sites
        | Work::Archives
        | Work::Packages => TIME,
        Work::Tables | Work::Lines | Work::Recordings => TIME_BEHIND_OTHERS,
    }
}

/// How long to wait for a parser that performs another order for the same work, before one more is
/// forked.
fn patience(work: Work) -> Duration {
    match work {
        Work::Names | Work::Lines | Work::JitNames | Work::Code | Work::Sites => PATIENCE,
        // Such a parser keeps nothing of one file that would help with the next.
        Work::Tables
        | Work::WantedTables
        | Work::Python
        | Work::PythonMemory
        | Work::Facts
        | Work::Recordings
        | Work::Archives
        | Work::Packages => Duration::ZERO,
    }
}

/// Whether a parser may have a file that it requested. It must be an ELF file, which holds no
/// secrets unless it is a core dump, and it must be readable for those who can write to the file
/// that the work is about, or belong to root.
pub fn may_have(file: &OwnedFd, for_file_of: &Writers) -> bool {
    let Ok(file) = file.try_clone().map(File::from) else {
        return false;
    };
    let is_theirs = || Writers::of(&file).is_ok_and(|its| its.are_trusted_by(for_file_of));
    let is_ours = || {
        let metadata = file.metadata();
        metadata.is_ok_and(|metadata| Writers::by_mode(&metadata).are_root_or_us())
    };
    is_elf(&file) && (is_ours() || is_theirs())
}

/// Whether it is a regular file that every user may read.
pub fn is_for_everybody(file: &OwnedFd) -> bool {
    rustix::fs::fstat(file).is_ok_and(|status| {
        let is_regular = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
        is_regular && status.st_mode & OTHERS_CAN_READ != 0
    })
}

/// The bit of a mode that lets every user read the file.
const OTHERS_CAN_READ: u32 = 0o4;

/// Whether a file is an ELF file and no core dump.
pub fn is_program(file: &OwnedFd) -> bool {
    file.try_clone().is_ok_and(|file| is_elf(&File::from(file)))
}

fn is_elf(file: &File) -> bool {
    let mut header = [0; 18];
    let is_read = file.read_exact_at(&mut header, 0).is_ok();
    let is_core = header.ends_with(&[CORE_FILE, 0]) || header.ends_with(&[0, CORE_FILE]);
    is_read && header.starts_with(b"\x7fELF") && !is_core
}

/// `ET_CORE`, in either byte order.
const CORE_FILE: u8 = 4;

impl ParsersState {
    /// Removes such work from the list of work being performed.
    fn end_work(&mut self, order: &Order<'_>) {
        let kind = (order.work, order.writers);
        if let Some(place) = self.busy.iter().position(|busy| *busy == kind) {
            self.busy.swap_remove(place);
        }
    }

    fn is_given_up(&mut self, order: &Order<'_>) -> bool {
        let now = Instant::now();
        self.given_up.retain(|(.., until)| now < *until);
        let is_it =
            |(work, file, _): &(Work, u64, Instant)| (*work, *file) == (order.work, order.file);
        self.given_up.iter().any(is_it)
    }

    fn give_up(&mut self, order: &Order<'_>, now: Instant) {
        // The client that named a recording gets an error at once, so it is not counted for the note.
        self.failed += u64::from(order.work != Work::Recordings);
        // The file of such an order got its number for this order alone: no later order has it.
        if is_used_once(order) {
            return;
        }
        if self.given_up.len() == GIVEN_UP_MAX {
            self.given_up.pop_front();
        }
        self.given_up
            .push_back((order.work, order.file, now + GIVEN_UP));
    }
}

impl Parser {
    /// Whether it has only read what may have a say in the answer to this order.
    fn may_do(&self, order: &Order<'_>) -> bool {
        let is_its_kind = self.work == order.work && self.writers == order.writers;
        is_its_kind && (!self.has_memory() || self.known.iter().all(|file| *file == order.file))
    }

    /// Whether it has the memory of a process, and gets no other.
    fn has_memory(&self) -> bool {
        self.work == Work::PythonMemory
    }

    fn perform(
        &mut self,
        order: &Order<'_>,
        ask: &dyn Fn(&Request<'_>, &Terms) -> Result<Reply, Reason>,
    ) -> Result<Result<Reply, Reason>, Failed> {
        self.know(order.file);
        let Reader { socket, inbox, pid } = &mut self.reader;
        let gone = |_| Failed::Gone;
        send(&*socket, &write_order(order), order.files).map_err(gone)?;
        let mut time_of_memory = order.process.map(|_| Waiting::new(TIME_OF_MEMORY, MORE));
        let cpu_time = || cpu_time::of_process(*pid).unwrap_or_default();
        let (begun, cpu_before) = (Instant::now(), cpu_time());
        // A parser that had a CPU for half of the time does not lack one: it works on what it reads.
        let late = || Failed::Waiting(cpu_time().saturating_sub(cpu_before) > TIME_OF_MEMORY / 2);
        let mut look = begun + LOOK_EVERY;
        loop {
            let now = Instant::now();
            if now >= look {
                let used = cpu_time().saturating_sub(cpu_before);
                if now - begun > time(order.work) || used > cpu(order.work) {
                    return Err(Failed::InTime);
                }
                look = now + LOOK_EVERY;
            }
            let (word, files) = if let Some(time) = &mut time_of_memory {
                if time.is_over() {
                    return Err(late());
                }
                match time.receive(inbox, &*socket, *pid) {
                    Ok(word) => word,
                    Err(NoAnswer::Silent) => return Err(Failed::Waiting(true)),
                    Err(NoAnswer::Starved) => return Err(late()),
                    Err(NoAnswer::Gone) => return Err(Failed::Gone),
                }
            } else {
                match inbox.receive(&*socket, Some(look)) {
                    Ok(word) => word,
                    Err(error) if error.kind() == io::ErrorKind::TimedOut => continue,
                    Err(_) => return Err(Failed::Gone),
                }
            };
            match read_word(word, files) {
                Some(Word::Asking(request, files)) => {
                    let reply =
                        read_request(&request, &files, |request, terms| ask(&request, &terms));
                    let reply = Word::Done(reply.unwrap_or(Err(Reason::Refused)));
                    let file = match &reply {
                        Word::Done(Ok(reply)) => reply.file.as_ref(),
                        _ => None,
                    };
                    let files: Vec<_> = file.iter().map(|file| file.as_fd()).collect();
                    send(&*socket, &write_word(&reply), &files).map_err(gone)?;
                }
                Some(Word::Mistaken(fault)) => faults::note(&fault),
                Some(Word::Done(reply)) => return Ok(reply),
                Some(Word::Entering(_)) | None => return Err(Failed::Gone),
            }
        }
    }

    fn know(&mut self, file: u64) {
        if !self.known.contains(&file) {
            if self.known.len() == KNOWN_MAX {
                self.known.pop_front();
            }
            self.known.push_back(file);
        }
    }
}
