//! The *views*: each has a folder with its state, its questions to the profile, its texts and its
//! drawing.
//!
//! To add a view, write a folder here that implements [`View`] and [`Draw`], a line in the list
//! below, an entry in `view_id.rs`, and its rows in the keymap.

pub mod code;
/// The trait [`Draw`]: what the screen needs of a view.
mod draw;
pub mod flame;
pub mod functions;
pub mod health;
pub mod page;
/// What tables of processes and tables of threads have in common.
pub mod people;
pub mod probes;
pub mod processes;
pub mod threads;
pub mod time;
pub mod tree;
/// The trait [`View`]: what the app needs of a view.
mod view;

pub use draw::{Canvas, Draw};
pub use view::{Done, FunctionHere, View};

use crate::lists::table::Table;
use crate::view_id::ViewId;
use profile::{ProcessRow, ThreadRow};

/// Defines [`PaneId`] and [`Views`] from one list.
macro_rules! panes {
    ($($(#[$doc:meta])* $pane:ident: $field:ident, $state:ty, $view:ident;)*) => {
        /// A *pane* is a place where a view is shown: in a tab of its own, or beside another view.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum PaneId {
            $($(#[$doc])* $pane,)*
        }

        impl PaneId {
            /// Every pane.
            pub const ALL: &[PaneId] = &[$(PaneId::$pane),*];

            /// Returns the view that the pane shows. The keys of that view work in the pane.
            pub fn view(self) -> ViewId {
                match self {
                    $(PaneId::$pane => ViewId::$view,)*
                }
            }
        }

        /// The state of every pane. It is kept when another view is opened.
        #[derive(Debug, Default)]
        pub struct Views {
            $($(#[$doc])* pub $field: $state,)*
        }

        impl Views {
            /// Returns the state of a pane.
            pub fn get(&self, pane: PaneId) -> &dyn View {
                match pane {
                    $(PaneId::$pane => &self.$field,)*
                }
            }

            /// Returns the state of a pane, to be changed.
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

// The first pane of each view is the one in its tab.
panes! {
    Functions: functions, functions::Functions, Functions;
    Tree: tree, tree::Tree, Tree;
    /// Beside the call tree: the tree in the other direction, with callers in place of callees.
    OtherTree: other_tree, tree::Tree, Tree;
    Flame: flame, flame::Flame, Flame;
    /// Below the map of time: the flame graph of the stretch that is marked there.
    StretchFlame: stretch_flame, flame::Flame, Flame;
    /// Beside the list of functions that differ from the baseline: the flame graph of that
    /// difference.
    DifferenceFlame: difference_flame, flame::Flame, Flame;
    Page: page, page::Page, Page;
    /// Beside the functions: the page of the selected one.
    PageBeside: page_beside, page::Page, Page;
    Processes: processes, Table<ProcessRow>, Processes;
    Threads: threads, Table<ThreadRow>, Threads;
    /// Beside the processes: the threads of the selected process, or of all processes in the
    /// selected group.
    OwnThreads: own_threads, Table<ThreadRow>, Threads;
    Time: time, time::Time, Time;
    Code: code, code::Code, Code;
    /// Beside the source text of a function: its instructions.
    Assembly: assembly, code::Code, Code;
    Health: health, health::Health, Health;
    Probes: probes, probes::Probes, Probes;
}

impl PaneId {
    /// Returns the pane in which a view is shown when its tab is opened.
    pub fn of(view: ViewId) -> PaneId {
        let first = Self::ALL.iter().find(|pane| pane.view() == view);
        *first.expect("every view is in the list of panes")
    }

    /// Returns the pane that handles actions which are meant for a whole view. Where two panes show
    /// one view, it is the pane in the tab.
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
