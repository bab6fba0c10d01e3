//! The *app* is everything the screen is made from: the snapshot it shows and
//! the state of its views. Events go in, effects come out; it draws nothing,
//! waits for nothing and asks no clock.

use crate::action::{Action, Keymap};
use crate::app::history::History;
use crate::app::mode::{Detail, Mode, Notice};
use crate::app::parts::{Beside, Parts};
use crate::app::state::{State, shows_cut};
use crate::cli;
use crate::dialogs::write::{Content, Options, Repeat, Room, Shape, WriteJob};
use crate::geometry::{Geometry, Size};
use crate::knobs::{Knobs, Window};
use crate::lists::find::Find;
use crate::lists::motion::Motion;
use crate::lists::table::Table;
use crate::view_id::ViewId;
use crate::views::Views;
use crate::views::question::{Answer, Question};
use crossterm::event::{KeyEvent, KeyEventKind, MouseEvent};
use engine::snapshot::{Snapshot, Span};
use profile::FunctionId;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What views ask for, and when the answers are shown.
mod answers;
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
/// What is said in the palette with a word behind it.
mod order;
/// Pages of functions.
mod page;
/// Everything by its name.
mod palette;
pub mod parts;
pub mod report;
/// How samples are taken.
mod sampling;
pub mod state;
pub mod tabs;
/// A stretch of time as the window.
mod time;
/// Keys of the call tree and the flame graph.
mod tree;
/// What goes to a file.
mod write;

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
    /// To a question of [`Effect::Ask`].
    Answer(Answer),
    /// What became of a [`Effect::Write`].
    Written(Written),
    /// The same, of a file that others are to follow.
    Repeated(Written),
    /// To a [`Effect::Measure`].
    Measured(Room),
    /// To a [`Effect::Weigh`].
    Weighed(Shape, u64),
    /// So many bytes of a file are there.
    Progress(u64),
    /// An editor was closed, or why none was opened.
    Edited(Result<(), String>),
    /// Time went by.
    Tick,
    /// The terminal took so long for a frame; nothing: it keeps up again.
    Behind(Option<Duration>),
}

