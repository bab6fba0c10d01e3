//! A second view *beside* the open one, shown if the screen is wide enough. It follows the
//! selection of the open view without any key. When it has the focus, its own keys work.

use super::App;
use crate::app::mode::Detail;
use crate::app::parts::{Parts, Strip};
use crate::geometry::{ViewArea, WIDTH_WIDE};
use crate::notice::Notice;
use crate::view_id::ViewId;
use crate::views::PaneId;
use crate::views::page::PagePosition;
use crate::views::tree::Stretch;
use profile::FunctionId;

/// The user's choices about the view beside the open one.
#[derive(Debug)]
pub struct PaneState {
    /// Whether the user wants a second view. It is shown if there is room for it.
    pub(crate) is_wanted: bool,
    /// The open view if the keys go to the view beside it. It is compared with the open view, so
    /// that the focus ends when another view is opened.
    pub(super) focus: Option<ViewId>,
}

impl Default for PaneState {
    fn default() -> Self {
        PaneState {
            is_wanted: true,
            focus: None,
        }
    }
}

impl App {
    /// Returns how the screen is divided among the views, or `None` if it is too small.
    pub fn parts(&self) -> Option<Parts> {
        let whole = self.geometry()?.whole();
        Some(self.share_out(whole))
    }

    /// Divides the body among the open view, the view beside it, the busiest processes and the
    /// strip.
    fn share_out(&self, whole: ViewArea) -> Parts {
        let is_wanted = self.pane_state.is_wanted && self.view.lacking(&self.shown).is_none();
        let beside = self.beside().filter(|_| is_wanted);
        let strip = self.strip().filter(|_| is_wanted);
        Parts::new(
            whole,
            self.terminal.size,
            beside,
            self.shows_busiest(),
            strip,
        )
    }

    /// Whether the busiest processes are listed above the functions: only if functions of all
    /// processes are counted.
    fn shows_busiest(&self) -> bool {
        let recording = self.shown.source.recording.as_ref();
        let has_people = recording.is_none_or(|recording| !recording.lacks.people);
        self.view == ViewId::Functions
            && self.shown.run.is_of_whole_machine()
            && self.knobs.scope.is_empty()
            && self.difference().is_none()
            && has_people
    }

    /// Returns the view that can be shown beside the open one, or `None` if there is none, or if it
    /// would stay empty.
    fn beside(&self) -> Option<PaneId> {
        match self.view {
            _ if self.shown.view.is_none() && self.view != ViewId::Processes => None,
            ViewId::Functions if self.difference().is_some() => Some(PaneId::DifferenceFlame),
            ViewId::Functions => Some(PaneId::PageBeside),
            ViewId::Processes => {
                let is_known = ViewId::Threads.lacking(&self.shown).is_none();
                is_known.then_some(PaneId::OwnThreads)
            }
            ViewId::Code if self.views.code.can_split() => Some(PaneId::Assembly),
            ViewId::Time => Some(PaneId::StretchFlame),
            ViewId::Tree => Some(PaneId::OtherTree),
            _ => None,
        }
    }

    /// Returns what the strip of the open view shows. Returns `None` if the view has no strip, or
    /// if the recording does not say when samples were taken.
    fn strip(&self) -> Option<Strip> {
        let recording = self.shown.source.recording.as_ref();
        let has_time = recording.is_none_or(|recording| !recording.lacks.time);
        match self.view {
            ViewId::Processes => Some(Strip::Cpus),
            ViewId::Functions if self.shown.view.is_some() && has_time => Some(Strip::Seconds),
            _ => None,
        }
    }

    /// Returns the part of the screen that belongs to the view with the keys.
    pub fn part(&self) -> Option<ViewArea> {
        let parts = self.parts()?;
        let pane = parts.pane.filter(|_| self.in_pane().is_some());
        Some(pane.map_or(parts.view, |(_, part)| part))
    }

    /// Returns what is shown beside the open view, or `None` if nothing is.
    pub fn pane(&self) -> Option<PaneId> {
        let (beside, _) = self.parts()?.pane?;
        Some(beside)
    }

    /// Returns what is shown beside the open view if that has the keys.
    pub fn in_pane(&self) -> Option<PaneId> {
        let is_there = self.pane_state.focus == Some(self.view);
        is_there.then(|| self.pane()).flatten()
    }

    /// Returns the view that has the keys.
    pub fn focus(&self) -> ViewId {
        self.in_pane().map_or(self.view, PaneId::view)
    }

