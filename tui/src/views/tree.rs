//! The *call tree*: callees below their callers, or the other way round. The thread that answers
//! questions builds the trees. This module keeps which rows are open and selected.

mod asking;
pub mod draw;
mod paths;
mod question;
mod rows;
pub mod runs;
mod side;
mod trees;
mod view;

pub use asking::{Look, TreeDesk};
pub use question::{Stretch, TreeAnswer, TreeQuestion, TreeWanted};
pub use rows::{Fold, Joint, SMALL_PERCENT, TreeRow, What};

use crate::action::FoldAction;
use crate::lists::find;
use crate::lists::find::Find;
use crate::lists::motion::Motion;
use engine::snapshot::Snapshot;
use profile::query::{Direction, GroupBy, Node, NodeKind};
use profile::{FrameId, Function};
use side::{Side, SidePosition};
use std::sync::Arc;
pub use trees::Trees;

/// The state of a call tree: the tree, and the open and selected rows in each direction.
#[derive(Debug, Default)]
pub struct Tree {
    top_down: Side,
    bottom_up: Side,
    desk: TreeDesk,
    find: Option<Find>,
    /// Number of rows that match the search.
    found: usize,
    height: usize,
    /// The function that was last selected in the tree beside this one.
    followed: Option<FrameId>,
}

/// A position in a call tree. The history keeps it for steps back.
#[derive(Debug, Clone)]
pub struct TreePosition {
    look: Look,
    top_down: SidePosition,
    bottom_up: SidePosition,
}

impl Tree {
    /// Returns the present position.
    pub fn place(&self) -> TreePosition {
        TreePosition {
            look: self.desk.look(),
            top_down: self.top_down.place(),
            bottom_up: self.bottom_up.place(),
        }
    }

    /// Goes back to a position. Until a tree of its direction and grouping arrives, the position is
    /// searched for in the present one.
    pub fn return_to(&mut self, place: TreePosition) {
        self.top_down.return_to(place.top_down);
        self.bottom_up.return_to(place.bottom_up);
        let is_shown = self.desk.return_to(place.look);
        if is_shown {
            self.with_trees(|side, trees| side.rebuild(trees));
        }
    }

    /// Returns the tree on the screen and the one it is compared with, or `None` before the first
    /// answer.
    pub fn trees(&self) -> Option<&Trees> {
        self.desk.trees()
    }

    /// Returns whether callees are below their callers, or callers below their callees.
    pub fn direction(&self) -> Direction {
        self.desk.direction()
    }

    /// Returns the rows and the selection of the direction on the screen.
    pub fn side(&self) -> &Side {
        match self.direction() {
            Direction::TopDown => &self.top_down,
            Direction::BottomUp => &self.bottom_up,
        }
    }

    fn side_mut(&mut self) -> &mut Side {
        match self.direction() {
            Direction::TopDown => &mut self.top_down,
            Direction::BottomUp => &mut self.bottom_up,
        }
    }

    /// Returns the selected row, or `None` if there are no rows.
    pub fn selected(&self) -> Option<&TreeRow> {
        self.side().selected()
    }

    /// Returns the name of a row, or `None` for a row that sums up small ones.
    pub fn name(&self, row: &TreeRow) -> Option<Arc<str>> {
        match row.what {
            What::Place(place) => match &row.function {
                Some(function) => Some(Arc::clone(&function.name)),
                None => Some(self.trees()?.name(&place)),
            },
            What::Rest(_) => None,
        }
    }

    /// Returns the names of the frames that are folded into a row, the outermost first.
    pub fn hidden_names(&self, row: &TreeRow) -> Vec<Arc<str>> {
        let Some(trees) = self.trees() else {
            return Vec::new();
        };
        row.run.iter().map(|place| trees.name(place)).collect()
    }

    /// Returns the function of a row, or `None` for the root, groups, and rows that sum up small
    /// ones.
    pub fn function(&self, row: &TreeRow) -> Option<Arc<Function>> {
        let ask = || match row.what {
            What::Place(place) => Some(Arc::new(self.trees()?.function(&place)?)),
            What::Rest(_) => None,
        };
        row.function.clone().or_else(ask)
    }

    /// Returns the question for the tree that is wanted, or `None` if it was asked already.
    pub fn question(&mut self, snapshot: &Snapshot) -> Option<TreeQuestion> {
        self.desk.question(snapshot)
    }

