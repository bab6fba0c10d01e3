//! Leads from a function to the machines that it runs on.

use super::App;
use crate::action::FilterAction;
use crate::app::mode::Detail;
use crate::lists::groups::By;
use crate::lists::people;
use crate::notice::Notice;
use crate::order::Order;
use crate::view_id::ViewId;
use std::sync::Arc;

impl App {
    /// Counts only stacks with the selected function, and opens the processes, grouped by machine.
    /// Both together are one step in the history.
    pub(super) fn open_machines(&mut self) {
        let notice = match self.filter_order(FilterAction::Focus) {
            Ok(Order::Clause(clause)) if self.are_several_machines() => {
                self.remember();
                let before = self.knobs.clone();
                self.knobs.filter.push(clause);
                let report = Arc::clone(&self.shown.report);
                self.views.processes.group_by(By::Host, &report);
                self.open(ViewId::Processes);
                self.after_turning(&before);
                Notice::FilterSet
            }
            Ok(_) => Notice::OneMachine,
            Err(why) => why,
        };
        self.lines.detail = Detail::Notice(notice);
    }

    /// Whether what is counted is of several machines.
    fn are_several_machines(&self) -> bool {
        people::are_of_several_machines(&self.shown.report)
    }
}
