//! The thread that owns the probes of a run: it places them, checks the cost of each, removes it
//! when its time is over, and reports the counts.
//!
//! It reads no files of targets; [`finder`](super::finder) does. All probes depend on its
//! descriptors: when it ends, or proftop does, they are gone.
//!
//! An order goes through these steps:
//!
//! 1. the model sends it, and it is listed as being looked up
//! 2. the finder looks up the function and answers with its sites, or why there are none
//! 3. the kernel side is loaded, and the cost of one hit on this machine is measured
//! 4. it is placed, with a limited lifetime
//! 5. its counts are read four times a second, until it costs too much, its time is over, or its
//!    process has ended
//!
//! | module | holds |
//! |---|---|
//! | `entry` | one probe, from the order to its end |
//! | `callers` | counts sampled stacks of calls |
//! | `message` | messages to the thread, and its reports |
//! | `told` | converts a probe to its form in snapshots |

mod callers;
mod entry;
mod message;
#[cfg(test)]
mod tests;
mod told;

pub use message::{Asked, Counted, Message, News, Stack};

use super::expression::Values;
use super::find::NotFound;
use super::finder::{Answer, Finder, Question, Seek};
use super::guard::ProbeLimits;
use super::order::{ProbeOrder, ProbedFunction, Which, Whose};
use super::reach::Reach;
use super::shown::{OnCpu, Probes, Word};
use super::suggest::Suggested;
use super::{Found, Recorder, Search};
use crate::naming::NamedModule;
use callers::Names;
use entry::{Entry, EntryState, Past};
use faults::Patience;
use probe::ask_kernel;
use probe::call::{Calls, Cost};
use probe::call_orders::PROBES_MAX;
use probe::channel::{Receiver, RecvTimeoutError, Sender, channel};
use probe::confine::{self, Duty};
use std::cell::Cell;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use symbolize::Symbolizer;

/// Lifetime of a probe after it was placed or renewed.
const LIFETIME: Duration = Duration::from_secs(60);

/// How often the cost of probes is checked.
const JUDGED_EVERY: Duration = Duration::from_millis(250);

/// How often the keeper sends the model what probes have counted. It also does so at once
/// when a probe is placed, changed or taken away.
const TOLD_EVERY: Duration = Duration::from_millis(1000);

/// The time from placing a probe until its counts are read for the first time.
const FIRST_LOOK: Duration = Duration::from_millis(60);

/// How long a report waits for the current counts.
const FRESH_NEWS: Duration = Duration::from_secs(1);

/// Maximum number of listed probes, including removed ones.
const LISTED_MAX: usize = PROBES_MAX;

/// The clock for lifetimes. Tests use one that is moved by hand.
type Clock = Box<dyn Fn() -> Instant + Send>;

/// The handle of the thread. Dropping it removes all probes.
///
/// Owned by the model, which sends it orders and samples of calls, and requests news when it makes
/// a snapshot.
pub struct Keeper {
    messages: Sender<Message>,
    news: Receiver<News>,
    /// Number of times that a reading of all probes was requested.
    looks: Cell<u64>,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.send(Message::End);
    }
}

impl Keeper {
    /// Starts the thread. It calls `ask` for requests to the source of samples, at most once each:
    /// for its probes with the first order, and to begin when the first ones are in place.
    ///
    /// `before` is what was shown until now: its number of orders and its last sentence are
    /// continued.
    pub fn start(
        symbolizer: Arc<Symbolizer>,
        reach: Reach,
        before: &Probes,
        ask: impl Fn(Asked) + Send + 'static,
    ) -> std::io::Result<Self> {
        Self::start_with(Box::new(Instant::now), symbolizer, reach, before, ask)
    }

