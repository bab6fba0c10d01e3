//! The selected and marked rows, and narrowing the scope to them.

use super::{App, Effect};
use crate::action::Action;
use crate::app::mode::Detail;
use crate::notice::Notice;
use crate::order::Order;
use crate::views::PaneId;
use profile::FunctionId;

impl App {
    /// Narrows the scope to the marked processes or threads, or else to the selected one.
    pub(super) fn narrow(&mut self) -> Vec<Effect> {
        let pane = self.pane_here();
        let cx = self.context_of(pane);
        let view = self.views.get(pane);
        let refused = match view.narrowing(&cx) {
            Some(narrowing) if view.offers(&cx, Action::Narrow) => {
                return self.apply_for_key(Order::Narrow(narrowing));
            }
            Some(_) => Notice::RowGone,
            None => Notice::NothingSelected,
        };
        self.lines.detail = Detail::Notice(refused);
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

    /// Returns the selected function, or `None` if there is none or it has no samples any more.
    pub(super) fn function_here(&self) -> Option<FunctionId> {
        let pane = self.pane_here();
        self.views
            .get(pane)
            .selected_function(&self.context_of(pane))?
            .id
    }

    /// Whether the selected function has no samples any more, so that its row is shown only because
    /// it is selected.
    pub(super) fn is_row_gone(&self) -> bool {
        let pane = self.pane_here();
        let view = self.views.get(pane);
        let function = view.selected_function(&self.context_of(pane));
        function.is_some_and(|function| function.named.is_some() && function.id.is_none())
    }
}
