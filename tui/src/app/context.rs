//! Creates the [context](crate::context::Context) in which views are drawn and handle actions.

use super::App;
use crate::context::Context;
use crate::views::{PaneId, View};
use profile::diff::Diff;

impl App {
    /// Returns the context of the open view.
    pub fn context(&self) -> Context<'_> {
        self.context_of(PaneId::of(self.view))
    }

    /// Returns the context of the view in a pane.
    pub fn context_of(&self, pane: PaneId) -> Context<'_> {
        Context {
            shown: &self.shown,
            knobs: &self.knobs,
            keymap: &self.input.keymap,
            open: self.view,
            focus: self.focus(),
            is_beside: pane != PaneId::of(self.view),
            has_keys: pane == self.pane_here(),
            is_order_held: self.is_order_held(),
            own_pid: self.own_pid_here(),
        }
    }

    /// Returns the comparison with the baseline if it is shown in place of the functions.
    pub fn difference(&self) -> Option<&Diff> {
        Context::difference_in(&self.shown, &self.knobs, self.view)
    }

    /// Returns the comparison with the baseline if it is shown and has the keys.
    pub fn difference_here(&self) -> Option<&Diff> {
        self.difference().filter(|_| self.in_pane().is_none())
    }

    /// Calls `act` with the view of a pane and its context.
    pub(super) fn with<R>(
        &mut self,
        pane: PaneId,
        act: impl FnOnce(&mut dyn View, &Context<'_>) -> R,
    ) -> R {
        let (focus, has_keys) = (self.focus(), self.pane_here() == pane);
        let cx = Context {
            shown: &self.shown,
            knobs: &self.knobs,
            keymap: &self.input.keymap,
            open: self.view,
            focus,
            is_beside: pane != PaneId::of(self.view),
            has_keys,
            is_order_held: self.is_order_held(),
            own_pid: self.own_pid_here(),
        };
        act(self.views.get_mut(pane), &cx)
    }

    /// Calls `act` with the view that has the keys and its context.
    pub(super) fn with_focused<R>(
        &mut self,
        act: impl FnOnce(&mut dyn View, &Context<'_>) -> R,
    ) -> R {
        self.with(self.pane_here(), act)
    }

    /// Returns our own pid if the processes of this machine are shown live. In a recording, and on
    /// another machine, that pid belongs to another process.
    fn own_pid_here(&self) -> Option<u32> {
        let is_live = self.shown.source.recording.is_none();
        is_live.then_some(self.own_pid)
    }
}
