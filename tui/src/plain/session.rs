//! A *session* is the app without a screen: all its questions are answered before the next line is
//! read, and it uses the newest snapshot.

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

/// Time between two checks for a new snapshot while waiting.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Limit for the first samples, which a busy machine has within half a second.
const FIRST_SAMPLES: Duration = Duration::from_secs(2);
/// Limit for starting to count waits, which takes a part of a second, on a busy machine more.
const WAITS_BEGIN: Duration = Duration::from_secs(10);
/// Limit for the report of a new window. The engine reports once a second.
const NEW_WINDOW: Duration = Duration::from_secs(3);

/// The sources of snapshots and answers, and the channel for orders to the engine.
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
    /// The last snapshot that the app got.
    newest: Option<Arc<Snapshot>>,
    /// Whether an answer was given before. The first one waits for samples.
    has_begun: bool,
    /// Number of orders about probes that were sent to the engine.
    probe_orders: u64,
    started: Instant,
    pub interrupt: Interrupt,
    /// Cancels the running answer.
    cancel: Cancel,
}

impl Session {
    /// Creates a session. `interrupt` is shared with the thread that receives ^C.
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

    /// Begins an answer, which ^C cancels from now on.
    pub fn begin(&mut self) {
        self.cancel = self.interrupt.begin();
        self.catch_up();
    }

    /// Waits for what an answer is about. Of a file that is the whole of it; of anything else its
    /// first samples, before the first answer only.
    pub fn await_samples(&mut self) {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        if self.sources.ends_soon {
            self.await_end_of_file();
        } else if is_first && self.is_coming() {
            self.wait(FIRST_SAMPLES, |app| app.shown.report.samples > 0);
        }
    }

    /// Waits until a file is read as a whole. Of what has no end of its own, returns at once.
    pub fn await_end_of_file(&mut self) {
        if self.sources.ends_soon && self.is_coming() {
            self.wait(Duration::MAX, |app| !is_running(app));
        }
    }

    /// Ends the answer: the next ^C ends the program.
    pub fn end(&self) {
        self.interrupt.end();
    }

    /// Whether the user has cancelled this answer with ^C.
    pub fn is_stopped(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Whether more samples may come.
    fn is_coming(&self) -> bool {
        is_running(&self.app)
    }

    /// Returns the number of orders about probes that were sent to the engine. The engine reports
    /// how many it has carried out.
    pub fn probe_orders(&self) -> u64 {
        self.probe_orders
    }

    /// Lets the app carry out an order, and waits until it shows the result. Returns the app's
    /// notice, if it has one.
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

    /// Takes snapshots until `holds` is true, the limit is over, or the user presses ^C.
    pub fn wait(&mut self, limit: Duration, holds: impl Fn(&App) -> bool) {
        let end = Instant::now().checked_add(limit);
        let is_over = || end.is_some_and(|end| Instant::now() >= end);
        while !holds(&self.app) && !is_over() && !self.is_stopped() {
            sleep(LOOK_EVERY);
            self.catch_up();
        }
    }

    /// Sends the newest snapshot to the app, or a tick if the app has it already.
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

    /// Sends an event to the app and performs the effects that it returns. Questions of views are
    /// not answered, because nothing is drawn.
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
                // Sending fails if the engine has ended; then the window stays.
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

    /// Returns the callers, callees, heaviest stack and trend of a function. It is an error if
    /// there are no samples yet, or after ^C.
    pub fn page(&self, function: FunctionId) -> Result<PageAnswer, Trouble> {
        let ask = self.ask::<_, PageAnswer>(function)?;
        PageAnswer::new(ask, &self.cancel).ok_or(Trouble::Stopped)
    }

    /// Returns a call tree of the counted samples. It is an error if there are no samples yet, or
    /// after ^C.
    pub fn tree(&self, wanted: TreeWanted) -> Result<TreeAnswer, Trouble> {
        let ask = self.ask::<_, TreeAnswer>(wanted)?;
        TreeAnswer::new(ask, &self.cancel).ok_or(Trouble::Stopped)
    }

    /// Returns the number of samples in each second of all that is kept. It is an error if there
    /// are no samples yet, or after ^C.
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

    /// Returns the source lines and instructions of a function. It is an error if there are no
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

    /// Returns the modules with frames that have no names for this reason, and advice on how to get
    /// names. It is an error if there are no samples yet, or after ^C.
    pub fn cause(&mut self, reason: NoName) -> Result<CauseAnswer, Trouble> {
        let wanted = CauseWanted::of(reason, &self.app.shown);
        let ask = self.ask::<_, CauseAnswer>(wanted)?;
        let library = &mut *self.sources.library;
        CauseAnswer::new(&ask, library, &self.cancel).ok_or(Trouble::Stopped)
    }

    /// Returns the flag that says whether the user has cancelled this answer.
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
