//! The *app* is everything the screen is made from: the snapshot it shows and
//! the state of its views. Events go in, effects come out; it draws nothing,
//! waits for nothing and asks no clock.

use crate::action::{Action, Keymap};
use crate::app::ahead::Ahead;
use crate::app::beside::PaneState;
use crate::app::calm::Calm;
use crate::app::history::History;
use crate::app::mode::{Detail, Mode};
use crate::app::mouse::Mouse;
use crate::app::parts::Parts;
use crate::app::reports::Asking;
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

/// Actions of one view.
mod act;
/// Keys that wait for rows.
mod ahead;
/// What views ask for, and when the answers are shown.
mod answers;
/// What is asked for is checked and done.
mod apply;
/// What stands beside the open view.
mod beside;
/// When rows may change their places.
mod calm;
/// The code of functions.
mod code;
/// What views are drawn in.
mod context;
/// The way to what is looked at.
mod crumbs;
/// What the app asks its surroundings for.
mod effect;
/// What the app is told.
mod event;
/// Keys that change the filter.
mod filter;
/// A screen that stands still.
mod freezing;
pub mod history;
/// Keys, one mode at a time.
mod keys;
/// What is counted, and how far back one can go.
mod knobs;
/// The function that views have in common.
mod links;
/// Which metric is counted.
mod metric;
pub mod mode;
/// Clicks and the wheel.
mod mouse;
/// Pages of functions.
mod page;
/// Everything by its name.
mod palette;
pub mod parts;
/// Probes of functions.
mod probes;
/// Which report is shown.
mod reports;
/// Rows that are selected or marked.
mod rows;
/// How samples are taken.
mod sampling;
/// What the command line asked for.
mod start;
pub mod state;
pub mod tabs;
/// Keys of the call tree and the flame graph.
mod tree;
/// What a step back undoes.
mod undo;
/// Waits in a run that began without them.
mod waits;
/// What goes to a file.
mod write;

#[cfg(test)]
mod tests;

pub use crumbs::Crumb;
pub use effect::{DrawCost, Effect};
pub use event::{Event, Head};
pub use freezing::Freezing;
pub use write::Written;

/// The state of the whole screen. [`App::update`] changes it, drawing only reads it.
#[derive(Debug)]
pub struct App {
    pub size: Size,
    pub now: Duration,
    pub keymap: Keymap,
    /// The snapshot that is drawn: what the knobs ask for, counted in `base` or in a
    /// snapshot before it, while the answer is not there yet.
    pub shown: Arc<Snapshot>,
    /// The newest snapshot of the engine, or the frozen one.
    base: Arc<Snapshot>,
    pub freezing: Freezing,
    pub fetching: FetchConsent,
    pub view: ViewId,
    history: History,
    /// The function that the user selected in the view before, so that it is selected in
    /// the next one as well.
    linked: Option<FunctionId>,
    pub views: Views,
    /// The last seconds, below the functions.
    pub seconds: Seconds,
    pub mode: Mode,
    pub detail: Detail,
    /// How far the detail line is scrolled to the right, in half lines.
    pub detail_shift: usize,
    pub state: Option<StateLine>,
    /// What the user asks for. The shown snapshot may still be of earlier knobs.
    pub knobs: Knobs,
    asking: Asking,
    pub mouse: Mouse,
    pub pane_state: PaneState,
    pub terminal: TerminalFacts,
    /// The pid of proftop itself, which is marked among the processes.
    pub own_pid: u32,
    pub(crate) cut_shown: bool,
    calm: Calm,
    ahead: Ahead,
    /// The result of the last order that did not come from a key, until `take_reply`
    /// fetches it.
    reply: Option<Result<Option<Notice>, Notice>>,
    /// The number of the last sentence about probes that was shown.
    probes_said: u64,
    /// When a find was asked for last where there is none, or a letter of it was typed.
    find_in_vain: Option<Duration>,
    files: Files,
}

/// What is known of the terminal, besides its size.
#[derive(Debug, Default)]
pub struct TerminalFacts {
    /// Whether the terminal is on another machine, as with ssh.
    pub is_remote: bool,
    /// How long the terminal took to read the last frame. None while it keeps up.
    pub behind: Option<Duration>,
    /// What drawing costs, if the user wants to see it; shown in the detail line.
    pub draw_cost: Option<DrawCost>,
}

impl App {
    /// Makes an app without samples. `window` is the window that the engine reports at
    /// first; `mouse` says whether clicks come to us.
    pub fn new(size: Size, window: Span, own_pid: u32, mouse: bool) -> Self {
        let mut app = App {
            size,
            now: Duration::ZERO,
            keymap: Keymap::default(),
            shown: Arc::default(),
            base: Arc::default(),
            freezing: Freezing::default(),
            fetching: FetchConsent::default(),
            view: ViewId::default(),
            history: History::default(),
            linked: None,
            views: Views::default(),
            seconds: Seconds::default(),
            mode: Mode::default(),
            detail: Detail::default(),
            detail_shift: 0,
            state: None,
            knobs: Knobs::new(Window::Last(window)),
            asking: Asking::new(window),
            mouse: Mouse::new(mouse),
            pane_state: PaneState::default(),
            terminal: TerminalFacts::default(),
            own_pid,
            cut_shown: false,
            calm: Calm::default(),
            ahead: Ahead::default(),
            reply: None,
            probes_said: 0,
            find_in_vain: None,
            files: Files::default(),
        };
        app.settle();
        app
    }

