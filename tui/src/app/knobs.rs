//! Changing what is counted, and going back.

use super::apply::Applied;
use super::{App, Effect};
use super::{undo, waits};
use crate::action::{self, FilterAction};
use crate::app::history::ScreenPosition;
use crate::app::mode::Detail;
use crate::context::Context;
use crate::desk::Question;
use crate::knobs::{CountedAlone, Knobs, Window};
use crate::lists::motion::Motion;
use crate::notice::Notice;
use crate::order::Order;
use crate::view_id::ViewId;
use crate::views::PaneId;
use crate::views::people;
use crate::views::report::{ReportAnswer, ReportKey, ReportQuestion};
use engine::snapshot::{Baseline, Span, TargetState};
use profile::diff::Diff;
use profile::filter::{Action, Clause, FrameTest, Ranges, SampleTest, States, Text};
use profile::{Filter, Metric, ProcessRow};
use std::sync::Arc;

/// Which questions were sent to the engine and to the profile.
#[derive(Debug)]
pub(super) struct Asking {
    /// How many changes of the knobs altered which samples count. It tells answers to the
    /// present knobs from answers to earlier ones.
    turns: u64,
    /// How many baselines the user has made.
    pub(super) baselines: u64,
    own_reports: OwnReports,
    /// The window that the engine was last asked to report.
    engine_window: Span,
    /// The metric that is shown once waits are counted. None if they were not asked for, or are
    /// counted already.
    pub(super) waits: Option<String>,
}

impl Asking {
    /// Begins with the window that the engine reports at first.
    pub(super) fn new(engine_window: Span) -> Self {
        Asking {
            turns: 0,
            baselines: 0,
            own_reports: OwnReports::default(),
            engine_window,
            waits: None,
        }
    }
}

/// Reports that we ask the profile for, because the engine does not make them: with a
/// filter, for instance.
#[derive(Debug, Default)]
struct OwnReports {
    asked: Option<ReportKey>,
    answered: Option<ReportKey>,
}

impl App {
    /// Changes the knobs. If that changes anything, it is a step in the history.
    pub(crate) fn turn(&mut self, change: impl FnOnce(&mut Knobs)) {
        let before = self.place();
        change(&mut self.knobs);
        if self.knobs != before.knobs {
            self.after_turning(&before.knobs);
            self.history.leave(before);
        }
    }

    /// Changes the window. Several changes in a row are one step in the history.
    pub(super) fn set_window(&mut self, window: Window) {
        let before = self.place();
        if window != self.knobs.window {
            self.knobs.window = window;
            self.after_turning(&before.knobs);
            self.history.leave_window(before);
        }
    }

    /// Follows up a change of the knobs: counts it if it alters which samples count, and
    /// shows the engine's report where that is what is asked for. `before` are the knobs as
    /// they were.
    pub(super) fn after_turning(&mut self, before: &Knobs) {
        if !self.knobs.asks_the_same(before) {
            self.asking.turns += 1;
            if self.is_the_engines() {
                self.show(Arc::clone(&self.base), true);
            }
        }
    }

    /// Makes a step in the history. Called before something else is shown.
    pub(super) fn remember(&mut self) {
        let place = self.place();
        self.history.leave(place);
    }

    /// Returns all that is needed to come back here.
    pub(super) fn place(&self) -> ScreenPosition {
        let tabs = PaneId::ALL
            .iter()
            .filter(|pane| **pane == PaneId::of(pane.view()));
        let place = |pane: &PaneId| Some((*pane, self.views.get(*pane).place()?));
        ScreenPosition {
            view: self.view,
            knobs: self.knobs.clone(),
            panes: tabs.filter_map(place).collect(),
        }
    }

    /// Goes one step back. Returns a notice that says what was undone, if the knobs
    /// changed; the error says that there is no step.
    pub(super) fn go_back(&mut self) -> Result<Option<Notice>, Notice> {
        let here = self.place();
        let place = self.history.back(here.clone()).ok_or(Notice::NoBack)?;
        let undone = undo::words(&here.knobs, &place.knobs);
        // A view by its number is no step of its own: it is left with the step before it.
        let left = (place.view != here.view).then(|| place.view.name());
        self.go_to(place);
        let words = undone.map(|what| match left {
            Some(view) => format!("{what}, and back in {view}"),
            None => what,
        });
        Ok(words.map(Notice::Undone))
    }

    /// Goes one step forward; the error says that there is none.
    pub(super) fn go_forward(&mut self) -> Result<(), Notice> {
        let place = self
            .history
            .forward(self.place())
            .ok_or(Notice::NoForward)?;
        self.go_to(place);
        Ok(())
    }

