//! Orders are checked and carried out here, independent of where they come from.

use super::{App, DrawCost, Effect};
use crate::action::Action;
use crate::app::mode::{Detail, Mode};
use crate::code::Syntax;
use crate::dialogs::write::{FileKind, Manner};
use crate::knobs::{CountedAlone, Narrowing, Unit, Window};
use crate::lists::table::Item as _;
use crate::notice::Notice;
use crate::order::Order;
use crate::view_id::ViewId;
use crate::words::keys::{and, hint};
use engine::snapshot::{Baseline, TargetState};
use profile::FunctionRow;
use std::path::Path;
use std::sync::Arc;

/// The result of an order: a notice for the user, and what has to be done outside of the app.
#[derive(Debug, Default, PartialEq)]
pub struct Applied {
    /// The notice for the detail line or the dialog. `None` if the screen shows the result itself.
    pub said: Option<Notice>,
    /// What the front end has to do, such as writing a file.
    pub effect: Option<Effect>,
}

impl From<Notice> for Applied {
    fn from(said: Notice) -> Self {
        Applied {
            said: Some(said),
            effect: None,
        }
    }
}

impl From<Effect> for Applied {
    fn from(effect: Effect) -> Self {
        Applied {
            said: None,
            effect: Some(effect),
        }
    }
}

impl App {
    /// Carries out an order. The error is a sentence that says why that is not possible; then
    /// nothing has changed.
    pub fn apply(&mut self, order: Order) -> Result<Applied, Notice> {
        match order {
            Order::Process(pid) => self.narrow_to_process(pid),
            Order::Narrow(narrowing) => self.narrow_to(narrowing),
            Order::Window(window) => self.use_window(window),
            Order::Mark => self.mark_now(),
            Order::Filter(filter) => {
                self.turn(|knobs| knobs.filter = filter);
                Ok(Notice::FilterSet.into())
            }
            Order::Clause(clause) => {
                self.turn(|knobs| knobs.filter.push(clause));
                Ok(Notice::FilterSet.into())
            }
            Order::Unit(unit) => self.count_in(unit),
            Order::Metric(name) => self.choose_metric(&name).map_err(Notice::Refused),
            Order::Rate(hz) => self.change_rate(hz).map_err(Notice::Refused),
            Order::Baseline => self.compare_with_this(),
            Order::Difference(is_wanted) => {
                if self.knobs.baseline.is_none() {
                    return Err(Notice::NoBaseline);
                }
                self.turn(|knobs| knobs.shows_difference = is_wanted);
                Ok(Applied::default())
            }
            Order::Freeze(is_wanted) => {
                if self.feed.freezing.frozen.is_some() != is_wanted {
                    self.freeze_or_go_on();
                }
                Ok(Notice::Frozen(is_wanted).into())
            }
            Order::Back => self.go_back().map(|said| Applied { said, effect: None }),
            Order::Forward => self.go_forward().map(|()| Applied::default()),
            Order::View(view) => {
                self.open(view);
                Ok(Applied::default())
            }
            Order::GoTo(name) => self.go_to_function(&name),
            Order::Sort(column) => self.sort_functions(&column),
            Order::Theme(theme) => Ok(Effect::SetTheme(theme).into()),
            Order::Syntax(syntax) => Ok(self.use_syntax(syntax)),
            Order::Cost(is_wanted) => {
                self.terminal.draw_cost = is_wanted.then(DrawCost::default);
                Ok(Applied::default())
            }
            Order::Fetch(is_allowed) => self.allow_fetching(is_allowed),
            Order::Write(name) => self.write_to(&name),
            Order::Probe(probed) => self.probe(probed),
            Order::Renew(choice) => self.renew_probe(choice),
            Order::Unprobe(choice) => self.take_probe_away(choice),
            Order::Value(choice, expression) => {
                self.read_value(choice, expression.map(|boxed| *boxed))
            }
        }
    }

