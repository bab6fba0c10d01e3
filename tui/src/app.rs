//! The *app* is the state from which the screen is drawn: the snapshot that is shown and the state
//! of the views. It takes events and returns effects. It does not draw, never waits and reads no
//! clock.

use crate::action::Action;
use crate::app::beside::PaneState;
use crate::app::feed::Feed;
use crate::app::history::History;
use crate::app::input::Input;
use crate::app::lines::Lines;
use crate::app::mode::{Detail, Mode};
use crate::app::parts::Parts;
use crate::app::sampling::FetchConsent;
use crate::app::state::{StateLine, shows_cut};
use crate::app::write::Files;
use crate::desk::seconds::Seconds;
use crate::geometry::{Geometry, Size};
use crate::knobs::{Knobs, Window};
use crate::lists::find::{Find, Found};
use crate::lists::motion::Motion;
use crate::lists::table::Sort;
use crate::notice::Notice;
use crate::view_id::ViewId;
use crate::views::{PaneId, Views};
use crossterm::event::KeyEventKind;
use engine::snapshot::{Snapshot, Span};
use profile::FunctionId;
use std::sync::Arc;
use std::time::Duration;

/// Performs the actions of a single view.
mod act;
/// Keys that wait until a view has rows.
mod ahead;
/// The questions of views, and when answers are shown.
mod answers;
/// Checks and carries out orders.
mod apply;
/// The second view beside the open one.
mod beside;
/// When rows may change their places.
mod calm;
/// The code of functions.
mod code;
/// The context for drawing views and handling keys.
mod context;
/// The path from the whole machine to the shown part.
mod crumbs;
/// The effects that the app asks its caller to perform.
mod effect;
/// The events that the app handles.
mod event;
/// The snapshots that the app receives, and its questions about them.
mod feed;
/// The keys that change the filter.
mod filter;
/// The frozen screen.
mod freezing;
pub mod history;
/// The state of keys and mouse.
mod input;
/// Handles keys by the present mode.
mod keys;
/// The knobs, which say what is counted, and their history.
mod knobs;
/// The contents of the detail line and the state line.
mod lines;
/// The function that stays selected when the view changes.
mod links;
/// The way from a function to the machines that it runs on.
mod machines;
/// The choice of the metric.
mod metric;
pub mod mode;
/// Handles clicks and the wheel.
mod mouse;
/// Pages of functions.
mod page;
/// The palette of all actions and orders.
mod palette;
pub mod parts;
/// Probes of functions.
mod probes;
/// The report that is shown.
mod reports;
/// Selected and marked rows.
mod rows;
/// How samples are taken.
mod sampling;
/// The start by the options of the command line.
mod start;
pub mod state;
pub mod tabs;
/// The keys of the call tree and the flame graph.
mod tree;
/// The words for what a step back undoes.
mod undo;
/// Starts to count waits in a run that began without them.
mod waits;
/// Writes files.
mod write;

#[cfg(test)]
mod tests;

pub use crumbs::Crumb;
pub use effect::{DrawCost, Effect};
pub use event::{Event, Head};
pub use write::Written;

/// The state of the whole screen. [`App::update`] changes it; drawing only reads it.
#[derive(Debug)]
pub struct App {
    pub now: Duration,
    pub terminal: TerminalFacts,
    pub input: Input,
    /// The snapshot that is drawn. Its report is for the present knobs and made from the base of
    /// `feed`, or, until the answer is there, for earlier knobs or from an earlier snapshot.
    pub shown: Arc<Snapshot>,
    pub feed: Feed,
    /// The user's settings. The shown snapshot may still be for earlier ones.
    pub knobs: Knobs,
    pub view: ViewId,
    pub views: Views,
    pub pane_state: PaneState,
    /// The last seconds, below the functions.
    pub seconds: Seconds,
    history: History,
    /// The function that the user has selected in the previous view, which the next view selects,
    /// too.
    linked: Option<FunctionId>,
    pub mode: Mode,
    pub lines: Lines,
    pub fetching: FetchConsent,
    files: Files,
    /// The pid of proftop itself, which is marked among the processes.
    pub own_pid: u32,
}

