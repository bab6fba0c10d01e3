//! The processes that understand files, from outside: given orders, waited for, ended.

use super::cpu_time;
use super::message::{Terms, Word, read_request, read_word, write_order, write_word};
use super::pool::{Pool, Reader};
use super::socket::send;
use super::spawner::For;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use symbolize::files::{Order, Reply, Request, Work};
use symbolize::{Reason, Writers};

/// Parsers that wait for an order; beyond, the one that has waited longest is ended.
const IDLE_MAX: usize = 8;

/// How long a parser is waited for that knows most files already.
const PATIENCE: Duration = Duration::from_secs(1);

/// One of several for the same work that has had none for so long is ended: their memory holds
/// the same.
const SPARE: Duration = Duration::from_secs(10);

/// How often an order is given whose parser ends over it: somebody may have ended it, or
/// memory was short for a moment.
const TRIES: usize = 4;

/// Work on a file that no parser has survived is not tried for so long.
const GIVEN_UP: Duration = Duration::from_secs(60);

/// Files that are left alone; of more, the first are tried again sooner.
const GIVEN_UP_MAX: usize = 256;

/// CPU time for one order: more than anything takes that is of use.
const CPU: Duration = Duration::from_secs(20);

/// The same on a machine that has no time for it.
const TIME: Duration = Duration::from_secs(120);

/// The same of work that yields to everybody else.
const TIME_BEHIND_OTHERS: Duration = Duration::from_secs(1200);

/// How often it is looked how much CPU time an order has taken.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Files that a parser is remembered to have read, the last ones.
const KNOWN_MAX: usize = 64;

/// A process that reads files of certain writers, for one kind of work.
#[derive(Debug)]
struct Parser {
    reader: Reader,
    work: Work,
    writers: Writers,
    known: VecDeque<u64>,
    /// When it had its last order.
    used: Instant,
}

/// All parsers.
#[derive(Debug)]
pub struct Parsers {
    pool: Arc<Pool>,
    state: Mutex<ParsersState>,
    /// One has done its order, or has ended.
    done: Condvar,
}

#[derive(Debug, Default)]
struct ParsersState {
    /// Those that wait for an order, who had one last at the end.
    idle: Vec<Parser>,
    /// What is being done, each by a parser of its own.
    busy: Vec<(Work, Writers)>,
    /// Files over which parsers for some work have ended, and until when that is not tried.
    given_up: VecDeque<(Work, u64, Instant)>,
    /// How many orders came to nothing.
    failed: u64,
}

/// How giving an order failed.
enum Failed {
    /// The order takes too long, and would in any other parser.
    InTime,
    /// The parser has ended: by somebody, by a bound of memory, or by what it read.
    Gone,
}

impl Parsers {
    pub fn new(pool: Arc<Pool>) -> Self {
        Self {
            pool,
            state: Mutex::default(),
            done: Condvar::new(),
        }
    }

