//! Which tree is wanted and which there is: the same for the tree view and for
//! the flame graph.

use super::trees::Trees;
use super::{Stretch, TreeAnswer, TreeQuestion, TreeWanted};
use crate::desk::Desk;
use engine::snapshot::Snapshot;
use profile::FunctionId;
use profile::query::{CallTree, Direction, GroupBy};
use std::sync::Arc;

/// Which way round, and by which groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    wanted: Direction,
    group_by: GroupBy,
}

#[derive(Debug, Default)]
pub struct TreeDesk {
    /// What is wanted; the shown tree may not be there yet.
    pub wanted: Direction,
    /// What is between the root and the functions.
    group_by: GroupBy,
    /// Only that stretch of time, against the rest.
    pub stretch: Option<Stretch>,
    /// The function to find and select in the next tree.
    pub look_for: Option<FunctionId>,
    desk: Desk<TreeWanted, TreeAnswer>,
}

impl TreeDesk {
    pub fn look(&self) -> Look {
        Look {
            wanted: self.wanted,
            group_by: self.group_by,
        }
    }

    /// Whether what is on the screen looks like that; else it goes, with its ways.
    pub fn return_to(&mut self, look: Look) -> bool {
        (self.wanted, self.group_by) = (look.wanted, look.group_by);
        self.look_for = None;
        let is_it = |shown: &Arc<TreeAnswer>| {
            let what = shown.key.what;
            (what.direction, what.group_by) == (look.wanted, look.group_by)
        };
        let is_shown = self.shown().is_some_and(is_it);
        if !is_shown {
            self.clear();
        }
        is_shown
    }

    /// What is on the screen.
    pub fn shown(&self) -> Option<&Arc<TreeAnswer>> {
        self.desk.shown()
    }

    pub fn trees(&self) -> Option<&Trees> {
        self.shown().map(|shown| &*shown.trees)
    }

    pub fn tree(&self) -> Option<&CallTree> {
        self.trees().map(|trees| &trees.now)
    }

    /// Of the tree on the screen.
    pub fn direction(&self) -> Direction {
        self.tree().map_or(self.wanted, CallTree::direction)
    }

    /// Groups the next tree by process, by thread, or all together.
    pub fn group_next(&mut self) {
        self.group_by = match self.group_by {
            GroupBy::None | GroupBy::Comm => GroupBy::Process,
            GroupBy::Process => GroupBy::Thread,
            GroupBy::Thread => GroupBy::None,
        };
    }

    /// Groups by the same as another tree; true if it was not so before.
    pub fn follow_groups(&mut self, other: &TreeDesk) -> bool {
        let before = std::mem::replace(&mut self.group_by, other.group_by);
        before != self.group_by
    }

    /// Of the tree on the screen.
    pub fn groups(&self) -> GroupBy {
        self.shown()
            .map_or(self.group_by, |shown| shown.key.what.group_by)
    }

    /// What has to be asked now.
    pub fn question(&mut self, snapshot: &Snapshot) -> Option<TreeQuestion> {
        let wanted = TreeWanted {
            direction: self.wanted,
            group_by: self.group_by,
            stretch: self.stretch,
            look_for: self.look_for,
        };
        let ask = self.desk.ask(snapshot, wanted)?;
        Some(TreeQuestion::new(ask, self.shown()))
    }

    /// Takes an answer. True if it may be put on the screen now: the screen
    /// waits for it, or nobody is looking.
    pub fn receive(&mut self, answer: Arc<TreeAnswer>, is_calm: bool) -> bool {
        let (key, wanted) = (answer.key, answer.key.what);
        if !self.desk.receive(&key, wanted.without_search(), answer) {
            return false;
        }
        self.look_for = None;
        let is_another = |shown: &Arc<TreeAnswer>| {
            let what = shown.key.what;
            (what.direction, what.group_by) != (self.wanted, self.group_by)
                || what.stretch != wanted.stretch
                || shown.key.turn != key.turn
        };
        let is_awaited = wanted.look_for.is_some() || self.shown().is_none_or(is_another);
        is_awaited || is_calm
    }

    pub fn take_waiting(&mut self) -> Option<Arc<TreeAnswer>> {
        self.desk.take_waiting()
    }

    pub fn clear(&mut self) {
        self.desk.clear();
    }
}
