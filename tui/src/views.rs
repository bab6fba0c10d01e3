//! The *views*: a folder for each, with its state, its questions to the profile, its texts and
//! its drawing.
//!
//! To add one: a folder here that implements [`View`] and [`Draw`], a line in the
//! list below, its entry in `view_id.rs`, and its rows in the keymap.

pub mod code;
/// What the screen needs of a view.
mod draw;
pub mod flame;
pub mod functions;
pub mod health;
pub mod page;
/// How tables of processes and of threads behave.
pub mod people;
pub mod probes;
pub mod processes;
pub mod threads;
pub mod time;
pub mod tree;
/// What the app needs of a view.
mod view;

pub use draw::{Canvas, Draw};
pub use view::{Done, FunctionHere, View};

use crate::lists::table::Table;
use crate::view_id::ViewId;
use profile::{ProcessRow, ThreadRow};

/// Makes [`PaneId`] and [`Views`] from one list.
macro_rules! panes {
    ($($(#[$doc:meta])* $pane:ident: $field:ident, $state:ty, $view:ident;)*) => {
        /// Where a view is shown: with a tab of its own, or beside another view.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum PaneId {
            $($(#[$doc])* $pane,)*
        }

        impl PaneId {
            pub const ALL: &[PaneId] = &[$(PaneId::$pane),*];

            /// The view that the pane shows; the keys of that view work in the pane.
            pub fn view(self) -> ViewId {
                match self {
                    $(PaneId::$pane => ViewId::$view,)*
                }
            }
        }

        /// The state of every pane. Switching views forgets nothing.
        #[derive(Debug, Default)]
        pub struct Views {
            $($(#[$doc])* pub $field: $state,)*
        }

        impl Views {
            /// Returns the state of a pane, whatever type of view it shows.
            pub fn get(&self, pane: PaneId) -> &dyn View {
                match pane {
                    $(PaneId::$pane => &self.$field,)*
                }
            }

            /// Returns the state of a pane to be changed: to move its selection, pass it an
            /// answer.
            pub fn get_mut(&mut self, pane: PaneId) -> &mut dyn View {
                match pane {
                    $(PaneId::$pane => &mut self.$field,)*
                }
            }

            /// Returns the same state as [`Views::get`], for the code that draws it.
            pub fn drawn(&self, pane: PaneId) -> &dyn Draw {
                match pane {
                    $(PaneId::$pane => &self.$field,)*
                }
            }
        }
    };
}

// The first pane of a view is the one with the tab.
panes! {
    Functions: functions, functions::Functions, Functions;
    Tree: tree, tree::Tree, Tree;
    /// Beside the call tree: the tree in the other direction, callers for callees.
    OtherTree: other_tree, tree::Tree, Tree;
    Flame: flame, flame::Flame, Flame;
    /// Below the map of time: the flame graph of what is marked there.
    StretchFlame: stretch_flame, flame::Flame, Flame;
    /// Beside the list of functions that differ from the baseline: the flame graph of that
    /// difference.
    DifferenceFlame: difference_flame, flame::Flame, Flame;
    Page: page, page::Page, Page;
    /// Beside the functions: the page of the selected one.
    PageBeside: page_beside, page::Page, Page;
    Processes: processes, Table<ProcessRow>, Processes;
    Threads: threads, Table<ThreadRow>, Threads;
    /// Beside the processes: the threads of the selected one, or of all in the selected group.
    OwnThreads: own_threads, Table<ThreadRow>, Threads;
    Time: time, time::Time, Time;
    Code: code, code::Code, Code;
    /// Beside the source text of a function: its instructions.
    Assembly: assembly, code::Code, Code;
    Health: health, health::Health, Health;
    Probes: probes, probes::Probes, Probes;
}

impl PaneId {
    /// The pane in which a view is shown when its tab is opened.
    pub fn of(view: ViewId) -> PaneId {
        let first = Self::ALL.iter().find(|pane| pane.view() == view);
        *first.expect("every view is in the list of panes")
    }

    /// The pane that handles actions which are meant for a whole view: where two panes show one
    /// view, the pane with the tab.
    pub fn leader(self) -> PaneId {
        match self {
            PaneId::OtherTree => PaneId::Tree,
            PaneId::Assembly => PaneId::Code,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_view_has_a_pane_with_its_tab() {
        for view in ViewId::ALL.into_iter().chain([ViewId::Page]) {
            assert_eq!(PaneId::of(view).view(), view);
        }
    }
}