    /// Starts the thread as [`Keeper::start`] does, with another clock.
    fn start_with(
        clock: Clock,
        symbolizer: Arc<Symbolizer>,
        reach: Reach,
        before: &Probes,
        ask: impl Fn(Asked) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (messages, inbox) = channel();
        let (tell, news) = channel();
        let own = messages.clone();
        let to_finder = messages.clone();
        let finder = Finder::start(symbolizer, reach.clone(), move |answer| {
            to_finder.send(Message::Found(answer)).is_ok()
        })?;
        let mut state = KeeperState {
            clock,
            finder,
            reach,
            tell,
            calls: KernelSide::NotRequested,
            entries: Vec::new(),
            names: Names::default(),
            recorder: Recorder::default(),
            waiting: Vec::new(),
            numbers: 0,
            touched: 0,
            turn: before.turn,
            suggested: None,
            word: before.word.clone(),
            look: 0,
            is_urgent: false,
            has_begun: false,
            has_names: false,
            told: Instant::now(),
            judged: Instant::now(),
            counted: Arc::default(),
        };
        let run = move || {
            confine::thread(Duty::Sampling);
            state.run(&inbox, &own, ask);
        };
        // It attaches probes, which needs a right that the thread of the first order does not have.
        let start = move || thread::Builder::new().name("probes".into()).spawn(run);
        let mistake = || Err(std::io::Error::other("proftop made a mistake of its own"));
        ask_kernel::ask(start).unwrap_or_else(mistake)?;
        Ok(Self {
            messages,
            news,
            looks: Cell::new(0),
        })
    }

    /// Sends the thread a message, without waiting.
    pub fn send(&self, message: Message) {
        // If the thread has ended, there are no probes any more.
        let _ = self.messages.send(message);
    }

    /// The current news, if there is anything new.
    pub fn news(&self) -> Option<News> {
        Self::newest(self.news.try_iter())
    }

    /// Waits until all probes have been read once more, and returns the news; `None` if that takes
    /// too long.
    pub fn fresh_news(&self) -> Option<News> {
        self.looks.set(self.looks.get() + 1);
        self.send(Message::Look(self.looks.get()));
        let until = Instant::now() + FRESH_NEWS;
        let mut all = Vec::new();
        // News that the keeper sent before this reading may come first.
        while all
            .last()
            .is_none_or(|news: &News| news.look != self.looks.get())
        {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(news) = self.news.recv_timeout(left) else {
                break;
            };
            all.push(news);
        }
        Self::newest(all.into_iter())
    }

    /// Merges several news to the newest one.
    fn newest(mut all: impl Iterator<Item = News>) -> Option<News> {
        let mut last = all.next()?;
        for news in all {
            // Only the newest counts, except that urgency must not be lost.
            let is_urgent = last.is_urgent || news.is_urgent;
            last = News { is_urgent, ..news };
        }
        Some(last)
    }
}

/// The kernel side. It is requested with the first order, because loading it takes time that a run
/// without probes can save.
enum KernelSide {
    NotRequested,
    Requested,
    Ready(Box<Calls>, Cost),
    /// Why there is none: a sentence.
    Refused(String),
}

/// The state of the thread.
struct KeeperState {
    clock: Clock,
    finder: Finder,
    /// Which processes may be probed.
    reach: Reach,
    tell: Sender<News>,
    calls: KernelSide,
    /// The probes in the order in which they were ordered; at most [`LISTED_MAX`].
    entries: Vec<Entry>,
    /// Names of the frames in sampled stacks of calls.
    names: Names,
    /// The counts of each second, for recordings.
    recorder: Recorder,
    /// Functions that were found before the kernel side was loaded.
    waiting: Vec<(u64, Vec<Found>)>,
    /// The number of the newest probe.
    numbers: u64,
    /// The number of the probe that the last order was about; 0 if the order was refused.
    touched: u64,
    /// Number of orders that were handled or lost: the sender of an order recognizes by it that
    /// there is nothing to wait for any more.
    turn: u64,
    /// Suggested names for what was typed last.
    suggested: Option<Arc<Suggested>>,
    /// The last sentence for the user.
    word: Option<Word>,
    /// Number of the last request to read all probes.
    look: u64,
    /// Whether a probe has changed in a way that is sent to the model at once.
    is_urgent: bool,
    /// Whether the command was allowed to run.
    has_begun: bool,
    /// Whether there are new names that were not sent yet.
    has_names: bool,
    /// When news were last sent, and when probes were last checked.
    told: Instant,
    judged: Instant,
    /// Probes whose functions the model counts in samples of the clock.
    counted: Arc<Vec<Counted>>,
}