    /// Has an order performed; `ask` performs what the parser asks for.
    pub fn perform(
        &self,
        order: &Order<'_>,
        ask: &dyn Fn(&Request<'_>, &Terms) -> Result<Reply, Reason>,
    ) -> Result<Reply, Reason> {
        if self.state().is_given_up(order) {
            return Err(Reason::Refused);
        }
        for _ in 0..TRIES {
            let Ok(mut parser) = self.take(order) else {
                self.end(order, None);
                break;
            };
            match parser.perform(order, ask) {
                // What a mistake left behind in it is not relied upon.
                Ok(Err(Reason::Mistake)) => {
                    self.end(order, Some(&parser));
                    return Err(Reason::Mistake);
                }
                Ok(reply) => {
                    self.give_back(order, parser);
                    return reply;
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

    /// What came to nothing, in a sentence.
    pub fn note(&self) -> Option<String> {
        let failed = self.state().failed;
        (failed > 0).then(|| {
            format!(
                "{failed} times a file could not be understood within the bounds of time and memory: names, lines or callers in it are missing"
            )
        })
    }

    /// One that knows the file, or else any of its kind, or else a new one. From now on such
    /// work counts as being done, until [`Parsers::give_back`] or [`Parsers::end`].
    fn take(&self, order: &Order<'_>) -> io::Result<Parser> {
        let is_it = |parser: &Parser| parser.work == order.work && parser.writers == order.writers;
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
                reader: self.pool.spawn(For::Parsing)?,
                work: order.work,
                writers: order.writers,
                known: VecDeque::new(),
                used: Instant::now(),
            }),
        }
    }

    /// An order is done: its parser may have another one, of which there are enough.
    fn give_back(&self, order: &Order<'_>, parser: Parser) {
        let now = Instant::now();
        let surplus: Vec<Parser> = {
            let mut state = self.state();
            state.end_work(order);
            let is_spare = |other: &mut Parser| {
                let is_like_it = other.work == parser.work && other.writers == parser.writers;
                is_like_it && now - other.used > SPARE
            };
            let mut surplus: Vec<Parser> = state.idle.extract_if(.., is_spare).collect();
            state.idle.push(Parser {
                used: now,
                ..parser
            });
            if state.idle.len() > IDLE_MAX {
                surplus.push(state.idle.remove(0));
            }
            surplus
        };
        self.done.notify_one();
        for parser in surplus {
            self.pool.end_one(parser.reader.pid);
        }
    }

    /// An order came to nothing: its parser is ended, if it had one.
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

/// How long an order for such work may take by the clock.
fn time(work: Work) -> Duration {
    match work {
        Work::Names | Work::WantedTables | Work::JitNames => TIME,
        Work::Tables | Work::Lines => TIME_BEHIND_OTHERS,
    }
}

/// How long a parser is waited for that performs another order for the same work, before there is
/// one more.
fn patience(work: Work) -> Duration {
    match work {
        Work::Names | Work::Lines | Work::JitNames => PATIENCE,
        // It keeps nothing of one file that would help with the next.
        Work::Tables | Work::WantedTables => Duration::ZERO,
    }
}

/// Whether a parser may have a file that it asked for: an ELF file, which holds no secrets
/// unless it is what was left of a process, and one that those who can write to the file that
/// it is asked for could read, or root's.
pub fn may_have(file: &OwnedFd, for_file_of: &Writers) -> bool {
    let Ok(file) = file.try_clone().map(File::from) else {
        return false;
    };
    let mut header = [0; 18];
    let is_read = file.read_exact_at(&mut header, 0).is_ok();
    let is_core = header.ends_with(&[CORE_FILE, 0]) || header.ends_with(&[0, CORE_FILE]);
    let is_program = is_read && header.starts_with(b"\x7fELF") && !is_core;
    let is_theirs = || Writers::of(&file).is_ok_and(|its| its.are_trusted_by(for_file_of));
    let is_ours = || {
        let metadata = file.metadata();
        metadata.is_ok_and(|metadata| Writers::by_mode(&metadata).are_root_or_us())
    };
    is_program && (is_ours() || is_theirs())
}

/// `ET_CORE`, in either order of bytes.
const CORE_FILE: u8 = 4;

impl ParsersState {
    /// Such work is no longer being done.
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
        self.failed += 1;
        if self.given_up.len() == GIVEN_UP_MAX {
            self.given_up.pop_front();
        }
        self.given_up
            .push_back((order.work, order.file, now + GIVEN_UP));
    }
}

impl Parser {
    fn perform(
        &mut self,
        order: &Order<'_>,
        ask: &dyn Fn(&Request<'_>, &Terms) -> Result<Reply, Reason>,
    ) -> Result<Result<Reply, Reason>, Failed> {
        self.know(order.file);
        let Reader { socket, inbox, pid } = &mut self.reader;
        let gone = |_| Failed::Gone;
        send(&*socket, &write_order(order), order.files).map_err(gone)?;
        let cpu_time = || cpu_time::of_process(*pid).unwrap_or_default();
        let (begun, cpu_before) = (Instant::now(), cpu_time());
        let mut look = begun + LOOK_EVERY;
        loop {
            let now = Instant::now();
            if now >= look {
                if now - begun > time(order.work) || cpu_time().saturating_sub(cpu_before) > CPU {
                    return Err(Failed::InTime);
                }
                look = now + LOOK_EVERY;
            }
            let (word, files) = match inbox.receive(&*socket, Some(look)) {
                Ok(word) => word,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => continue,
                Err(_) => return Err(Failed::Gone),
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