/// Facts about the terminal.
#[derive(Debug)]
pub struct TerminalFacts {
    pub size: Size,
    /// Whether the terminal is on another machine, as with ssh.
    pub is_remote: bool,
    /// How long the terminal took to read the last frame. None if it keeps up.
    pub behind: Option<Duration>,
    /// The cost of drawing, if the user wants to see it in the detail line.
    pub draw_cost: Option<DrawCost>,
}

impl TerminalFacts {
    fn new(size: Size) -> Self {
        TerminalFacts {
            size,
            is_remote: false,
            behind: None,
            draw_cost: None,
        }
    }
}

impl App {
    /// Creates an app without samples. `window` is the first window of the engine; `mouse` says
    /// whether the terminal reports clicks.
    pub fn new(size: Size, window: Span, own_pid: u32, mouse: bool) -> Self {
        let mut app = App {
            now: Duration::ZERO,
            terminal: TerminalFacts::new(size),
            input: Input::new(mouse),
            shown: Arc::default(),
            feed: Feed::new(window),
            knobs: Knobs::new(Window::Last(window)),
            view: ViewId::default(),
            views: Views::default(),
            pane_state: PaneState::default(),
            seconds: Seconds::default(),
            history: History::default(),
            linked: None,
            mode: Mode::default(),
            lines: Lines::default(),
            fetching: FetchConsent::default(),
            files: Files::default(),
            own_pid,
        };
        app.settle();
        app
    }

    /// Handles an event and returns the effects to perform outside of the app. `now` is the time
    /// since any fixed moment; it never goes back.
    pub fn update(&mut self, event: Event, now: Duration) -> Vec<Effect> {
        self.now = now;
        let mut effects = match event {
            Event::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
            Event::Key(key) => {
                self.input.calm.key_at = Some(now);
                self.press_in_turn(key)
            }
            Event::Mouse(mouse) => mouse::point(self, mouse),
            Event::Head(head) => {
                self.input.calm.key_at = Some(now);
                self.pane_state.focus = head.in_pane.then_some(self.view);
                self.sort(Sort::By(head.column));
                Vec::new()
            }
            Event::Crumb(crumb) => {
                self.input.calm.key_at = Some(now);
                self.lines.detail = Detail::Row;
                self.go_to_crumb(crumb);
                Vec::new()
            }
            Event::Ancestor(number) => {
                self.input.calm.key_at = Some(now);
                self.views.flame.zoom_to_ancestor(number);
                Vec::new()
            }
            Event::Resize(size) => {
                self.terminal.size = size;
                Vec::new()
            }
            Event::Snapshot(snapshot) => {
                self.receive(snapshot);
                self.say_of_probes();
                self.ask_to_fetch();
                Vec::new()
            }
            Event::Written(written) => {
                self.handle_written(written);
                Vec::new()
            }
            Event::Repeated(written) => self.handle_repeated(written).into_iter().collect(),
            Event::Measured(room) => {
                if let Mode::Write(dialog) = &mut self.mode {
                    dialog.set_room(room);
                }
                Vec::new()
            }
            Event::Weighed(shape, bytes) => {
                if let Mode::Write(dialog) = &mut self.mode {
                    dialog.set_size(shape, bytes);
                }
                Vec::new()
            }
            Event::Progress(so_far) => {
                if let Detail::Notice(Notice::Writing { bytes, .. }) = &mut self.lines.detail {
                    *bytes = so_far;
                }
                Vec::new()
            }
            Event::Edited(result) => {
                self.handle_edited(result);
                Vec::new()
            }
            Event::Answer(answer) => {
                self.receive_answer(answer);
                Vec::new()
            }
            Event::Behind(took) => {
                self.terminal.behind = took;
                Vec::new()
            }
            Event::Order(order) => self.apply_order(order),
            Event::Fault(what) => {
                self.lines.detail = Detail::Notice(Notice::Fault(what));
                Vec::new()
            }
            Event::Tick => {
                self.freeze_if_due();
                self.drop_old_notice();
                self.sort_if_calm();
                self.write_if_due()
            }
        };
        effects.extend(self.press_those_ahead());
        effects.extend(self.ask_for_report());
        effects.extend(self.ask_about_file());
        self.settle();
        effects.extend(self.ask());
        effects
    }