impl KeeperState {
    /// Handles messages until one says to end, or their sender is dropped. Between messages
    /// the thread sleeps until the probes have to be read or judged; without probes it sleeps
    /// until a message comes.
    fn run(&mut self, inbox: &Receiver<Message>, own: &Sender<Message>, ask: impl Fn(Asked)) {
        let mut patience = Patience::default();
        loop {
            let first = match self.due_in() {
                Some(wait) => match inbox.recv_timeout(wait) {
                    Ok(message) => Some(message),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return,
                },
                None => match inbox.recv() {
                    Ok(message) => Some(message),
                    Err(_) => return,
                },
            };
            if let Some(first) = &first {
                self.count(first);
            }
            // A bug costs one turn; if it happens again and again, the thread ends.
            let turn = faults::catch("watching calls", || {
                let mut next = first;
                while let Some(message) = next {
                    match message {
                        Message::End => return false,
                        message => self.handle(message, || ask(Asked::Calls(own.clone()))),
                    }
                    next = inbox.try_recv().ok();
                    if let Some(next) = &next {
                        self.count(next);
                    }
                }
                if !self.has_begun && self.is_settled() {
                    self.has_begun = true;
                    ask(Asked::Begin);
                }
                self.take_turn()
            });
            let mistake = turn.as_ref().err().map(ToString::to_string);
            match patience.take(turn) {
                Ok(Some(true) | None) => {}
                Ok(Some(false)) | Err(_) => return,
            }
            if let Some(mistake) = mistake {
                // It may have cost an order.
                self.touched = 0;
                self.say(&mistake);
            }
        }
    }

    /// Counts an order before it is handled: its sender must not wait for one that a bug costs.
    fn count(&mut self, message: &Message) {
        if let Message::Order(order, _) = message {
            self.turn += u64::from(order.is_counted());
        }
    }

    /// Returns the time until the next action without a message; `None` if there is none.
    fn due_in(&self) -> Option<Duration> {
        let is_alive = |entry: &Entry| matches!(entry.state, EntryState::InPlace(_));
        let is_missing = |entry: &Entry| entry.missing_since.is_some();
        let has_probes = self.entries.iter().any(is_alive);
        let has_missing = self.entries.iter().any(is_missing);
        let is_untold = |entry: &Entry| match &entry.state {
            EntryState::InPlace(watched) => !watched.is_looked_at,
            _ => false,
        };
        if self.is_urgent {
            Some(Duration::ZERO)
        } else if self.entries.iter().any(is_untold) {
            Some(FIRST_LOOK / 3)
        } else if has_missing && !has_probes {
            Some(JUDGED_EVERY)
        } else if has_probes {
            Some(JUDGED_EVERY.saturating_sub(self.judged.elapsed()))
        } else {
            self.has_names
                .then(|| TOLD_EVERY.saturating_sub(self.told.elapsed()))
        }
    }

    /// Handles one message.
    fn handle(&mut self, message: Message, ask_for_calls: impl Fn()) {
        match message {
            // It does not change any probe.
            Message::Order(ProbeOrder::Suggest(typed), _) => {
                self.finder.ask(Question::Suggest(typed));
            }
            Message::Found(Answer::Suggested(suggested)) => {
                self.suggested = Some(Arc::new(suggested));
                self.is_urgent = true;
            }
            Message::Order(order, module) => {
                let is_placing =
                    matches!(order, ProbeOrder::Place { .. } | ProbeOrder::Keep { .. });
                if matches!(self.calls, KernelSide::NotRequested) && is_placing {
                    self.calls = KernelSide::Requested;
                    ask_for_calls();
                }
                self.is_urgent = true;
                self.apply(order, module);
            }
            Message::Calls(calls) => self.take_calls(calls),
            Message::Stack(stack) => self.take_stack(stack),
            Message::Found(Answer::Named(named)) => {
                self.names.take(named, &mut self.recorder);
                self.has_names = true;
            }
            Message::Found(Answer::Sought {
                number,
                attempt,
                found,
            }) => self.take_found(number, attempt, found),
            Message::OnCpu {
                number,
                from_ns,
                time,
            } => self.take_cpu(number, from_ns, time),
            Message::Look(number) => self.look_at_all(number),
            Message::End => {}
        }
    }