/// Which column to sort by, of those that can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub column: usize,
    /// Of what stands beside the view.
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
    /// So many samples per second of a busy CPU from now on.
    SetRate(u32),
    SetTheme(cli::Theme),
    /// To be answered with [`Event::Answer`]; the question before need not be.
    Ask(Question),
    /// The same for what stands beside the view: neither gives up the other's.
    AskBeside(Question),
    /// Into the terminal's clipboard.
    Copy(String),
    CaptureMouse(bool),
    /// To be answered with [`Event::Written`] or [`Event::Repeated`].
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
    /// So many since the screen was opened.
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
    freeze_later: Option<FreezeLater>,
    pub view: ViewId,
    history: History,
    /// The function that was selected on purpose in the view before.
    linked: Option<FunctionId>,
    pub views: Views,
    pub mode: Mode,
    pub detail: Detail,
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
        passed(self.sorted_at, SORT_EVERY) && passed(self.key_at, SORT_AFTER_KEY)
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
            freeze_later: None,
            view: ViewId::default(),
            history: History::default(),
            linked: None,
            views: Views::default(),
            mode: Mode::default(),
            detail: Detail::default(),
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
                self.sort_by(head.column);
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
                Vec::new()
            }
            Event::Written(written) => {
                self.hear_written(written);
                Vec::new()
            }
            Event::Repeated(written) => self.hear_repeated(written).into_iter().collect(),
            Event::Measured(room) => {
                if let Mode::Write(dialog) = &mut self.mode {
                    dialog.hear_room(room);
                }
                Vec::new()
            }
            Event::Weighed(shape, bytes) => {
                if let Mode::Write(dialog) = &mut self.mode {
                    dialog.hear_size(shape, bytes);
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
                self.hear(answer);
                Vec::new()
            }
            Event::Behind(took) => {
                self.behind = took;
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

    /// Where things are on the screen; nothing where it is too small.
    pub fn geometry(&self) -> Option<Geometry> {
        Geometry::new(self.size, self.state.is_some())
    }

    /// The find of the current view, what it found (rows and their samples,
    /// where those can be added up), and the rows there are.
    pub fn find(&self) -> Option<(&Find, (usize, u64), usize)> {
        if self.difference_here().is_some() {
            return None;
        }
        fn of<I: crate::lists::table::Item>(
            table: &Table<I>,
        ) -> Option<(&Find, (usize, u64), usize)> {
            Some((table.find()?, table.found(), table.len()))
        }
        let pane = self.in_pane();
        match self.focus() {
            ViewId::Functions => of(&self.views.functions),
            ViewId::Tree => {
                let tree = self.views.tree_in(pane);
                Some((tree.find()?, (tree.found(), 0), tree.side().rows().len()))
            }
            ViewId::Flame => {
                let flame = self.views.flame_in(pane);
                Some((flame.find()?, flame.found(), flame.bar_count()))
            }
            ViewId::Page => {
                let page = self.views.page_in(pane);
                let (found, rows) = page.found();
                Some((page.find()?, (found, 0), rows))
            }
            ViewId::Code => {
                let code = self.views.code_in(pane);
                let (found, rows) = code.found();
                Some((code.find()?, (found, 0), rows))
            }
            ViewId::Processes => of(&self.views.processes),
            ViewId::Threads => of(self.views.threads_in(pane)),
            ViewId::Time | ViewId::Health => None,
        }
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
        let is_same = self.shown.turn == snapshot.turn;
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
        let pane = self.pane();
        let report = &self.shown.report;
        match self.view {
            ViewId::Functions => {
                self.views.functions.update(report, sort);
                if let Some(diff) = &self.shown.difference {
                    self.views.difference.update(diff);
                }
            }
            // They come by themselves.
            ViewId::Tree | ViewId::Flame | ViewId::Page | ViewId::Time | ViewId::Code => return,
            ViewId::Processes => {
                self.views.processes.update(report, sort);
                if pane == Some(Beside::Threads) {
                    self.views.own_threads.update(report, sort);
                }
            }
            ViewId::Threads => self.views.threads.update(report, sort),
            ViewId::Health => self.views.health.update(&self.shown),
        }
        if sort && !report.functions.is_empty() {
            self.calm.sorted(self.now);
        }
    }

    /// What depends on everything else: the state line, and with it the height
    /// of the body.
    fn settle(&mut self) {
        self.state = State::of(self);
        let parts = self.parts().unwrap_or_else(|| Parts::tiny(self.size));
        let (width, height) = (parts.view.width, usize::from(parts.view.height));
        match self.view {
            ViewId::Functions => {
                self.views.functions.resize(height);
                self.views.difference.resize(height);
            }
            ViewId::Tree => self.views.tree.resize(height),
            ViewId::Page => self.views.page.resize(width, height),
            ViewId::Code => self.views.code.resize(width, height),
            ViewId::Time => {
                let rate_hz = self.shown.rate_hz;
                self.views.time.resize(width, height, rate_hz);
            }
            ViewId::Flame => self.views.flame.resize(width, height),
            ViewId::Processes => self.views.processes.resize(height),
            ViewId::Threads => self.views.threads.resize(height),
            ViewId::Health => self.views.health.resize(height),
        }
        self.settle_pane(&parts);
    }

    pub(crate) fn open(&mut self, view: ViewId) {
        if view == self.view {
            return self.refresh(true);
        }
        let here = self.function_here();
        self.leave_view();
        self.release();
        self.view = view;
        self.refresh(true);
        self.enter_view();
        if view == ViewId::Code && self.linked.is_none() {
            self.open_code_of(here);
        }
    }

    fn go(&mut self, motion: Motion) {
        if self.difference_here().is_some() {
            return self.views.difference.go(motion);
        }
        let (pane, report) = (self.in_pane(), &self.shown.report);
        match self.focus() {
            ViewId::Functions => self.views.functions.go(motion, report),
            ViewId::Tree => self.views.tree_in_mut(pane).go(motion),
            ViewId::Flame => self.views.flame_in_mut(pane).go(motion),
            ViewId::Page => self.views.page_in_mut(pane).go(motion),
            ViewId::Code => self.views.code_in_mut(pane).go(motion),
            ViewId::Time => self.views.time.go(motion),
            ViewId::Processes => self.views.processes.go(motion, report),
            ViewId::Threads => self.views.threads_in_mut(pane).go(motion, report),
            ViewId::Health => self.views.health.go(motion),
        }
    }

    fn select_at(&mut self, column: u16, line: usize) {
        if self.difference_here().is_some() {
            return self.views.difference.select_line(line);
        }
        let (pane, report) = (self.in_pane(), &self.shown.report);
        match self.focus() {
            ViewId::Functions => self.views.functions.select_line(line, report),
            ViewId::Tree => self.views.tree_in_mut(pane).select_line(line),
            ViewId::Flame => self.views.flame_in_mut(pane).select_cell(column, line),
            ViewId::Page => self.views.page_in_mut(pane).select_line(line),
            ViewId::Code => self.views.code_in_mut(pane).select_line(line),
            ViewId::Time => self.views.time.select_cell(column, line),
            ViewId::Processes => self.views.processes.select_line(line, report),
            ViewId::Threads => self.views.threads_in_mut(pane).select_line(line, report),
            ViewId::Health => self.views.health.select_line(line),
        }
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
        let (pane, report) = (self.in_pane(), &self.shown.report);
        match self.focus() {
            ViewId::Functions => self.views.functions.set_find(find, report),
            ViewId::Tree => self.views.tree_in_mut(pane).set_find(find),
            ViewId::Flame => self.views.flame_in_mut(pane).set_find(find),
            ViewId::Page => self.views.page_in_mut(pane).set_find(find),
            ViewId::Code => self.views.code_in_mut(pane).set_find(find),
            ViewId::Processes => self.views.processes.set_find(find, report),
            ViewId::Threads => self.views.threads_in_mut(pane).set_find(find, report),
            ViewId::Time | ViewId::Health => {}
        }
    }

    fn select_found(&mut self, down: bool, including: bool) {
        let (pane, report) = (self.in_pane(), &self.shown.report);
        let position = match self.focus() {
            ViewId::Functions => self.views.functions.select_found(down, including, report),
            ViewId::Tree => self.views.tree_in_mut(pane).select_found(down, including),
            ViewId::Flame => self.views.flame_in_mut(pane).select_found(down, including),
            ViewId::Page => self.views.page_in_mut(pane).select_found(down, including),
            ViewId::Code => self.views.code_in_mut(pane).select_found(down, including),
            ViewId::Processes => self.views.processes.select_found(down, including, report),
            ViewId::Threads => self
                .views
                .threads_in_mut(pane)
                .select_found(down, including, report),
            ViewId::Time | ViewId::Health => None,
        };
        if position.is_none()
            && let Some(name) = self.look_below()
        {
            self.detail = Detail::Notice(Notice::FoundBelow(name));
            return;
        }
        let notice = match self.find() {
            None => Notice::NoFind,
            Some((find, (rows, samples), _)) => Notice::Found {
                pattern: find.text.clone(),
                rows,
                samples,
                position,
            },
        };
        self.detail = Detail::Notice(notice);
    }

    pub(crate) fn selected_name(&self) -> Option<String> {
        if let Some(diff) = self.difference_here() {
            return Some(self.views.difference.selected(diff)?.name.to_string());
        }
        let (pane, report) = (self.in_pane(), &self.shown.report);
        match self.focus() {
            ViewId::Functions => name(self.views.functions.selected(report)),
            ViewId::Tree => {
                let tree = self.views.tree_in(pane);
                Some(tree.name(tree.selected()?)?.to_string())
            }
            ViewId::Flame => Some(self.views.flame_in(pane).selected()?.name.to_string()),
            ViewId::Page => Some(
                self.views
                    .page_in(pane)
                    .selected_function()?
                    .name
                    .to_string(),
            ),
            ViewId::Code => self.views.code_in(pane).text_here(),
            ViewId::Processes => name(self.views.processes.selected(report)),
            ViewId::Threads => name(self.views.threads_in(pane).selected(report)),
            ViewId::Time | ViewId::Health => None,
        }
    }

    fn shift_column(&mut self, by: isize) {
        if self.difference_here().is_some() {
            return;
        }
        let (pane, report) = (self.in_pane(), &self.shown.report);
        match self.focus() {
            ViewId::Functions => self.views.functions.shift_column(by, report),
            ViewId::Processes => self.views.processes.shift_column(by, report),
            ViewId::Threads => self.views.threads_in_mut(pane).shift_column(by, report),
            ViewId::Tree
            | ViewId::Flame
            | ViewId::Page
            | ViewId::Time
            | ViewId::Code
            | ViewId::Health => {}
        }
    }

    fn sort_by(&mut self, column: usize) {
        if self.difference_here().is_some() {
            return;
        }
        let (pane, report) = (self.in_pane(), &self.shown.report);
        match self.focus() {
            ViewId::Functions => self.views.functions.sort_by(column, report),
            ViewId::Processes => self.views.processes.sort_by(column, report),
            ViewId::Threads => self.views.threads_in_mut(pane).sort_by(column, report),
            ViewId::Tree
            | ViewId::Flame
            | ViewId::Page
            | ViewId::Time
            | ViewId::Code
            | ViewId::Health => {}
        }
    }

    fn invert(&mut self) {
        if self.difference_here().is_some() {
            return;
        }
        let (pane, report) = (self.in_pane(), &self.shown.report);
        match self.focus() {
            ViewId::Functions => self.views.functions.invert(report),
            ViewId::Tree => self.views.tree.invert(),
            ViewId::Flame => {
                // It leaves what was zoomed into.
                if pane.is_none() {
                    self.remember();
                }
                self.views.flame_in_mut(pane).invert();
            }
            ViewId::Page | ViewId::Code => {}
            ViewId::Processes => self.views.processes.invert(report),
            ViewId::Threads => self.views.threads_in_mut(pane).invert(report),
            ViewId::Time | ViewId::Health => {}
        }
    }
}

fn name<I: crate::lists::table::Item>(
    line: Option<crate::lists::table::Line<'_, I>>,
) -> Option<String> {
    line.map(|line| line.row.name().to_owned())
}
