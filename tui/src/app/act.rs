//! Actions that only one view knows.

use super::{App, Effect};
use crate::action::Action;
use crate::app::mode::Detail;
use crate::knobs::Window;
use crate::notice::Notice;
use crate::order::Order;
use crate::view_id::ViewId;
use crate::views::page::PagePosition;
use crate::views::{Done, PaneId};

impl App {
    /// Lets the view that has the keys carry out an action, and follows up on its result.
    pub(super) fn act_in_view(&mut self, action: Action) -> Vec<Effect> {
        let focused = self.pane_here();
        // Actions that change a view as a whole go to the open view, even if the view beside it has
        // the keys.
        let is_for_all = matches!(action, Action::Group | Action::Layout);
        let pane = if is_for_all {
            focused.leader()
        } else {
            focused
        };
        if focused == PaneId::of(self.view) && self.views.get(pane).is_a_step(action) {
            self.remember();
        }
        // The history gets the position from before the action, with the row selected that leads
        // elsewhere.
        let before = (action == Action::Follow).then(|| self.place());
        match self.with(pane, |view, cx| view.act(cx, action)) {
            Done::Nothing | Done::Here => {}
            Done::Said(notice) => self.lines.detail = Detail::Notice(notice),
            Done::OpenPage(function) => {
                self.history.leave(before.unwrap_or_else(|| self.place()));
                self.views.page.open(PagePosition::new(function));
                self.open(ViewId::Page);
            }
            Done::OpenCode(function) => self.go_to_code_of(function),
            Done::OpenCodeNamed { name, module } => {
                let mut rows = self.shown.report.functions.iter();
                let named =
                    rows.find(|row| row.name == name && Some(&row.module) == module.as_ref());
                match named.map(|row| row.id) {
                    Some(function) => self.go_to_code_of(function),
                    None => self.lines.detail = Detail::Notice(Notice::Unsampled(name.to_string())),
                }
            }
            Done::UseTime { start_ns, end_ns } => {
                let window = Window::Between { start_ns, end_ns };
                let said = self.apply(Order::Window(window));
                self.lines.detail =
                    Detail::Notice(said.map_or_else(|why| why, |_| Notice::TimeUsed));
            }
            Done::Copy(text) => {
                self.lines.detail = Detail::Notice(Notice::Copied(text.clone()));
                return vec![Effect::Copy(text)];
            }
            Done::Edit(path, line) => return vec![Effect::Edit(path, line)],
        }
        Vec::new()
    }
}
