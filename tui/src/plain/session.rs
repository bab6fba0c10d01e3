//! A *session* is the app without a screen: whatever it asks is answered before
//! the next line is read, and it shows the newest snapshot there is.

use super::answer::Trouble;
use super::interrupt::Interrupt;
use crate::app::{App, Effect, Event};
use crate::code::Library;
use crate::desk::{Ask, Desk, Lane};
use crate::notice::Notice;
use crate::order::Order;
use crate::status;
use crate::views::code::{CodeAnswer, CodeWanted};
use crate::views::health::{CauseAnswer, CauseWanted};
use crate::views::page::PageAnswer;
use crate::views::time::{TimeAnswer, TimeWanted};
use crate::views::tree::{TreeAnswer, TreeWanted};
use engine::Command;
use engine::snapshot::{Snapshot, TargetState};
use profile::query::HeatBy;
use profile::{Cancel, FunctionId, NoName};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// How often we look for a new snapshot while waiting.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The first samples of a busy machine come within half a second.
const FIRST_SAMPLES: Duration = Duration::from_secs(2);
/// Beginning to count waits takes a part of a second, on a busy machine more.
const WAITS_BEGIN: Duration = Duration::from_secs(10);
/// The engine reports once a second what it is asked for.
const NEW_WINDOW: Duration = Duration::from_secs(3);

/// Where a session gets snapshots and answers from, and where it sends orders to.
pub struct Sources {
    pub feed: watch::Receiver<Arc<Snapshot>>,
    pub control: mpsc::UnboundedSender<Command>,
    pub library: Box<dyn Library + Send>,
    /// Whether the samples come from a file, which is read to its end before the first
    /// answer. A pipe may never end.
    pub ends_soon: bool,
}

/// The app, driven by commands instead of keys and a screen.
pub struct Session {
    pub app: App,
    sources: Sources,
    /// The snapshot that the app was given last.
    newest: Option<Arc<Snapshot>>,
    /// Whether an answer was given before: the first one waits for samples.
    has_begun: bool,
    /// How many orders about probes the engine was sent.
    probe_orders: u64,
    started: Instant,
    pub interrupt: Interrupt,
    /// Stops the answer that is being made.
    cancel: Cancel,
}

impl Session {
    /// Starts a session; `interrupt` is shared with the thread that receives ^C.
    pub fn new(app: App, sources: Sources, interrupt: Interrupt) -> Self {
        Session {
            app,
            sources,
            newest: None,
            has_begun: false,
            probe_orders: 0,
            started: Instant::now(),
            interrupt,
            cancel: Cancel::new(),
        }
    }

    /// Begins an answer, which ^C stops from now on. The first answer waits for the first
    /// samples, or for a whole file to be read.
    pub fn begin(&mut self) {
        self.cancel = self.interrupt.begin();
        self.catch_up();
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        if self.is_coming() && self.sources.ends_soon {
            self.wait(Duration::MAX, |app| !is_running(app));
        } else if is_first && self.is_coming() {
            self.wait(FIRST_SAMPLES, |app| app.shown.report.samples > 0);
        }
    }

    /// Ends the answer: the next ^C ends the program.
    pub fn end(&self) {
        self.interrupt.end();
    }