    /// Takes the knobs and views of a place in the history.
    fn go_to(&mut self, place: ScreenPosition) {
        let before = std::mem::replace(&mut self.knobs, place.knobs);
        // No step back takes the baseline away: the user chose it. But the step that put
        // another in its place brings the one before back.
        if self.knobs.baseline.is_none() {
            self.knobs.baseline.clone_from(&before.baseline);
        }
        for (pane, place) in &place.panes {
            self.views.get_mut(*pane).return_to(&**place);
        }
        // The selection is not carried over from here: the view shows what it showed when
        // it was left.
        if place.view != self.view {
            self.release();
            self.view = place.view;
        }
        self.refresh(true);
        self.after_turning(&before);
    }

    /// Whether the report that the engine publishes is what the knobs ask for, or soon will
    /// be.
    pub(super) fn is_the_engines(&self) -> bool {
        let asks_all = self.knobs.scope.is_empty()
            && self.knobs.filter.is_empty()
            && self.knobs.metric == 0
            && self.knobs.difference().is_none();
        let is_coming = self.freezing.frozen.is_none()
            && self.base.source.recording.is_none()
            && matches!(
                self.base.run.target,
                TargetState::Starting | TargetState::Running
            );
        match self.knobs.window {
            Window::Last(span) => asks_all && (span == self.base.asked.window || is_coming),
            Window::Since { .. } | Window::Between { .. } => false,
        }
    }

    /// Whether what is shown is not yet what the knobs ask for.
    pub fn is_catching_up(&self) -> bool {
        if self.is_the_engines() {
            self.base.generation > 0 && self.knobs.window != Window::Last(self.base.asked.window)
        } else {
            self.shown.asked.turn != self.asking.turns && self.base.view.is_some()
        }
    }

    /// Returns the effects that ask the engine for another window, or the profile for a
    /// report.
    pub(super) fn ask_for_report(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        if let Window::Last(span) = self.knobs.window
            && span != self.asking.engine_window
        {
            self.asking.engine_window = span;
            if self.base.source.recording.is_none() {
                effects.push(Effect::SetWindow(span));
            }
        }
        if self.is_the_engines() {
            self.asking.own_reports = OwnReports::default();
            return effects;
        }
        let key = ReportKey {
            turn: self.asking.turns,
            generation: self.base.generation,
        };
        // A report that is being made for an older snapshot is not given up for a newer
        // one: if reports are slow, none would ever come.
        let is_under_way = self
            .asking
            .own_reports
            .asked
            .is_some_and(|asked| asked.turn == key.turn);
        if is_under_way || self.asking.own_reports.answered == Some(key) {
            return effects;
        }
        if let Some(question) = ReportQuestion::new(&self.base, &self.knobs, self.asking.turns) {
            self.asking.own_reports.asked = Some(key);
            effects.push(Effect::Ask(Question::new(question)));
        }
        effects
    }

    /// Notes that the question was given up, so that it is asked again.
    pub(crate) fn give_up_report(&mut self) {
        self.asking.own_reports.asked = None;
    }

    /// Shows a report that the profile was asked for. One that was not asked for last is
    /// dropped.
    pub(super) fn receive_report(&mut self, answer: &ReportAnswer) {
        if self.asking.own_reports.asked != Some(answer.key) {
            return;
        }
        self.asking.own_reports.asked = None;
        self.asking.own_reports.answered = Some(answer.key);
        // The first answer after a change of the knobs is shown and sorted at once.
        let is_awaited = self.shown.asked.turn != answer.key.turn;
        if !is_awaited && self.difference().is_some() && !self.calm.may_sort(self.now) {
            // Its rows would change places; the next one comes in a second.
            return;
        }
        self.show(Arc::clone(&answer.snapshot), is_awaited);
    }

    /// Narrows the scope to the selected process or thread, or to those that are marked.
    pub(super) fn narrow(&mut self) -> Vec<Effect> {
        let pane = self.pane_here();
        let cx = self.context_of(pane);
        let view = self.views.get(pane);
        let refused = match view.narrowing(&cx) {
            Some(narrowing) if view.offers(&cx, action::Action::Narrow) => {
                return self.apply_for_key(Order::Narrow(narrowing));
            }
            Some(_) => Notice::RowGone,
            None => Notice::NothingSelected,
        };
        self.detail = Detail::Notice(refused);
        Vec::new()
    }

    /// Removes the marks from the rows of all views.
    pub(super) fn unmark_all(&mut self) {
        for pane in PaneId::ALL {
            self.views.get_mut(*pane).unmark();
        }
    }

    /// Marks the selected row, or removes its mark.
    pub(super) fn toggle_mark(&mut self) {
        self.with_focused(|view, cx| view.toggle_mark(cx));
    }