    /// Handles an order.
    fn apply(&mut self, order: ProbeOrder, module: Option<Arc<NamedModule>>) {
        match order {
            ProbeOrder::Place { place, whose } => self.order_placed(place, whose, module),
            ProbeOrder::Keep {
                name,
                values,
                limits,
            } => self.order_kept(name, values, limits),
            ProbeOrder::Renew(which) => {
                let meant = self.entries.iter().filter(|entry| which.is(entry.number));
                let meant: Vec<u64> = meant.map(|entry| entry.number).collect();
                for number in meant {
                    self.renew(number);
                }
            }
            ProbeOrder::Remove(which) => {
                self.take_away(|entry| which.is(entry.number));
                self.entries.retain(|entry| !which.is(entry.number));
                if let Which::All = which {
                    self.waiting.clear();
                }
            }
            ProbeOrder::Suggest(_) => {}
            // Other values need another program in the kernel, so the probe is placed again.
            ProbeOrder::Values { number, values } => {
                let Some(at) = self.position(number) else {
                    return;
                };
                let values = match super::expression::Values::new(values) {
                    Ok(values) => values,
                    Err(why) => return self.say(&why),
                };
                self.take_away(|entry| entry.number == number);
                let before = std::mem::replace(&mut self.entries[at].search.values, values);
                self.entries[at].values_before = Some(before);
                self.touched = number;
                self.seek(at);
            }
        }
    }

    /// Lists a new probe and looks up its function. A probe that already exists is renewed instead.
    fn order_placed(
        &mut self,
        place: ProbedFunction,
        whose: Whose,
        module: Option<Arc<NamedModule>>,
    ) {
        let same = |entry: &&Entry| entry.place.is_as(&place) && entry.whose == whose;
        if let Some(number) = self.entries.iter().find(same).map(|entry| entry.number) {
            self.touched = number;
            return self.renew(number);
        }
        self.touched = 0;
        if let KernelSide::Refused(why) = &self.calls {
            let why = why.clone();
            return self.refuse(place.shown(), &why);
        }
        if !self.make_room() {
            return self.refuse(place.shown(), "there are 64 probes already");
        }
        self.numbers += 1;
        self.touched = self.numbers;
        let entry = Entry::new(self.numbers, place, whose, module);
        self.entries.push(entry);
        self.seek(self.entries.len() - 1);
    }

    /// Lists a probe that stays for the whole run, and looks up its function.
    fn order_kept(&mut self, name: Arc<str>, values: Values, limits: ProbeLimits) {
        self.numbers += 1;
        let mut entry = Entry::new(
            self.numbers,
            ProbedFunction::Named(name),
            Whose::Target,
            None,
        );
        entry.search.values = values;
        entry.limits = limits;
        entry.stays = true;
        let has_room = self.make_room();
        self.entries.push(entry);
        let at = self.entries.len() - 1;
        match &self.calls {
            KernelSide::Refused(why) => {
                let why = why.clone();
                self.drop_refused(at, &why);
            }
            _ if !has_room => self.drop_refused(at, "there are 64 probes already"),
            _ => self.seek(at),
        }
    }

    /// Whether all ordered probes are in place, or cannot be placed now.
    fn is_settled(&self) -> bool {
        let is_sought = |entry: &Entry| {
            let is_first = entry.missing_since.is_none();
            matches!(entry.state, EntryState::Sought) && is_first
        };
        !self.entries.is_empty() && !self.entries.iter().any(is_sought)
    }

    /// Looks up functions again that were missing.
    fn seek_missing(&mut self) {
        for at in 0..self.entries.len() {
            let entry = &self.entries[at];
            let since = entry.missing_since.filter(|_| !entry.is_asked);
            if since.is_some_and(|since| since.elapsed() >= JUDGED_EVERY) {
                self.seek(at);
            }
        }
    }

    /// Makes room by dropping a removed probe. Returns false if all are in place.
    fn make_room(&mut self) -> bool {
        if self.entries.len() < LISTED_MAX {
            return true;
        }
        let is_gone = |entry: &Entry| matches!(entry.state, EntryState::Gone(_));
        let oldest = self.entries.iter().position(is_gone);
        oldest.map(|at| self.entries.remove(at)).is_some()
    }