    /// Takes an answer, and returns whether it is shown now. It is if `is_calm`, or if the screen
    /// waits for it; see [`TreeDesk::receive`].
    pub fn receive(&mut self, answer: Arc<TreeAnswer>, is_calm: bool) -> bool {
        self.desk.receive(answer, is_calm) && self.take_waiting()
    }

    /// Shows the answer that `receive` kept, with the same rows open and selected. If a function
    /// was searched for, it is selected. Returns false if there was no answer.
    pub fn take_waiting(&mut self) -> bool {
        let before = self.desk.shown().map(|shown| Arc::clone(&shown.trees));
        let Some(answer) = self.desk.take_waiting() else {
            return false;
        };
        let is_same = before.is_some_and(|trees| Arc::ptr_eq(&trees, &answer.trees));
        let height = self.height;
        let side = self.side_mut();
        side.resize(height);
        if !is_same {
            side.take(&answer.trees, |id| answer.view.function_of(id));
        }
        if let Some(way) = answer.way_to_found() {
            side.select_way(way, &answer.trees);
        }
        self.count_found();
        true
    }

    /// Frees the tree and the rows when the view is left. What is open and selected stays.
    pub fn release(&mut self) {
        self.desk.clear();
        self.top_down.release();
        self.bottom_up.release();
    }

    /// Forgets the stored rows of both directions. If the next tree does not have the selected row,
    /// it is not shown any more.
    pub fn forget_last_seen(&mut self) {
        self.top_down.forget_last_seen();
        self.bottom_up.forget_last_seen();
    }

    /// Sets how many lines fit on the screen.
    pub fn resize(&mut self, height: usize) {
        self.height = height;
        self.side_mut().resize(height);
    }

    /// Asks for the tree of the other direction. The selected function is searched for in it,
    /// unless it is already the selected one there.
    pub fn invert(&mut self) {
        let there = match self.desk.wanted {
            Direction::TopDown => &self.bottom_up,
            Direction::BottomUp => &self.top_down,
        };
        let held = self.side().held_function();
        self.desk.look_for = held.filter(|_| there.held_function() != held);
        self.desk.wanted = opposite(self.desk.wanted);
    }

    /// Asks for the tree with the next grouping: by process, by thread, or none. The selected
    /// function is searched for in it.
    pub fn group(&mut self) {
        self.desk.look_for = self.side().held_function();
        self.desk.group_next();
        self.top_down.start_anew();
        self.bottom_up.start_anew();
    }

    /// Returns what the tree on the screen has between the root and the functions.
    pub fn groups(&self) -> GroupBy {
        self.desk.groups()
    }

    /// Finds a function in the next tree and chooses the direction: the first rows of a bottom-up
    /// tree are the functions that were on top of a stack, so others are searched for top-down.
    pub fn look_for(&mut self, function: FrameId, was_on_top: bool) {
        self.desk.wanted = if was_on_top {
            Direction::BottomUp
        } else {
            Direction::TopDown
        };
        self.desk.look_for = Some(function);
    }

    /// Finds a function in the next tree and selects it, without changing the direction.
    pub fn link(&mut self, function: FrameId) {
        self.desk.look_for = Some(function);
    }

    /// Makes this the tree of the opposite direction to `other`, with the same grouping, and
    /// selects the function that is selected there. `current` returns the present id of a function.
    pub fn mirror(&mut self, other: &Tree, current: impl Fn(FrameId) -> FrameId) {
        let wanted = opposite(other.desk.wanted);
        if self.desk.wanted != wanted {
            self.desk.wanted = wanted;
            self.followed = None;
        }
        if self.desk.follow_groups(&other.desk) {
            self.top_down.start_anew();
            self.bottom_up.start_anew();
            self.followed = None;
        }
        let Some(function) = other.selected().and_then(TreeRow::function_id) else {
            return;
        };
        let function = current(function);
        if self.followed.map(current) != Some(function) {
            self.followed = Some(function);
            self.show(function);
        }
    }