    /// Makes the window shorter or longer. It ends now, wherever it was before.
    pub(super) fn step_window(&mut self, longer: bool) -> Vec<Effect> {
        let window = self.knobs.window;
        self.apply_for_key(Order::Window(if longer {
            window.longer()
        } else {
            window.shorter()
        }))
    }

    /// Returns the comparison with the baseline, if it is shown in place of the functions.
    pub fn difference(&self) -> Option<&Diff> {
        Context::difference_in(&self.shown, &self.knobs, self.view)
    }

    /// Returns the comparison with the baseline if it is shown and has the keys.
    pub fn difference_here(&self) -> Option<&Diff> {
        self.difference().filter(|_| self.in_pane().is_none())
    }

    /// Returns the context of the open view.
    pub fn context(&self) -> Context<'_> {
        self.context_of(PaneId::of(self.view))
    }

    /// Returns the context of the view in a pane.
    pub fn context_of(&self, pane: PaneId) -> Context<'_> {
        Context {
            shown: &self.shown,
            knobs: &self.knobs,
            keymap: &self.keymap,
            open: self.view,
            focus: self.focus(),
            is_beside: pane != PaneId::of(self.view),
            has_keys: pane == self.pane_here(),
            is_order_held: self.is_order_held(),
            own_pid: self.own_pid_here(),
        }
    }

    /// Switches to the next metric. In a run that counts only time on CPUs, waits are counted from
    /// now on. In a file that has no other, says so.
    pub(super) fn next_metric(&mut self) -> Vec<Effect> {
        let next = match self.base.metrics.len() {
            0 | 1 => self.count_more(),
            several => self.set_metric((self.knobs.metric + 1) % several),
        };
        match next {
            Ok(applied) => self.show_applied(applied),
            Err(why) => {
                self.detail = Detail::Notice(Notice::OneMetric(why));
                Vec::new()
            }
        }
    }

    /// Counts something else than the only metric that there is; an error says why it cannot.
    fn count_more(&mut self) -> Result<Applied, String> {
        if self.base.source.recording.is_some() {
            return Err("this file counts nothing else".into());
        }
        let [first, ..] = waits::metrics();
        self.count_waits(&first)
    }

    /// Counts by the metric with this number; an error says why it cannot.
    fn set_metric(&mut self, metric: usize) -> Result<Applied, String> {
        match self.base.metrics.get(metric) {
            Some(other) if metric > 0 && other.view.is_none() => {
                Err(format!("{} is still being read", other.name))
            }
            _ => {
                self.asking.waits = None;
                self.count_by(metric);
                Ok(Notice::MetricSet.into())
            }
        }
    }

    /// Counts by the metric with this number, and watches the top of the lists: what was there by
    /// the metric before may be far down by this one, and would hide what is there now.
    pub(super) fn count_by(&mut self, metric: usize) {
        self.turn(|knobs| knobs.metric = metric);
        for list in [ViewId::Functions, ViewId::Processes, ViewId::Threads] {
            self.with(PaneId::of(list), |view, cx| view.go(cx, Motion::Top));
        }
    }

    /// Counts by the metric of this name; an error says why it cannot.
    pub(super) fn choose_metric(&mut self, name: &str) -> Result<Applied, String> {
        let metrics = Arc::clone(&self.base.metrics);
        if let Some(number) = metrics.iter().position(|metric| *metric.name == *name) {
            return self.set_metric(number);
        }
        let is_live = self.base.source.recording.is_none();
        if is_live && name == "on-cpu" {
            return self.set_metric(0);
        }
        if is_live && name == Metric::kept_waiting().name && self.is_without_wakers() {
            return Err("kept-waiting needs BPF, and samples are taken by perf".into());
        }
        let waits = waits::metrics();
        if is_live && waits.iter().any(|metric| metric == name) {
            return self.count_waits(name);
        }
        let known = metrics.iter().map(|metric| &*metric.name);
        match (metrics.is_empty(), is_live) {
            (true, true) => Err(format!("there are on-cpu, {}", waits.join(", "))),
            (true, false) => Err("this file counts nothing else".into()),
            (false, _) => Err(format!(
                "it counts {}",
                known.collect::<Vec<_>>().join(", ")
            )),
        }
    }

    /// Switches to the next unit that numbers can be shown in.
    pub(super) fn next_unit(&mut self) -> Vec<Effect> {
        let cx = self.context();
        let next = cx.unit().next(cx.has_time());
        self.apply_for_key(Order::Unit(Some(next)))
    }

    /// Sets what the command line asked for as if it had been typed: Backspace undoes it.
    pub fn begin_with(&mut self, filter: Filter, metric: usize, baseline: Option<Baseline>) {
        self.knobs.metric = metric;
        if !filter.is_empty() {
            drop(self.apply(Order::Filter(filter)));
        }
        if let Some(baseline) = baseline {
            // It stays when the difference is undone.
            self.knobs.baseline = Some(Arc::new(baseline));
            drop(self.apply(Order::Difference(true)));
        }
    }

    /// Changes the filter as a key asks for, with the selected function where it is about
    /// one.
    pub(super) fn filter_by(&mut self, action: FilterAction) {
        if action.is_of_row() && self.is_row_gone() {
            self.detail = Detail::Notice(Notice::RowGone);
            return;
        }
        let clause = match action {
            FilterAction::Focus => self.function_clause(Action::Focus),
            FilterAction::Exclude => self.function_clause(Action::Exclude),
            FilterAction::Hide => self.function_clause(Action::Hide),
            FilterAction::ExcludeRows => self.people_clause(),
            FilterAction::FoldModule => self
                .selected_function()
                .map(|(_, module)| Clause::module(Action::Hide, &module)),
            FilterAction::FoldRecursion => return self.toggle_clause(Clause::FoldRecursion),
            FilterAction::Internals => return self.toggle_clause(Clause::ShowInternals),
            FilterAction::Idle => {
                return self.toggle_clause(Clause::Sample {
                    test: SampleTest::State(States::IDLE),
                    negated: true,
                });
            }
            FilterAction::Kernel => return self.cycle_kind(FrameTest::Kernel),
            FilterAction::User => return self.cycle_kind(FrameTest::User),
        };
        match clause {
            Some(clause) => drop(self.apply_for_key(Order::Clause(clause))),
            None => self.detail = Detail::Notice(Notice::NothingSelected),
        }
    }

    /// Whether the selected function has no samples any more: its row stays only because it
    /// is selected.
    pub(super) fn is_row_gone(&self) -> bool {
        let pane = self.pane_here();
        let view = self.views.get(pane);
        let function = view.selected_function(&self.context_of(pane));
        function.is_some_and(|function| function.named.is_some() && function.id.is_none())
    }

    /// The clause that drops the processes or threads that are marked, or else selected.
    fn people_clause(&self) -> Option<Clause> {
        let pane = self.pane_here();
        let narrowing = self.views.get(pane).narrowing(&self.context_of(pane))?;
        let report = &self.shown.report;
        let one = |number: u32| (number, number);
        let test = match narrowing.part {
            CountedAlone::Processes(ids) => {
                let rows = report.processes.iter().filter(|row| ids.contains(&row.id));
                SampleTest::Pid(Ranges(rows.map(|row| one(row.pid)).collect()))
            }
            CountedAlone::Families(families) => {
                let is_of = |row: &&ProcessRow| people::is_of(row, &families);
                let rows = report.processes.iter().filter(is_of);
                SampleTest::Pid(Ranges(rows.map(|row| one(row.pid)).collect()))
            }
            CountedAlone::Threads(threads) => {
                SampleTest::Tid(Ranges(threads.iter().map(|(_, tid)| one(*tid)).collect()))
            }
            CountedAlone::Hosts(hosts) => SampleTest::Host(Text::is(hosts.first()?)),
        };
        Some(Clause::Sample {
            test,
            negated: true,
        })
    }

    fn function_clause(&self, action: Action) -> Option<Clause> {
        let (name, _) = self.selected_function()?;
        Some(Clause::function(action, &name))
    }

    /// Returns name and module of the selected function. None for rows that stand for
    /// something else.
    fn selected_function(&self) -> Option<(Arc<str>, Arc<str>)> {
        let pane = self.pane_here();
        let function = self
            .views
            .get(pane)
            .selected_function(&self.context_of(pane))?;
        function.named
    }

    fn toggle_clause(&mut self, clause: Clause) {
        self.turn(|knobs| {
            if !knobs.filter.remove(&clause) {
                knobs.filter.push(clause);
            }
        });
    }

    /// Goes to the next state of kernel or user frames: shown, hidden, shown alone, shown.
    fn cycle_kind(&mut self, test: FrameTest) {
        let clause = |action| Clause::Stack {
            action,
            test: test.clone(),
        };
        let other = match test {
            FrameTest::Kernel => FrameTest::User,
            _ => FrameTest::Kernel,
        };
        self.turn(|knobs| {
            // One kind alone, and then the other one: nothing is of both.
            knobs.filter.remove(&Clause::Stack {
                action: Action::Only,
                test: other,
            });
            if knobs.filter.remove(&clause(Action::Hide)) {
                knobs.filter.push(clause(Action::Only));
            } else if !knobs.filter.remove(&clause(Action::Only)) {
                knobs.filter.push(clause(Action::Hide));
            }
        });
    }
}