    /// Restarts the lifetime of a probe; a removed one is looked up and placed again.
    fn renew(&mut self, number: u64) {
        let Some(at) = self.position(number) else {
            return;
        };
        match &mut self.entries[at].state {
            EntryState::InPlace(watched) => watched.expires = (self.clock)() + LIFETIME,
            EntryState::Sought => {}
            EntryState::Gone(_) => self.seek(at),
        }
    }

    /// Requests the function of an order from the finder. Each request has a number, so that a late
    /// answer to an earlier one is recognized.
    fn seek(&mut self, at: usize) {
        let entry = &mut self.entries[at];
        entry.state = EntryState::Sought;
        entry.is_asked = true;
        entry.attempt += 1;
        self.finder.ask(Question::Seek(Seek {
            number: entry.number,
            attempt: entry.attempt,
            place: entry.place.clone(),
            module: entry.module.clone(),
            whose: entry.whose.clone(),
            search: Search {
                returns: true,
                ..entry.search.clone()
            },
        }));
    }

    fn position(&self, number: u64) -> Option<usize> {
        self.entries.iter().position(|entry| entry.number == number)
    }

    /// Measures the cost of a hit, and places what has been found.
    fn take_calls(&mut self, calls: Result<Box<Calls>, String>) {
        let measured = calls.and_then(|mut calls| {
            let cost = calls.measure_cost().map_err(|error| error.to_string())?;
            Ok((calls, cost))
        });
        self.calls = match measured {
            Ok((calls, cost)) => KernelSide::Ready(calls, cost),
            Err(why) => KernelSide::Refused(why),
        };
        for (number, found) in std::mem::take(&mut self.waiting) {
            self.place(number, found);
        }
        if let KernelSide::Refused(why) = &self.calls {
            let why = why.clone();
            for at in (0..self.entries.len()).rev() {
                self.drop_refused(at, &why);
            }
        }
    }

    /// Handles the finder's answer to an order.
    fn take_found(&mut self, number: u64, attempt: u64, found: Result<Vec<Found>, NotFound>) {
        let Some(at) = self.position(number) else {
            return;
        };
        if self.entries[at].attempt != attempt {
            // There is a newer request.
            return;
        }
        self.entries[at].is_asked = false;
        match found {
            Ok(found) => {
                self.entries[at].missing_since = None;
                self.entries[at].values_before = None;
                self.place(number, found);
            }
            // If new values cannot be read, the probe keeps the previous ones.
            Err(not_found) if self.entries[at].values_before.is_some() => {
                let before = self.entries[at].values_before.take().unwrap_or_default();
                self.entries[at].search.values = before;
                self.say(&not_found.why());
                self.seek(at);
            }
            // The function may be loaded later.
            Err(NotFound::Missing(_)) if self.entries[at].stays => {
                self.is_urgent |= self.entries[at].missing_since.is_none();
                self.entries[at].missing_since = Some(Instant::now());
            }
            Err(NotFound::Missing(why) | NotFound::Refused(why)) => self.drop_refused(at, &why),
        }
    }

    /// Removes an order from the list and reports why it is refused. An order of `record --probe`
    /// remains listed, because the recording names every requested function.
    fn drop_refused(&mut self, at: usize, why: &str) {
        let shown = Arc::clone(self.entries[at].place.shown());
        if self.entries[at].stays {
            self.entries[at].missing_since = None;
            self.entries[at].state = EntryState::Gone(Box::new(Past {
                why: why.into(),
                watched: None,
            }));
        } else {
            self.entries.remove(at);
        }
        self.refuse(&shown, why);
    }

    /// Places the functions that were found for an order; if there are several, each becomes a
    /// probe of its own.
    fn place(&mut self, number: u64, mut found: Vec<Found>) {
        let Some(at) = self.position(number) else {
            return;
        };
        // They are placed once the kernel side is loaded.
        if let KernelSide::Requested | KernelSide::NotRequested = self.calls {
            self.waiting.push((number, found));
            return;
        }
        let others = found.split_off(found.len().min(1));
        if others.len() > LISTED_MAX - self.entries.len() {
            let many = others.len() + 1;
            let why = format!("that fits {many} functions, and {LISTED_MAX} can be probed");
            return self.drop_refused(at, &why);
        }
        let Some(first) = found.pop() else {
            return self.drop_refused(at, "no function was found");
        };
        let (whose, search) = (
            self.entries[at].whose.clone(),
            self.entries[at].search.clone(),
        );
        let stays = self.entries[at].stays;
        self.place_one(number, first);
        for found in others {
            self.numbers += 1;
            let place = ProbedFunction::Named(format!("{}!{}", found.module, found.name).into());
            let mut entry = Entry::new(self.numbers, place, whose.clone(), None);
            entry.search = search.clone();
            entry.stays = stays;
            self.entries.push(entry);
            self.place_one(self.numbers, found);
        }
    }

