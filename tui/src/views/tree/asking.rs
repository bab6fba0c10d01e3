//! Which tree is wanted, and which tree is there. The tree view and the flame graph share this.

use super::trees::Trees;
use super::{Stretch, TreeAnswer, TreeQuestion, TreeWanted};
use crate::desk::Desk;
use engine::snapshot::Snapshot;
use profile::FunctionId;
use profile::query::{CallTree, Direction, GroupBy};
use std::sync::Arc;

/// Direction and grouping of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    wanted: Direction,
    group_by: GroupBy,
}

/// The questions and answers about a tree, and what is wanted from the next one.
#[derive(Debug, Default)]
pub struct TreeDesk {
    /// The direction that is wanted. The tree on the screen may still have the other one.
    pub wanted: Direction,
    /// What is between the root and the functions.
    group_by: GroupBy,
    /// The stretch of time of the tree, which is compared with the rest of the time that is kept.
    /// `None` for the usual tree of the window.
    pub stretch: Option<Stretch>,
    /// The function to find and select in the next tree.
    pub look_for: Option<FunctionId>,
    desk: Desk<TreeWanted, TreeAnswer>,
}

impl TreeDesk {
    /// Returns the direction and the grouping that are wanted.
    pub fn look(&self) -> Look {
        Look {
            wanted: self.wanted,
            group_by: self.group_by,
        }
    }

    /// Goes back to a direction and a grouping. Returns whether the tree on the screen has them. If
    /// not, the tree is dropped, because its ways do not exist in the next one.
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

    /// Whether the first answer has not come yet.
    pub fn awaits_first(&self) -> bool {
        self.desk.awaits_first()
    }

    /// Returns the answer on the screen, or `None` before the first answer.
    pub fn shown(&self) -> Option<&Arc<TreeAnswer>> {
        self.desk.shown()
    }

    /// Returns the tree on the screen with the one it is compared with, or `None` before the first
    /// answer.
    pub fn trees(&self) -> Option<&Trees> {
        self.shown().map(|shown| &*shown.trees)
    }

    /// Returns only the tree on the screen, or `None` before the first answer.
    pub fn tree(&self) -> Option<&CallTree> {
        self.trees().map(|trees| &trees.now)
    }

    /// Returns the direction of the tree on the screen.
    pub fn direction(&self) -> Direction {
        self.tree().map_or(self.wanted, CallTree::direction)
    }

    /// Groups the next tree by process, by thread, or not at all, in turn.
    pub fn group_next(&mut self) {
        self.group_by = match self.group_by {
            GroupBy::None | GroupBy::Comm => GroupBy::Process,
            GroupBy::Process => GroupBy::Thread,
            GroupBy::Thread => GroupBy::None,
        };
    }

    /// Takes over the grouping of another tree. Returns whether that is a change.
    pub fn follow_groups(&mut self, other: &TreeDesk) -> bool {
        let before = std::mem::replace(&mut self.group_by, other.group_by);
        before != self.group_by
    }

    /// Returns the grouping of the tree on the screen.
    pub fn groups(&self) -> GroupBy {
        self.shown()
            .map_or(self.group_by, |shown| shown.key.what.group_by)
    }

    /// Returns the question that has to be asked now, if any.
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

    /// Takes an answer if it belongs to the open question. Returns whether it should be shown now,
    /// with `take_waiting`:
    /// 1. A function was searched for.
    /// 2. No tree is shown, or one of another direction, grouping or stretch of time, or from
    ///    before a knob was turned.
    /// 3. `is_calm`: rows may move.
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

    /// Puts the newest answer on the screen and returns it, or `None` if it is already there.
    pub fn take_waiting(&mut self) -> Option<Arc<TreeAnswer>> {
        self.desk.take_waiting()
    }

    /// Drops all answers and the open question. What is wanted stays.
    pub fn clear(&mut self) {
        self.desk.clear();
    }
}