    /// Selects a function: immediately if it is directly below the root, else in the next answer.
    fn show(&mut self, function: FrameId) {
        let is_it =
            |node: &Node| matches!(node.kind, NodeKind::Function { id, .. } if id == function);
        let shown = self
            .desk
            .shown()
            .filter(|_| self.direction() == self.desk.wanted);
        let Some(shown) = shown.cloned() else {
            return self.link(function);
        };
        let trees = &shown.trees;
        let mut first = trees.first().iter().filter_map(|place| place.now);
        match first.find(is_it) {
            Some(node) => {
                self.desk.look_for = None;
                self.side_mut().select_way(&[node.kind], trees);
                self.count_found();
            }
            None => self.link(function),
        }
    }

    /// Moves the selection over the rows that are not hidden in closed ones.
    pub fn go(&mut self, motion: Motion) {
        self.with_trees(|side, trees| side.go(motion, trees));
    }

    /// Selects the row on a line of the body, counted from 0 at the top. Lines below the last row
    /// are ignored.
    pub fn select_line(&mut self, line: usize) {
        self.with_trees(|side, trees| side.select_line(line, trees));
    }

    /// Opens or closes rows, as the action says: the selected one, or all.
    pub fn fold(&mut self, action: FoldAction) {
        self.with_trees(|side, trees| match action {
            FoldAction::Open => side.open(trees),
            FoldAction::Close => side.close(trees),
            FoldAction::Toggle => side.toggle(trees),
            FoldAction::OpenAll => side.open_all(trees),
            FoldAction::CloseAll => side.close_all(trees),
        });
    }

    /// Opens the hot path below the selected row, and returns its number of steps.
    pub fn open_hot_path(&mut self) -> u32 {
        let depth = |tree: &Self| tree.selected().map_or(0, |row| row.depth);
        let before = depth(self);
        self.with_trees(Side::open_hot_path);
        depth(self).saturating_sub(before)
    }

    fn with_trees(&mut self, act: impl FnOnce(&mut Side, &Trees)) {
        if let Some(shown) = self.desk.shown().cloned() {
            act(self.side_mut(), &shown.trees);
            self.count_found();
        }
    }

    /// Returns the pattern of the search, or `None` if there is no search.
    pub fn find(&self) -> Option<&Find> {
        self.find.as_ref()
    }

    /// Returns how many rows match the search. Rows hidden in closed ones are not counted.
    pub fn found(&self) -> usize {
        self.found
    }

    /// Starts a search for a pattern, or ends it with `None`. The selection stays.
    pub fn set_find(&mut self, find: Option<Find>) {
        self.find = find;
        self.count_found();
    }

    /// Whether the search matches a row, by its name or that of a frame folded into it. False if
    /// there is no search.
    pub fn is_found(&self, row: &TreeRow) -> bool {
        let Some(find) = &self.find else {
            return false;
        };
        let is_hidden = || self.hidden_names(row).iter().any(|name| find.matches(name));
        self.name(row).is_some_and(|name| find.matches(&name)) || is_hidden()
    }

    fn count_found(&mut self) {
        self.found = match self.find {
            Some(_) => self.found_rows().len(),
            None => 0,
        };
    }

    fn found_rows(&self) -> Vec<usize> {
        let rows = self.side().rows().iter().enumerate();
        rows.filter(|(_, row)| self.is_found(row))
            .map(|(at, _)| at)
            .collect()
    }

    /// Returns the index of the frame folded into the selected row that matches the search. Returns
    /// `None` if the row's own name matches, or none does.
    fn found_in_run(&self) -> Option<usize> {
        let (row, find) = (self.selected()?, self.find.as_ref()?);
        if self.name(row).is_some_and(|name| find.matches(&name)) {
            return None;
        }
        let names = self.hidden_names(row);
        names.iter().position(|name| find.matches(name))
    }

    /// Selects the next match below the selected row, or above it if `down` is false, and goes on
    /// at the other end. With `including` and `down`, the selected row itself may be the match. If
    /// a folded frame matches, its run is unfolded. Returns the position of the match among all
    /// matches, counted from 1, or `None` if there is none.
    pub fn select_found(&mut self, down: bool, including: bool) -> Option<usize> {
        let found = self.found_rows();
        let here = self.side().index();
        let place = find::next(&found, here, down, including)?;
        let at = *found.get(place)?;
        self.with_trees(|side, trees| side.select(at, trees));
        if let Some(frame) = self.found_in_run() {
            self.with_trees(|side, trees| side.unfold_to(frame, trees));
        }
        Some(place + 1)
    }
}

fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::TopDown => Direction::BottomUp,
        Direction::BottomUp => Direction::TopDown,
    }
}