    /// Handles an event and returns what has to be done outside of the app. `now` is the
    /// time since any fixed moment; it never goes back.
    pub fn update(&mut self, event: Event, now: Duration) -> Vec<Effect> {
        self.now = now;
        let mut effects = match event {
            Event::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
            Event::Key(key) => {
                self.calm.key_at = Some(now);
                self.press_in_turn(key)
            }
            Event::Mouse(mouse) => mouse::point(self, mouse),
            Event::Head(head) => {
                self.calm.key_at = Some(now);
                self.pane_state.focus = head.in_pane.then_some(self.view);
                self.sort(Sort::By(head.column));
                Vec::new()
            }
            Event::Crumb(crumb) => {
                self.calm.key_at = Some(now);
                self.detail = Detail::Row;
                self.go_to_crumb(crumb);
                Vec::new()
            }
            Event::Ancestor(number) => {
                self.calm.key_at = Some(now);
                self.views.flame.zoom_to_ancestor(number);
                Vec::new()
            }
            Event::Resize(size) => {
                self.size = size;
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
                if let Detail::Notice(Notice::Writing { bytes, .. }) = &mut self.detail {
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
                self.detail = Detail::Notice(Notice::Fault(what));
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

    /// Returns where the regions of the screen are. None if the screen is too small for
    /// them.
    pub fn geometry(&self) -> Option<Geometry> {
        Geometry::new(self.size, self.state.is_some())
    }

    /// Returns what is searched for in the view that has the keys, and what was found. None
    /// if nothing is searched for.
    pub fn find(&self) -> Option<Found<'_>> {
        let pane = self.pane_here();
        self.views.get(pane).found(&self.context_of(pane))
    }

    /// Returns the pane that has the keys.
    pub fn pane_here(&self) -> PaneId {
        self.in_pane().unwrap_or(PaneId::of(self.view))
    }

    /// The panes that are on the screen: the open view's, and what stands beside it.
    fn panes(&self) -> impl Iterator<Item = PaneId> + use<> {
        [Some(PaneId::of(self.view)), self.pane()]
            .into_iter()
            .flatten()
    }

    fn receive(&mut self, snapshot: Arc<Snapshot>) {
        match &mut self.freezing.frozen {
            Some(frozen) => frozen.waiting = Some(snapshot),
            None => self.take(snapshot),
        }
    }

    fn take(&mut self, snapshot: Arc<Snapshot>) {
        self.base = snapshot;
        if self.is_the_engines() {
            self.show(Arc::clone(&self.base), false);
        }
        self.show_waits();
    }

    fn show(&mut self, snapshot: Arc<Snapshot>, is_awaited: bool) {
        // With another query the limit for showing this applies as if it had not been
        // shown.
        let is_same = self.shown.asked.turn == snapshot.asked.turn;
        let is_same_scope = self.shown.asked.query.scope == snapshot.asked.query.scope;
        self.shown = snapshot;
        if !is_same_scope {
            for pane in PaneId::ALL {
                self.views.get_mut(*pane).forget_last_seen();
            }
        }
        self.cut_shown = shows_cut(&self.shown, self.cut_shown && is_same);
        let sort = is_awaited || self.calm.may_sort(self.now);
        self.calm.pending = true;
        self.refresh(sort);
    }

    /// Shows the selected row again where a notice only confirmed a key some time ago.
    fn drop_old_notice(&mut self) {
        if let Detail::Notice(notice) = &self.detail
            && notice.is_passing()
            && self.calm.was_read(self.now)
        {
            self.detail = Detail::Row;
        }
    }

    /// Whether rows came that have not been sorted yet.
    pub(super) fn is_order_held(&self) -> bool {
        self.calm.pending && self.freezing.frozen.is_none()
    }

    fn sort_if_calm(&mut self) {
        self.take_waiting();
        if self.is_order_held() && self.calm.may_sort(self.now) {
            self.refresh(true);
        }
    }

    /// Updates the views on the screen to the shown snapshot. The others follow when they
    /// are opened. Rows change places only if `sort`.
    fn refresh(&mut self, sort: bool) {
        let mut is_of_report = false;
        for pane in self.panes() {
            is_of_report |= self.with(pane, |view, cx| view.update(cx, sort));
        }
        if is_of_report && sort && !self.shown.report.functions.is_empty() {
            self.calm.sorted(self.now);
        }
    }

    /// Updates what depends on everything else: the state line, and with it the heights of
    /// the views. The last step of each update.
    fn settle(&mut self) {
        self.state = StateLine::of(self);
        let parts = self.parts().unwrap_or_else(|| Parts::tiny(self.size));
        self.with(PaneId::of(self.view), |view, cx| {
            view.resize(cx, &parts.view)
        });
        self.settle_pane(&parts);
    }

    /// Closes dialogs and opens the functions. Called when drawing panicked, to get away
    /// from what cannot be drawn.
    pub fn show_functions(&mut self) {
        self.mode = Mode::Browse;
        self.detail = Detail::Row;
        self.open(ViewId::Functions);
    }

    /// Opens a view without a step in the history: a caller that wants one calls `remember`
    /// before. What is selected here is selected there as well.
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
            self.detail = Detail::Notice(Notice::FoundBelow(name));
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
        self.detail = Detail::Notice(notice);
    }

    /// Returns the number of samples that shares on the screen refer to. It may differ from
    /// the snapshot's, as long as a view shows the answer for an older one.
    pub fn counted(&self) -> u64 {
        let open = self.views.get(PaneId::of(self.view));
        open.counted().unwrap_or(self.shown.report.samples)
    }

    /// Returns the name in the selected row, which `y` copies. None if nothing is selected.
    pub(crate) fn selected_name(&self) -> Option<String> {
        let pane = self.pane_here();
        self.views.get(pane).selected_name(&self.context_of(pane))
    }

    /// Orders the rows in another way.
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
