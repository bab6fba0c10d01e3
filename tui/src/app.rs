//! The *app* is everything the screen is made from: the snapshot it shows and
//! the state of its views. Events go in, effects come out; it draws nothing,
//! waits for nothing and asks no clock.

use crate::action::{Action, Keymap};
use crate::app::history::History;
use crate::app::mode::{Detail, Mode};
use crate::app::parts::Parts;
use crate::app::state::{State, shows_cut};
use crate::context::Context;
use crate::desk::{Answer, Question};
use crate::dialogs::write::{Content, Options, Repeat, Room, Shape, WriteJob};
use crate::geometry::{Geometry, Size};
use crate::knobs::{Knobs, Window};
use crate::lists::find::{Find, Found};
use crate::lists::motion::Motion;
use crate::lists::table::Sort;
use crate::notice::Notice;
use crate::order::Order;
use crate::view_id::ViewId;
use crate::views::seconds::Seconds;
use crate::views::{PaneId, View, Views};
use crossterm::event::{KeyEvent, KeyEventKind, MouseEvent};
use engine::probes::ProbeOrder;
use engine::snapshot::{Snapshot, Span};
use profile::FunctionId;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Actions of one view.
mod act;
/// What views ask for, and when the answers are shown.
mod answers;
/// What is asked for is checked and done.
mod apply;
/// What stands beside the open view.
mod beside;
/// The code of functions.
mod code;
/// The way to what is looked at.
mod crumbs;
pub mod history;
/// Keys, one mode at a time.
mod keys;
/// What is counted, and how far back one can go.
mod knobs;
/// The function that views have in common.
mod links;
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
/// How samples are taken.
mod sampling;
pub mod state;
pub mod tabs;
/// Keys of the call tree and the flame graph.
mod tree;
/// What a step back undoes.
mod undo;
/// What goes to a file.
mod write;

#[cfg(test)]
mod tests;

pub use crumbs::Crumb;
pub use write::Written;

/// Everything that can happen.
#[derive(Debug, Clone)]
pub enum Event {
    Key(KeyEvent),
    Mouse(MouseEvent),
    /// A click on the head of a column.
    Head(Head),
    /// A click on a step of the way to what is looked at.
    Crumb(Crumb),
    /// A click on a frame above the one that is zoomed into, counted from the root.
    Ancestor(usize),
    Resize(Size),
    Snapshot(Arc<Snapshot>),
    /// Answers the question of [`Effect::Ask`].
    Answer(Answer),
    /// What became of a [`Effect::Write`].
    Written(Written),
    /// The same, of a file that others are to follow.
    Repeated(Written),
    /// Answers [`Effect::Measure`]: the room in a folder.
    Measured(Room),
    /// Answers [`Effect::Weigh`]: how many bytes the file will have.
    Weighed(Shape, u64),
    /// This many bytes of the file have been written.
    Progress(u64),
    /// An editor was closed, or why none was opened.
    Edited(Result<(), String>),
    /// What was asked for without a key.
    Order(Order),
    /// A mistake of our own was caught: a sentence without its end.
    Fault(String),
    /// Time went by.
    Tick,
    /// The terminal took so long for a frame; nothing: it keeps up again.
    Behind(Option<Duration>),
}

/// Which column to sort by, of those that can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub column: usize,
    /// The place is in what stands beside the view.
    pub in_pane: bool,
}

/// What the app asks its surroundings for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    Quit,
    /// Give the terminal back until the shell continues us.
    Suspend,
    /// Draw every cell again.
    Redraw,
    SetWindow(Span),
    /// Take this many samples per second of a busy CPU from now on.
    SetRate(u32),
    /// Fetch debug files from now on, or do not.
    Fetch(bool),
    /// Place a probe, or do something with those there are.
    Probe(ProbeOrder),
    SetTheme(crate::choices::Theme),
    /// Is answered with [`Event::Answer`]; a question that came before it need not be.
    Ask(Question),
    /// The same for what stands beside the view: neither gives up the other's.
    AskBeside(Question),
    /// Into the terminal's clipboard.
    Copy(String),
    CaptureMouse(bool),
    /// Is answered with [`Event::Written`] or [`Event::Repeated`].
    Write(WriteJob),
    /// How much room there is in a folder; to be answered with [`Event::Measured`].
    Measure(PathBuf),
    /// How large the file would be; to be answered with [`Event::Weighed`], unless
    /// another one is asked about first.
    Weigh(Content),
    /// A file in the user's editor, at a line; to be answered with
    /// [`Event::Edited`].
    Edit(PathBuf, u32),
}