    /// Whether the user has stopped this answer with ^C.
    pub fn is_stopped(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Whether more samples may come.
    fn is_coming(&self) -> bool {
        is_running(&self.app)
    }

    /// How many orders about probes the engine was sent, which counts those that it has
    /// carried out.
    pub fn probe_orders(&self) -> u64 {
        self.probe_orders
    }

    /// Has the app do an order, and waits until it shows what that asks for. Returns what
    /// there is to say about it.
    pub fn order(&mut self, order: Order) -> Result<Option<Notice>, Trouble> {
        self.send(Event::Order(order));
        let reply = self.app.take_reply();
        let said = reply.map_err(|why| Trouble::Say(status::notice(&self.app, &why)))?;
        let asked_for_waits = self.app.awaits_waits();
        if asked_for_waits {
            self.wait(WAITS_BEGIN, |app| !app.awaits_waits());
        }
        self.wait(NEW_WINDOW, |app| !app.is_catching_up());
        if self.is_stopped() {
            return Err(Trouble::Stopped);
        }
        match self.app.waits_refused().filter(|_| asked_for_waits) {
            Some(why) => Err(Trouble::say(why)),
            None => Ok(said),
        }
    }

    /// Takes in snapshots until `holds` is true, the limit is over, or the user presses ^C.
    pub fn wait(&mut self, limit: Duration, holds: impl Fn(&App) -> bool) {
        let end = Instant::now().checked_add(limit);
        let is_over = || end.is_some_and(|end| Instant::now() >= end);
        while !holds(&self.app) && !is_over() && !self.is_stopped() {
            sleep(LOOK_EVERY);
            self.catch_up();
        }
    }

    /// Gives the app the newest snapshot, or a tick if it has that one.
    fn catch_up(&mut self) {
        let snapshot = Arc::clone(&self.sources.feed.borrow_and_update());
        let is_new = |known: &Arc<Snapshot>| !Arc::ptr_eq(known, &snapshot);
        if self.newest.as_ref().is_none_or(is_new) {
            self.newest = Some(Arc::clone(&snapshot));
            self.send(Event::Snapshot(snapshot));
        } else {
            self.send(Event::Tick);
        }
    }

    /// Hands an event to the app and performs the effects that it returns. Questions that
    /// views ask in order to draw themselves are not answered, because nothing is drawn.
    fn send(&mut self, event: Event) {
        let mut effects = self.app.update(event, self.started.elapsed());
        while let Some(effect) = effects.pop() {
            match effect {
                Effect::Ask(question) if question.lane() == Lane::Report => {
                    let library = &mut *self.sources.library;
                    match question.answer(library, &self.cancel) {
                        Some(answer) => {
                            let event = Event::Answer(answer);
                            effects.extend(self.app.update(event, self.started.elapsed()));
                        }
                        None => self.app.give_up_report(),
                    }
                }
                // The engine may have ended; then there is no other window.
                Effect::SetWindow(span) => {
                    let _ = self.sources.control.send(Command::SetWindow(span));
                }
                Effect::Fetch(wanted) => {
                    let _ = self.sources.control.send(Command::Fetch(wanted));
                }
                Effect::Probe(order) => {
                    let is_sent = self.sources.control.send(Command::Probe(order)).is_ok();
                    self.probe_orders += u64::from(is_sent);
                }
                Effect::CountWaits => {
                    let _ = self.sources.control.send(Command::CountWaits);
                }
                Effect::SetRate(hz) => {
                    let _ = self.sources.control.send(Command::SetRate(hz));
                }
                _ => {}
            }
        }
    }

    /// Asks for callers, callees, heaviest stack and trend of a function. An error if there
    /// are no samples yet, or after ^C.
    pub fn page(&self, function: FunctionId) -> Result<PageAnswer, Trouble> {
        let ask = self.ask::<_, PageAnswer>(function)?;
        PageAnswer::new(ask, &self.cancel).ok_or(Trouble::Stopped)
    }

    /// Asks for a call tree of what is counted. An error if there are no samples yet, or
    /// after ^C.
    pub fn tree(&self, wanted: TreeWanted) -> Result<TreeAnswer, Trouble> {
        let ask = self.ask::<_, TreeAnswer>(wanted)?;
        TreeAnswer::new(ask, &self.cancel).ok_or(Trouble::Stopped)
    }

    /// Asks for the samples of each second of all that is kept. An error if there are no
    /// samples yet, or after ^C.
    pub fn time(&self) -> Result<TimeAnswer, Trouble> {
        let wanted = TimeWanted {
            by: HeatBy::Parts,
            rows: 1,
            function: None,
            stretch: None,
        };
        let ask = self.ask::<_, TimeAnswer>(wanted)?;
        TimeAnswer::new(ask, &self.cancel).ok_or(Trouble::Stopped)
    }

    /// Asks for the source lines and instructions of a function. An error if there are no
    /// samples yet, or after ^C.
    pub fn code(&mut self, function: FunctionId) -> Result<CodeAnswer, Trouble> {
        let wanted = CodeWanted {
            function,
            is_recorded: self.app.shown.source.recording.is_some(),
            visit: self.app.shown.generation,
        };
        let ask = self.ask::<_, CodeAnswer>(wanted)?;
        let library = &mut *self.sources.library;
        let answer = CodeAnswer::new(ask, library, &self.cancel);
        answer.ok_or(Trouble::Stopped)
    }

    /// Asks for the modules with frames that have no names for this reason, and for what
    /// would give them some. An error if there are no samples yet, or after ^C.
    pub fn cause(&mut self, reason: NoName) -> Result<CauseAnswer, Trouble> {
        let wanted = CauseWanted::of(reason, &self.app.shown);
        let ask = self.ask::<_, CauseAnswer>(wanted)?;
        let library = &mut *self.sources.library;
        CauseAnswer::new(&ask, library, &self.cancel).ok_or(Trouble::Stopped)
    }

    /// Returns what tells long work that the user has stopped this answer.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    fn ask<W: Clone + Eq, A>(&self, what: W) -> Result<Ask<W>, Trouble> {
        let asked = Desk::<W, A>::default().ask(&self.app.shown, what);
        asked.ok_or_else(|| Trouble::say("no samples have come yet"))
    }
}

fn is_running(app: &App) -> bool {
    let target = &app.shown.run.target;
    matches!(target, TargetState::Starting | TargetState::Running)
}