    /// Counts only the process with this pid. If the pid was used again within the window, all
    /// processes that had it are counted. The error says that none of them has samples.
    fn narrow_to_process(&mut self, pid: u32) -> Result<Applied, Notice> {
        let rows = self.shown.report.processes.iter();
        let lives: Vec<_> = rows.filter(|row| row.pid == pid).collect();
        let Some(newest) = lives.first() else {
            let why = format!("no process {pid} has samples in what is counted");
            return Err(Notice::Refused(why));
        };
        let narrowing = Narrowing {
            words: format!("{}[{pid}]", newest.comm).into(),
            part: CountedAlone::Processes(lives.iter().map(|row| row.id).collect()),
        };
        let said = Notice::Only(narrowing.words.clone());
        self.turn(|knobs| knobs.scope.push(narrowing));
        Ok(said.into())
    }

    /// Counts only a part of the processes or threads, and opens the functions. Both together are
    /// one step in the history. The error says that the scope is already narrowed to this part.
    fn narrow_to(&mut self, narrowing: Narrowing) -> Result<Applied, Notice> {
        let last = self.knobs.scope.last();
        if last.is_some_and(|last| last.part == narrowing.part) {
            return Err(Notice::OnlyThis(narrowing.words));
        }
        let said = Notice::Only(narrowing.words.clone());
        self.remember();
        let before = self.knobs.clone();
        self.knobs.scope.push(narrowing);
        self.unmark_all();
        self.open(ViewId::Functions);
        self.after_turning(&before);
        Ok(said.into())
    }

    /// Sets the window. The error says that the samples have no times, as in some recordings.
    fn use_window(&mut self, window: Window) -> Result<Applied, Notice> {
        let recording = self.shown.source.recording.as_ref();
        if recording.is_some_and(|recording| recording.lacks.time) {
            return Err(Notice::NoTime);
        }
        self.set_window(window);
        Ok(Notice::WindowSet.into())
    }

    /// Starts a window at the end of the engine's last report. On a frozen screen that is the
    /// report which was the newest when it was frozen. The error says that no new samples come.
    fn mark_now(&mut self) -> Result<Applied, Notice> {
        if self.feed.base.run.target != TargetState::Running {
            return Err(Notice::NoNow);
        }
        let mark_ns = self.feed.base.report.window.end_ns;
        self.set_window(Window::Since { mark_ns });
        Ok(Notice::Marked.into())
    }

    /// Chooses the unit of numbers. `None` stands for the default unit. The error says that a
    /// difference has a unit of its own, or that the shown samples have no time to count in.
    fn count_in(&mut self, unit: Option<Unit>) -> Result<Applied, Notice> {
        let cx = self.context();
        if let Some(fixed) = cx.unit_of_difference() {
            let leave = hint(&cx, Action::Difference, "leave it");
            let why = format!(
                "a difference is in {}, as A and B may differ in length",
                fixed.words()
            );
            return Err(Notice::Refused(and(&why, "; ", [leave])));
        }
        if unit.is_some_and(Unit::needs_time) && !self.context().has_time() {
            let why = "without a rate and a time there are only percent and samples";
            return Err(Notice::Refused(why.into()));
        }
        self.turn(|knobs| knobs.unit = unit);
        Ok(Notice::UnitSet.into())
    }

    /// Makes what is shown the baseline for comparisons.
    fn compare_with_this(&mut self) -> Result<Applied, Notice> {
        let view = self.shown.view.clone().ok_or(Notice::NothingToWrite)?;
        if self.shown.report.samples == 0 {
            return Err(Notice::NothingToCompare);
        }
        self.feed.asking.baselines += 1;
        let query = self.shown.asked.query.clone();
        let start_ns = self.shown.report.window.start_ns;
        let whose = self.context().scope_words();
        let number = self.feed.asking.baselines;
        let baseline = Baseline::shown(number, view, query, start_ns, whose);
        let baseline = Some(Arc::new(baseline));
        // Replacing a baseline is a step in the history, so that the user can go back to the one
        // before. Setting the first baseline is not a step.
        let is_another = self.knobs.baseline.is_some();
        if is_another {
            self.turn(|knobs| knobs.baseline = baseline);
        } else {
            let before = self.knobs.clone();
            self.knobs.baseline = baseline;
            self.after_turning(&before);
        }
        let samples = self.shown.report.samples;
        Ok(Notice::Baseline {
            samples,
            is_another,
        }
        .into())
    }