    /// Shows or hides the second view. Afterwards the open view has the keys.
    pub(super) fn toggle_pane(&mut self) {
        if self.terminal.size.width < WIDTH_WIDE {
            self.lines.detail = Detail::Notice(Notice::NoPane);
            return;
        }
        self.pane_state.is_wanted = !self.pane_state.is_wanted;
        self.pane_state.focus = None;
    }

    /// Gives the keys to the view beside the open one, or back to the open view.
    pub(super) fn move_focus(&mut self) {
        let (is_there, pane) = (self.in_pane().is_some(), self.pane());
        self.focus_on(!is_there && pane.is_some());
        if pane.is_none() {
            self.lines.detail = Detail::Notice(Notice::NoPane);
        }
    }

    /// Gives the keys to the view beside the open one, or to the open view.
    pub(super) fn focus_on(&mut self, is_pane: bool) {
        self.pane_state.focus = is_pane.then_some(self.view);
    }

    /// Updates the size of the view beside the open one, and lets it follow the selection.
    pub(super) fn settle_pane(&mut self, parts: &Parts) {
        if !matches!(parts.strip, Some((Strip::Seconds, _))) {
            self.seconds.release();
        }
        let pane = parts.pane.map(|(beside, _)| beside);
        let tab = |pane: &PaneId| *pane == PaneId::of(pane.view());
        for other in PaneId::ALL.iter().filter(|pane| !tab(pane)) {
            if pane != Some(*other) {
                self.views.get_mut(*other).release();
            }
        }
        self.views.code.set_split(pane == Some(PaneId::Assembly));
        let Some((beside, part)) = parts.pane else {
            return;
        };
        match beside {
            PaneId::PageBeside => self.settle_page(part),
            PaneId::OwnThreads => self.settle_threads(part),
            PaneId::OtherTree => self.settle_tree(part),
            PaneId::StretchFlame => self.settle_stretch(part),
            PaneId::DifferenceFlame => self.settle_difference(part),
            PaneId::Assembly => self.settle_assembly(part),
            _ => {}
        }
    }

    /// Source and assembly scroll together: the side without the keys follows the side with the
    /// keys.
    fn settle_assembly(&mut self, part: ViewArea) {
        let is_led_from_here = self.in_pane().is_some();
        let (source, assembly) = (&mut self.views.code, &mut self.views.assembly);
        assembly.resize(part.width, part.height.into());
        assembly.mirror(source);
        if is_led_from_here {
            source.follow_row(assembly)
        } else {
            assembly.follow_row(source)
        }
        assembly.set_line_beside(source.line_here());
    }

    /// Selects the widest frame of the function that is selected in the table.
    fn settle_difference(&mut self, part: ViewArea) {
        let row = self
            .shown
            .comparison
            .functions
            .as_deref()
            .and_then(|diff| self.views.functions.difference.selected(diff));
        let function = row.and_then(|row| row.id);
        let flame = &mut self.views.difference_flame;
        flame.resize(part.width, part.height.into());
        flame.follow(function);
    }

    /// Shows the flame graph of the marked time, or else of the selected second, or else of the
    /// window. The map of time shows when the function that is selected in the graph ran.
    fn settle_stretch(&mut self, part: ViewArea) {
        let (time, flame) = (&mut self.views.time, &mut self.views.stretch_flame);
        let chosen = time
            .chosen()
            .map(|(start, end)| Stretch::Between(start, end));
        flame.set_stretch(Some(chosen.unwrap_or(Stretch::Window)));
        flame.resize(part.width, part.height.into());
        if let Some(function) = flame.held_function() {
            time.follow(Some(function));
        }
    }

    fn settle_tree(&mut self, part: ViewArea) {
        let owners = self.shown.report.owners.clone();
        let current = |id: FunctionId| owners.get(id.0 as usize).copied().unwrap_or(id);
        let (tree, other) = (&self.views.tree, &mut self.views.other_tree);
        other.resize(part.height.into());
        other.mirror(tree, current);
    }

    fn settle_page(&mut self, part: ViewArea) {
        let line = self.views.functions.table.selected(&self.shown.report);
        let function = line.map(|line| line.row.id);
        let beside = &mut self.views.page_beside;
        if let Some(function) = function.filter(|function| beside.function() != Some(*function)) {
            beside.open(PagePosition::new(function));
        }
        beside.resize(part.width, part.height.into());
    }

    fn settle_threads(&mut self, part: ViewArea) {
        let report = &self.shown.report;
        if let Some(line) = self.views.processes.selected(report) {
            self.views.own_threads.show_only(line.row_keys(), report);
        }
        self.views.own_threads.resize(part.height.into(), report);
    }
}