/// What the frame before cost, for who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DrawCost {
    /// Frames drawn since the screen was opened.
    pub frames: u64,
    pub drawn_in: Duration,
    pub bytes: usize,
    /// The terminal took so long for them.
    pub written_in: Duration,
}

/// The view stands still; sampling goes on.
#[derive(Debug)]
pub struct Frozen {
    pub since: Duration,
    pub waiting: Option<Arc<Snapshot>>,
}

/// It is to stand still so long after the first samples.
#[derive(Debug)]
struct FreezeLater {
    after: Duration,
    /// When these came.
    since: Option<Duration>,
}

#[derive(Debug)]
pub struct App {
    pub size: Size,
    pub now: Duration,
    pub keymap: Keymap,
    /// What is drawn: what the knobs ask for, of `base` or of one before.
    pub shown: Arc<Snapshot>,
    /// The engine's newest, or the one that is frozen.
    base: Arc<Snapshot>,
    pub frozen: Option<Frozen>,
    /// Whether debug files may be fetched, if the user has answered that in this run.
    pub fetches: Option<bool>,
    has_asked_to_fetch: bool,
    freeze_later: Option<FreezeLater>,
    pub view: ViewId,
    history: History,
    /// The function that was selected on purpose in the view before.
    linked: Option<FunctionId>,
    pub views: Views,
    /// The last seconds, below the functions.
    pub seconds: Seconds,
    pub mode: Mode,
    pub detail: Detail,
    /// How far the detail line is scrolled to the right, in half lines.
    pub detail_shift: usize,
    pub state: Option<State>,
    /// What is asked for; the shown snapshot may not have it yet.
    pub knobs: Knobs,
    /// How often they were turned so that others samples count.
    turns: u64,
    /// How many baselines there were.
    baselines: u64,
    own_reports: knobs::OwnReports,
    /// What the engine was asked for last.
    engine_window: Span,
    pub mouse: bool,
    /// Whoever looks at it does so from another machine.
    pub is_remote: bool,
    /// Where and when the left button was pressed last.
    clicked: Option<(u16, u16, Duration)>,
    /// What is selected is wanted in full beside it.
    pub(crate) has_pane: bool,
    /// The view whose pane has the keys.
    pane_focus: Option<ViewId>,
    /// Marked as ours among the processes.
    pub own_pid: u32,
    /// How long the terminal took for the last frame, if that was long.
    pub behind: Option<Duration>,
    /// Shown in the place of what is selected, if that is wanted.
    pub draw_cost: Option<DrawCost>,
    pub(crate) cut_shown: bool,
    calm: Calm,
    /// What came of the last order that no key made.
    reply: Option<Result<Option<Notice>, Notice>>,
    /// The number of the sentence about probes that was said last.
    probes_said: u64,
    /// Files that follow one another.
    repeat: Option<Repeat>,
    /// What was chosen for the last file.
    last_options: Options,
}

/// When the rows may change places: not more often than once a second, and
/// never under a hand that is just pressing keys.
#[derive(Debug, Default)]
struct Calm {
    key_at: Option<Duration>,
    sorted_at: Option<Duration>,
    /// Rows came that have not been sorted yet.
    pending: bool,
}

const SORT_EVERY: Duration = Duration::from_secs(1);
const SORT_AFTER_KEY: Duration = Duration::from_millis(700);