    /// Selects the function with this name, or else the one with most samples whose name contains
    /// it.
    fn go_to_function(&mut self, words: &str) -> Result<Applied, Notice> {
        let rows = self.shown.report.functions.iter();
        let found = rows
            .filter(|row| row.name.contains(words))
            // The name itself is preferred to names that contain it, then the one with most
            // samples.
            .max_by_key(|row| (*row.name == *words, row.total_samples));
        let Some(id) = found.map(|row| row.id) else {
            let why = format!("no function here has '{words}' in its name");
            return Err(Notice::Refused(why));
        };
        self.mode = Mode::Browse;
        self.remember();
        let before = self.knobs.clone();
        // The difference is another list, in which the row could not be selected.
        self.knobs.shows_difference = false;
        self.open(ViewId::Functions);
        self.after_turning(&before);
        let report = &self.shown.report;
        self.views.functions.table.select_key(id, report);
        Ok(Applied::default())
    }

    /// Sorts the functions by a column, and opens them. The error lists the names of the columns.
    fn sort_functions(&mut self, words: &str) -> Result<Applied, Notice> {
        let columns = FunctionRow::COLUMNS.iter();
        let Some(column) = columns.clone().find(|column| column.words() == words) else {
            let known: Vec<&str> = columns.map(|column| column.words()).collect();
            return Err(Notice::Refused(format!("there are {}", known.join(", "))));
        };
        if self.view != ViewId::Functions {
            self.remember();
            self.open(ViewId::Functions);
        }
        let report = Arc::clone(&self.shown.report);
        let functions = &mut self.views.functions.table;
        functions.set_order(*column, false, &report);
        Ok(Applied::default())
    }

    /// Shows instructions in this syntax from now on.
    fn use_syntax(&mut self, syntax: Syntax) -> Applied {
        self.views.code.set_syntax(syntax);
        Notice::Syntax(syntax.name()).into()
    }

    /// Returns the effect that writes a file; the extension of its name tells the format. An
    /// existing file is not overwritten. The error says that the extension tells no format, or that
    /// there are no samples yet.
    fn write_to(&mut self, name: &str) -> Result<Applied, Notice> {
        let Some(kind) = FileKind::of_path(Path::new(name)) else {
            let why = "its name tells no format: .pft .pb.gz .folded .svg .txt";
            return Err(Notice::Refused(why.into()));
        };
        let job = self.write(kind, name, false, Manner::default(), false);
        let effect = job.map(Effect::Write);
        effect.map(Applied::from).ok_or(Notice::NothingToWrite)
    }

    /// Shows the result of an order in the detail line, unless the header already shows it, and
    /// returns what has to be done outside of the app.
    pub(super) fn show_applied(&mut self, applied: Applied) -> Vec<Effect> {
        if let Some(notice) = applied.said.filter(|notice| !notice.is_in_header()) {
            self.lines.detail = Detail::Notice(notice);
        }
        applied.effect.into_iter().collect()
    }

    /// Carries out an order that did not come from a key. [`App::take_reply`] then returns the
    /// result.
    pub(super) fn apply_order(&mut self, order: Order) -> Vec<Effect> {
        let (reply, effect) = match self.apply(order) {
            Ok(applied) => (Ok(applied.said), applied.effect),
            Err(why) => (Err(why), None),
        };
        self.input.reply = Some(reply);
        effect.into_iter().collect()
    }

    /// Returns the result of the last [`Event::Order`]: a notice, or why the order was not carried
    /// out.
    ///
    /// [`Event::Order`]: super::Event::Order
    pub fn take_reply(&mut self) -> Result<Option<Notice>, Notice> {
        self.input.reply.take().unwrap_or(Ok(None))
    }
}