    /// Places one function under a number of the list.
    fn place_one(&mut self, number: u64, found: Found) {
        let Some(at) = self.position(number) else {
            return;
        };
        self.is_urgent = true;
        let KernelSide::Ready(calls, cost) = &mut self.calls else {
            return;
        };
        let entry = &mut self.entries[at];
        let expires = (self.clock)() + LIFETIME;
        let (recorder, reach) = (&mut self.recorder, &self.reach);
        match entry.place(calls, recorder, *cost, reach, found, expires) {
            Ok(()) => self.count_anew(),
            Err(why) => self.drop_refused(at, &why),
        }
    }

    /// Removes the selected probes from the kernel; they stay listed.
    fn take_away(&mut self, is_meant: impl Fn(&Entry) -> bool) {
        if let KernelSide::Ready(calls, _) = &mut self.calls {
            for entry in self.entries.iter_mut().filter(|entry| is_meant(entry)) {
                entry.take_away(calls, &mut self.recorder, "it was taken away");
            }
        }
        self.count_anew();
    }

    /// Counts the sampled stack of a call for its probe, if that is in place.
    fn take_stack(&mut self, stack: Stack) {
        let watched = self
            .entries
            .iter_mut()
            .find_map(|entry| match &mut entry.state {
                EntryState::InPlace(watched) if watched.probe == stack.probe => Some(watched),
                _ => None,
            });
        if let Some(watched) = watched {
            if let Some(track) = &mut watched.track {
                callers::record(&stack, &watched.found, track, &mut self.recorder);
            }
            watched.callers.take(stack, &watched.found);
        }
    }

    /// Adds CPU time of a probed function to its probe, if that is still the one that was placed at
    /// that time.
    fn take_cpu(&mut self, number: u64, from_ns: u64, time: OnCpu) {
        let watched = self
            .entries
            .iter_mut()
            .find(|entry| entry.number == number)
            .and_then(Entry::watched_mut);
        if let Some(watched) = watched
            && watched.placed_ns == from_ns
            && let Some(track) = &mut watched.track
        {
            track.take_cpu(time.samples, time.cpu_ns);
        }
    }

    /// Reads all probes, so that the next news include every call up to now.
    fn look_at_all(&mut self, number: u64) {
        self.is_urgent = true;
        self.look = number;
        let KernelSide::Ready(calls, _) = &mut self.calls else {
            return;
        };
        for entry in &mut self.entries {
            if let EntryState::InPlace(watched) = &mut entry.state {
                watched.look(calls, &mut self.recorder);
            }
        }
    }

    /// Writes everything seen so far to the log, so that it contains what snapshots show.
    fn settle(&mut self) {
        for entry in &mut self.entries {
            if let Some(track) = entry.watched_mut().and_then(|it| it.track.as_mut()) {
                self.recorder.settle(track);
            }
        }
    }

    /// Does what is due, and sends news. Returns false if there is no receiver any more.
    fn take_turn(&mut self) -> bool {
        if self.judged.elapsed() >= JUDGED_EVERY {
            self.judge();
        }
        self.look_at_new();
        self.seek_missing();
        let is_due = self.told.elapsed() >= TOLD_EVERY && self.has_news();
        if !is_due && !self.is_urgent {
            return true;
        }
        self.has_names = false;
        self.ask_for_names();
        self.look_at_newer();
        self.told = Instant::now();
        let is_urgent = std::mem::take(&mut self.is_urgent);
        self.settle();
        let now = (self.clock)();
        let probes = Probes {
            list: self
                .entries
                .iter()
                .map(|entry| told::of_entry(entry, &self.names, now))
                .collect(),
            touched: self.touched,
            turn: self.turn,
            word: self.word.clone(),
            suggested: self.suggested.clone(),
        };
        let news = News {
            probes,
            counted: Arc::clone(&self.counted),
            log: Arc::clone(self.recorder.log()),
            look: self.look,
            is_urgent,
        };
        self.tell.send(news).is_ok()
    }