impl Calm {
    fn may_sort(&self, now: Duration) -> bool {
        let passed = |since: Option<Duration>, wait: Duration| {
            since.is_none_or(|since| now.saturating_sub(since) >= wait)
        };
        // Until the first key nobody holds on to a row, and the first seconds bring the
        // largest changes.
        self.key_at.is_none()
            || passed(self.sorted_at, SORT_EVERY) && passed(self.key_at, SORT_AFTER_KEY)
    }

    fn sorted(&mut self, now: Duration) {
        self.sorted_at = Some(now);
        self.pending = false;
    }
}

impl App {
    pub fn new(size: Size, window: Span, own_pid: u32, mouse: bool) -> Self {
        let mut app = App {
            size,
            now: Duration::ZERO,
            keymap: Keymap::default(),
            shown: Arc::default(),
            base: Arc::default(),
            frozen: None,
            fetches: None,
            has_asked_to_fetch: false,
            freeze_later: None,
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
            turns: 0,
            baselines: 0,
            own_reports: knobs::OwnReports::default(),
            engine_window: window,
            mouse,
            is_remote: false,
            clicked: None,
            has_pane: true,
            pane_focus: None,
            own_pid,
            behind: None,
            draw_cost: None,
            cut_shown: false,
            calm: Calm::default(),
            reply: None,
            probes_said: 0,
            repeat: None,
            last_options: Options::default(),
        };
        app.settle();
        app
    }