    /// Returns the places of the regions on the screen. None if the screen is too small for them.
    pub fn geometry(&self) -> Option<Geometry> {
        Geometry::new(self.terminal.size, self.lines.state.is_some())
    }

    /// Returns the pattern and the result of the search in the focused view. None without a search.
    pub fn find(&self) -> Option<Found<'_>> {
        let pane = self.pane_here();
        self.views.get(pane).found(&self.context_of(pane))
    }

    /// Returns the focused pane.
    pub fn pane_here(&self) -> PaneId {
        self.in_pane().unwrap_or(PaneId::of(self.view))
    }

    /// Returns the panes on the screen: that of the open view, and the one beside it.
    fn panes(&self) -> impl Iterator<Item = PaneId> + use<> {
        [Some(PaneId::of(self.view)), self.pane()]
            .into_iter()
            .flatten()
    }

    fn receive(&mut self, snapshot: Arc<Snapshot>) {
        match &mut self.feed.freezing.frozen {
            Some(frozen) => frozen.waiting = Some(snapshot),
            None => self.take(snapshot),
        }
    }

    fn take(&mut self, snapshot: Arc<Snapshot>) {
        self.feed.base = snapshot;
        if self.is_the_engines() {
            self.show(Arc::clone(&self.feed.base), false);
        }
        self.show_waits();
    }

    fn show(&mut self, snapshot: Arc<Snapshot>, is_awaited: bool) {
        // The limit for showing that stacks are cut is lower while it is shown, but only for
        // snapshots of the same query.
        let is_same = self.shown.asked.turn == snapshot.asked.turn;
        let is_same_scope = self.shown.asked.query.scope == snapshot.asked.query.scope;
        self.shown = snapshot;
        if !is_same_scope {
            for pane in PaneId::ALL {
                self.views.get_mut(*pane).forget_last_seen();
            }
        }
        self.lines.cut_shown = shows_cut(&self.shown, self.lines.cut_shown && is_same);
        let sort = is_awaited || self.input.calm.may_sort(self.now);
        self.input.calm.pending = true;
        self.refresh(sort);
    }

    /// Whether something changes soon with time alone: a notice is taken away or rows are sorted some
    /// time after the last key, the screen is going to be frozen, or a file is written at some time.
    pub fn waits_for_time(&self) -> bool {
        !matches!(self.mode, Mode::Browse)
            || !self.input.calm.was_read(self.now)
            || matches!(&self.lines.detail, Detail::Notice(notice) if notice.is_passing())
            || self.is_order_held()
            || self.feed.freezing.is_coming()
            || self.files.are_repeated()
            || !self.input.ahead.is_empty()
    }

    /// Replaces a notice that only confirmed a key some time ago by the selected row.
    fn drop_old_notice(&mut self) {
        if let Detail::Notice(notice) = &self.lines.detail
            && notice.is_passing()
            && self.input.calm.was_read(self.now)
        {
            self.lines.detail = Detail::Row;
        }
    }

    /// Whether there are new rows that are not sorted yet.
    pub(super) fn is_order_held(&self) -> bool {
        self.input.calm.pending && self.feed.freezing.frozen.is_none()
    }

    fn sort_if_calm(&mut self) {
        self.take_waiting();
        if self.is_order_held() && self.input.calm.may_sort(self.now) {
            self.refresh(true);
        }
    }

    /// Updates the views on the screen to the shown snapshot. The others are updated when they are
    /// opened. Rows change places only if `sort`.
    fn refresh(&mut self, sort: bool) {
        let mut is_of_report = false;
        for pane in self.panes() {
            is_of_report |= self.with(pane, |view, cx| view.update(cx, sort));
        }
        if is_of_report && sort && !self.shown.report.functions.is_empty() {
            self.input.calm.sorted(self.now);
        }
    }

    /// Updates what depends on everything else: the state line, and with it the heights of the
    /// views. This is the last step of each update.
    fn settle(&mut self) {
        self.lines.state = StateLine::of(self);
        let parts = self
            .parts()
            .unwrap_or_else(|| Parts::tiny(self.terminal.size));
        self.with(PaneId::of(self.view), |view, cx| {
            view.resize(cx, &parts.view)
        });
        self.settle_pane(&parts);
    }

    /// Closes dialogs and opens the functions. Called after a panic while drawing, to get away from
    /// what cannot be drawn.
    pub fn show_functions(&mut self) {
        self.mode = Mode::Browse;
        self.lines.detail = Detail::Row;
        self.open(ViewId::Functions);
    }

    /// Opens a view without a step in the history; a caller that needs one calls `remember` before.
    /// The selected function is selected in the opened view as well.
    pub(crate) fn open(&mut self, view: ViewId) {
        if view == self.view {
            return self.refresh(true);
        }
        let here = self.function_here();
        let code = self.function_for_code();
        self.leave_view();
        self.release();
        self.view = view;
        self.refresh(true);
        self.enter_view();
        if view == ViewId::Code && code.is_some() {
            self.open_code_of(code);
        } else if view == ViewId::Code && self.linked.is_none() {
            self.open_code_of(here);
        }
    }

    fn go(&mut self, motion: Motion) {
        self.with_focused(|view, cx| view.go(cx, motion));
    }

    fn select_at(&mut self, column: u16, line: usize) {
        self.with_focused(|view, cx| view.select_at(cx, column, line));
    }

    fn set_find(&mut self, find: Option<Find>) {
        self.with_focused(|view, cx| view.set_find(cx, find));
    }

    fn select_found(&mut self, down: bool, including: bool) {
        let position = self.with_focused(|view, cx| view.select_found(cx, down, including));
        if position.is_none()
            && let Some(name) = self.look_below()
        {
            self.lines.detail = Detail::Notice(Notice::FoundBelow(name));
            return;
        }
        let notice = match self.find() {
            None => Notice::NoFind,
            Some(found) => Notice::Found {
                pattern: found.find.text.clone(),
                rows: found.rows,
                samples: found.samples,
                position,
            },
        };
        self.lines.detail = Detail::Notice(notice);
    }

    /// Returns the number of samples that shares on the screen refer to. While a view shows the
    /// answer for an older snapshot, it differs from that of the shown snapshot.
    pub fn counted(&self) -> u64 {
        let open = self.views.get(PaneId::of(self.view));
        open.counted().unwrap_or(self.shown.report.samples)
    }

    /// Returns the name in the selected row, which `y` copies. None if no row is selected.
    pub(crate) fn selected_name(&self) -> Option<String> {
        let pane = self.pane_here();
        self.views.get(pane).selected_name(&self.context_of(pane))
    }

    /// Changes the order of rows in the focused view.
    fn sort(&mut self, order: Sort) {
        self.with_focused(|view, cx| view.sort(cx, order));
    }

    fn invert(&mut self) {
        let pane = self.pane_here();
        if pane == PaneId::of(self.view) && self.views.get(pane).is_a_step(Action::Invert) {
            self.remember();
        }
        self.with(pane.leader(), |view, cx| view.sort(cx, Sort::Invert));
    }
}