    /// Whether counts change without messages.
    fn has_news(&self) -> bool {
        let changes = |entry: &Entry| !matches!(entry.state, EntryState::Gone(_));
        self.has_names || self.entries.iter().any(changes)
    }

    /// Reads the counts of newly placed probes, and sends them to the model as soon as there are
    /// any.
    fn look_at_new(&mut self) {
        let KernelSide::Ready(calls, _) = &mut self.calls else {
            return;
        };
        for entry in &mut self.entries {
            if let EntryState::InPlace(watched) = &mut entry.state
                && !watched.is_looked_at
                && watched.placed.elapsed() >= FIRST_LOOK
            {
                watched.look_first(calls, &mut self.recorder);
                let calls = watched.reading.as_ref().map_or(0, |reading| reading.calls);
                // A function that is not called within JUDGED_EVERY is reported with 0 calls.
                watched.is_looked_at = calls > 0 || watched.placed.elapsed() >= JUDGED_EVERY;
                self.is_urgent |= watched.is_looked_at;
            }
        }
    }

    /// Reads the counts of probes that got stacks since the last reading, so that there are never
    /// more stacks than calls.
    fn look_at_newer(&mut self) {
        let KernelSide::Ready(calls, _) = &mut self.calls else {
            return;
        };
        for entry in &mut self.entries {
            if let EntryState::InPlace(watched) = &mut entry.state
                && watched.is_looked_at
                && watched.has_newer_stacks()
            {
                watched.look(calls, &mut self.recorder);
            }
        }
    }

    /// Reads every probe; removes those that cost too much, whose time is over, and whose processes
    /// have ended.
    fn judge(&mut self) {
        let since = self.judged.elapsed();
        self.judged = Instant::now();
        let now = (self.clock)();
        let KernelSide::Ready(calls, _) = &mut self.calls else {
            return;
        };
        calls.end_measuring();
        let mut gone = Vec::new();
        for entry in &mut self.entries {
            let EntryState::InPlace(watched) = &mut entry.state else {
                continue;
            };
            let too_much = watched.judge(calls, &mut self.recorder, since);
            let why = if let Some(too_much) = too_much {
                Some((too_much.explain(ProbeLimits::default()), true))
            } else if entry.stays {
                None
            } else if watched.expires <= now {
                Some(("its time was over".to_string(), false))
            } else if entry.has_ended(&self.reach) {
                Some(("its process has ended".to_string(), false))
            } else {
                None
            };
            if let Some((why, is_said)) = why {
                entry.take_away(calls, &mut self.recorder, &why);
                gone.push((Arc::clone(entry.shown()), why, is_said));
            }
        }
        if gone.is_empty() {
            return;
        }
        self.is_urgent = true;
        for (name, why, is_said) in gone {
            if is_said {
                self.say(&format!("the probe on {name} was taken away: {why}"));
            }
        }
        self.count_anew();
    }

    /// Requests names of frames in stacks of calls that have none yet from the finder.
    fn ask_for_names(&mut self) {
        let watched = self.entries.iter().filter_map(Entry::callers);
        let unknown = self.names.unknown(watched);
        if !unknown.is_empty() {
            self.finder.ask(Question::Name(unknown));
        }
    }

    /// Updates the list of functions that the model counts.
    fn count_anew(&mut self) {
        let counted = self.entries.iter().filter_map(Entry::counted);
        self.counted = Arc::new(counted.collect());
    }

    /// Reports that there is no probe, and why.
    fn refuse(&mut self, name: &str, why: &str) {
        self.say(&format!("no probe on {name}: {why}"));
    }

    /// Shows a sentence to the user, replacing the previous one.
    fn say(&mut self, sentence: &str) {
        let number = self.word.as_ref().map_or(0, |word| word.number) + 1;
        self.word = Some(Word {
            number,
            sentence: sentence.into(),
        });
        self.is_urgent = true;
    }
}
