//! Handles the keys that change the filter.

use super::{App, Effect};
use crate::action::FilterAction;
use crate::app::mode::Detail;
use crate::knobs::CountedAlone;
use crate::lists::people;
use crate::notice::Notice;
use crate::order::Order;
use profile::ProcessRow;
use profile::filter::{Action, Clause, FrameTest, Ranges, SampleTest, States, Text};
use std::sync::Arc;

impl App {
    /// Changes the filter as a key asks for. If the action is about a function, it is the selected
    /// one.
    pub(super) fn filter_by(&mut self, action: FilterAction) -> Vec<Effect> {
        match self.filter_order(action) {
            Ok(order) => self.apply_for_key(order),
            Err(why) => {
                self.lines.detail = Detail::Notice(why);
                Vec::new()
            }
        }
    }

    /// Returns the order for a key that changes the filter. The error says what is missing.
    pub(super) fn filter_order(&self, action: FilterAction) -> Result<Order, Notice> {
        if action.is_of_row() && self.is_row_gone() {
            return Err(Notice::RowGone);
        }
        let clause = match action {
            FilterAction::Focus => self.function_clause(Action::Focus),
            FilterAction::Exclude => self.function_clause(Action::Exclude),
            FilterAction::Hide => self.function_clause(Action::Hide),
            FilterAction::ExcludeRows => self.people_clause(),
            FilterAction::FoldModule => self
                .selected_function()
                .map(|(_, module)| Clause::module(Action::Hide, &module)),
            FilterAction::FoldRecursion => return Ok(self.toggled(Clause::FoldRecursion)),
            FilterAction::Internals => return Ok(self.toggled(Clause::ShowInternals)),
            FilterAction::Idle => {
                return Ok(self.toggled(Clause::Sample {
                    test: SampleTest::State(States::IDLE),
                    negated: true,
                }));
            }
            FilterAction::Kernel => return Ok(self.next_kind(FrameTest::Kernel)),
            FilterAction::User => return Ok(self.next_kind(FrameTest::User)),
        };
        clause.map(Order::Clause).ok_or(Notice::NothingSelected)
    }

    /// Returns the clause that excludes the marked processes or threads, or else the selected one.
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

    /// Returns name and module of the selected function, or `None` for rows that stand for
    /// something else.
    fn selected_function(&self) -> Option<(Arc<str>, Arc<str>)> {
        let pane = self.pane_here();
        let function = self
            .views
            .get(pane)
            .selected_function(&self.context_of(pane))?;
        function.named
    }

    /// Returns the order that removes a clause from the filter, or adds it if it is not there.
    fn toggled(&self, clause: Clause) -> Order {
        let mut filter = self.knobs.filter.clone();
        if !filter.remove(&clause) {
            filter.push(clause);
        }
        Order::Filter(filter)
    }

    /// Returns the order for the next state of kernel or user frames: shown, hidden, shown alone,
    /// and shown again.
    fn next_kind(&self, test: FrameTest) -> Order {
        let clause = |action| Clause::Stack {
            action,
            test: test.clone(),
        };
        let other = match test {
            FrameTest::Kernel => FrameTest::User,
            _ => FrameTest::Kernel,
        };
        let mut filter = self.knobs.filter.clone();
        // "Only kernel" and "only user" together would leave no frames.
        filter.remove(&Clause::Stack {
            action: Action::Only,
            test: other,
        });
        if filter.remove(&clause(Action::Hide)) {
            filter.push(clause(Action::Only));
        } else if !filter.remove(&clause(Action::Only)) {
            filter.push(clause(Action::Hide));
        }
        Order::Filter(filter)
    }
}