    /// The one way in. `now` counts from any fixed moment and never falls.
    pub fn update(&mut self, event: Event, now: Duration) -> Vec<Effect> {
        self.now = now;
        let mut effects = match event {
            Event::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
            Event::Key(key) => {
                self.calm.key_at = Some(now);
                keys::press(self, key)
            }
            Event::Mouse(mouse) => mouse::point(self, mouse),
            Event::Head(head) => {
                self.calm.key_at = Some(now);
                self.pane_focus = head.in_pane.then_some(self.view);
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
                self.hear_written(written);
                Vec::new()
            }
            Event::Repeated(written) => self.hear_repeated(written).into_iter().collect(),
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
                self.hear_edited(result);
                Vec::new()
            }
            Event::Answer(answer) => {
                self.receive_answer(answer);
                Vec::new()
            }
            Event::Behind(took) => {
                self.behind = took;
                Vec::new()
            }
            Event::Order(order) => self.apply_order(order),
            Event::Fault(what) => {
                self.detail = Detail::Notice(Notice::Fault(what));
                Vec::new()
            }
            Event::Tick => {
                self.freeze_if_due();
                self.sort_if_calm();
                self.write_if_due()
            }
        };
        effects.extend(self.ask_for_report());
        effects.extend(self.ask_about_file());
        self.settle();
        effects.extend(self.ask());
        effects
    }

    /// Where things are on the screen; `None` where it is too small.
    pub fn geometry(&self) -> Option<Geometry> {
        Geometry::new(self.size, self.state.is_some())
    }

    /// What is looked for in the view that the keys go to, and what was found.
    pub fn find(&self) -> Option<Found<'_>> {
        let pane = self.pane_here();
        self.views.get(pane).found(&self.context_of(pane))
    }

    /// The pane that the keys go to.
    pub fn pane_here(&self) -> PaneId {
        self.in_pane().unwrap_or(PaneId::of(self.view))
    }

    /// Does something with the view of a pane.
    fn with<R>(&mut self, pane: PaneId, act: impl FnOnce(&mut dyn View, &Context<'_>) -> R) -> R {
        let (focus, has_keys) = (self.focus(), self.pane_here() == pane);
        let cx = Context {
            shown: &self.shown,
            knobs: &self.knobs,
            keymap: &self.keymap,
            open: self.view,
            focus,
            is_beside: pane != PaneId::of(self.view),
            has_keys,
            own_pid: self.own_pid,
        };
        act(self.views.get_mut(pane), &cx)
    }

    /// Does something with the view that the keys go to.
    fn with_focused<R>(&mut self, act: impl FnOnce(&mut dyn View, &Context<'_>) -> R) -> R {
        self.with(self.pane_here(), act)
    }

    /// The panes that are on the screen: the open view's, and what stands beside it.
    fn panes(&self) -> impl Iterator<Item = PaneId> + use<> {
        [Some(PaneId::of(self.view)), self.pane()]
            .into_iter()
            .flatten()
    }

    fn receive(&mut self, snapshot: Arc<Snapshot>) {
        match &mut self.frozen {
            Some(frozen) => frozen.waiting = Some(snapshot),
            None => self.take(snapshot),
        }
    }

    fn take(&mut self, snapshot: Arc<Snapshot>) {
        self.base = snapshot;
        if self.is_the_engines() {
            self.show(Arc::clone(&self.base), false);
        }
    }

    fn show(&mut self, snapshot: Arc<Snapshot>, is_awaited: bool) {
        // Of another query it is news again.
        let is_same = self.shown.asked.turn == snapshot.asked.turn;
        self.shown = snapshot;
        self.cut_shown = shows_cut(&self.shown, self.cut_shown && is_same);
        let sort = is_awaited || self.calm.may_sort(self.now);
        self.calm.pending = true;
        self.refresh(sort);
    }

    fn sort_if_calm(&mut self) {
        self.take_waiting();
        let waits = self.calm.pending && self.frozen.is_none();
        if waits && self.calm.may_sort(self.now) {
            self.refresh(true);
        }
    }

    /// Brings the current view up to the shown snapshot. The others follow
    /// when they are opened.
    fn refresh(&mut self, sort: bool) {
        let mut is_of_report = false;
        for pane in self.panes() {
            is_of_report |= self.with(pane, |view, cx| view.update(cx, sort));
        }
        if is_of_report && sort && !self.shown.report.functions.is_empty() {
            self.calm.sorted(self.now);
        }
    }

    /// What depends on everything else: the state line, and with it the height
    /// of the body.
    fn settle(&mut self) {
        self.state = State::of(self);
        let parts = self.parts().unwrap_or_else(|| Parts::tiny(self.size));
        self.with(PaneId::of(self.view), |view, cx| {
            view.resize(cx, &parts.view)
        });
        self.settle_pane(&parts);
    }

    /// Closes what is open and goes to the functions: away from what cannot be drawn.
    pub fn show_functions(&mut self) {
        self.mode = Mode::Browse;
        self.detail = Detail::Row;
        self.open(ViewId::Functions);
    }

    pub(crate) fn open(&mut self, view: ViewId) {
        if view == self.view {
            return self.refresh(true);
        }
        let here = self.function_here();
        let pane = self.pane_here();
        let code = self
            .views
            .get(pane)
            .function_for_code(&self.context_of(pane));
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

    pub fn freeze_after(&mut self, after: Option<Duration>) {
        self.freeze_later = after.map(|after| FreezeLater { after, since: None });
    }

    /// Once; whoever goes on then is not stopped again.
    fn freeze_if_due(&mut self) {
        let (now, samples) = (self.now, self.base.report.samples);
        let Some(later) = &mut self.freeze_later else {
            return;
        };
        if later.since.is_none() && samples > 0 {
            later.since = Some(now);
        }
        let is_due = later.since.is_some_and(|since| now >= since + later.after);
        if is_due {
            self.freeze_later = None;
            if self.frozen.is_none() {
                self.freeze_or_go_on();
            }
        }
    }

    pub(crate) fn freeze_or_go_on(&mut self) {
        match self.frozen.take() {
            None => {
                self.frozen = Some(Frozen {
                    since: self.now,
                    waiting: None,
                });
            }
            Some(frozen) => {
                if let Some(snapshot) = frozen.waiting {
                    self.take(snapshot);
                }
            }
        }
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

    /// The samples that the numbers on the screen are shares of: an answer to a question
    /// may be of the snapshot before.
    pub fn counted(&self) -> u64 {
        let open = self.views.get(PaneId::of(self.view));
        open.counted().unwrap_or(self.shown.report.samples)
    }

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
