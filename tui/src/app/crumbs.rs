//! The path in the header, from the whole machine to what is shown. Its steps are called *crumbs*;
//! a click on one goes back there.

use super::App;
use crate::app::mode::Detail;
use crate::notice::Notice;
use crate::view_id::ViewId;
use crate::views::PaneId;
use engine::snapshot::Run;
use std::sync::Arc;

/// One step of the path in the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crumb {
    /// The whole machine, even if only a part of it is sampled.
    System,
    /// What is sampled, if that is not the whole machine.
    Sampled,
    /// A narrowing of the scope. The first one has number 1.
    Narrowed(usize),
    /// The function whose page or code is shown.
    Function,
}

impl App {
    /// Returns the steps of the path, each with its words. The words contain names of processes,
    /// which have to be sanitized before they are drawn.
    pub fn crumbs(&self) -> Vec<(Crumb, Arc<str>)> {
        let mut crumbs = vec![(Crumb::System, Run::WHOLE_MACHINE.into())];
        if !self.shown.run.is_of_whole_machine() {
            crumbs.push((Crumb::Sampled, Arc::clone(&self.shown.run.scope)));
        }
        let narrowed = (1..).map(Crumb::Narrowed).zip(&self.knobs.scope);
        crumbs.extend(narrowed.map(|(crumb, part)| (crumb, Arc::clone(&part.words))));
        let function = self.views.get(PaneId::of(self.view)).about();
        crumbs.extend(function.map(|name| (Crumb::Function, name)));
        crumbs
    }

    /// Goes back to a step of the path. From the page or the code of a function it goes to the list
    /// of functions.
    pub(super) fn go_to_crumb(&mut self, crumb: Crumb) {
        let steps = match crumb {
            Crumb::Narrowed(steps) => steps,
            Crumb::Sampled | Crumb::System => 0,
            Crumb::Function => return,
        };
        if crumb == Crumb::System && !self.shown.run.is_of_whole_machine() {
            // Nothing but this target was sampled, so nothing else can be shown.
            let sampled = Arc::clone(&self.shown.run.scope);
            self.lines.detail = Detail::Notice(Notice::OnlySampled(sampled));
        }
        let is_function = matches!(self.view, ViewId::Page | ViewId::Code);
        if steps >= self.knobs.scope.len() && !is_function {
            return;
        }
        self.remember();
        let before = self.knobs.clone();
        self.knobs.scope.truncate(steps);
        if is_function {
            self.open(ViewId::Functions);
        }
        self.after_turning(&before);
    }
}
