//! The *call tree*, callees under callers or the other way round. Trees come
//! from a thread of their own and answer questions that are asked here; what is
//! open and selected belongs to the screen.

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
use side::{Side, SidePlace};
use std::sync::Arc;
pub use trees::Trees;

#[derive(Debug, Default)]
pub struct Tree {
    top_down: Side,
    bottom_up: Side,
    desk: TreeDesk,
    find: Option<Find>,
    found: usize,
    height: usize,
    /// Selected because it is so in the tree that this one stands beside.
    followed: Option<FrameId>,
}

/// The tree as it was left.
#[derive(Debug, Clone)]
pub struct Place {
    look: Look,
    top_down: SidePlace,
    bottom_up: SidePlace,
}

impl Tree {
    pub fn place(&self) -> Place {
        Place {
            look: self.desk.look(),
            top_down: self.top_down.place(),
            bottom_up: self.bottom_up.place(),
        }
    }

    /// Goes back to a place. Until its tree is there again, the place is looked for in the
    /// present one.
    pub fn return_to(&mut self, place: Place) {
        self.top_down.return_to(place.top_down);
        self.bottom_up.return_to(place.bottom_up);
        let is_shown = self.desk.return_to(place.look);
        if is_shown {
            self.with_trees(|side, trees| side.rebuild(trees));
        }
    }

    /// What is on the screen.
    pub fn trees(&self) -> Option<&Trees> {
        self.desk.trees()
    }

    pub fn direction(&self) -> Direction {
        self.desk.direction()
    }

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

    pub fn selected(&self) -> Option<&TreeRow> {
        self.side().selected()
    }

    /// What the row is called; `None` for the small ones.
    pub fn name(&self, row: &TreeRow) -> Option<Arc<str>> {
        match row.what {
            What::Place(place) => match &row.function {
                Some(function) => Some(Arc::clone(&function.name)),
                None => Some(self.trees()?.name(&place)),
            },
            What::Rest(_) => None,
        }
    }

    /// The frames that a row stands for besides its own, the outermost first.
    pub fn hidden_names(&self, row: &TreeRow) -> Vec<Arc<str>> {
        let Some(trees) = self.trees() else {
            return Vec::new();
        };
        row.run.iter().map(|place| trees.name(place)).collect()
    }

    /// `None` for rows that are none.
    pub fn function(&self, row: &TreeRow) -> Option<Arc<Function>> {
        let ask = || match row.what {
            What::Place(place) => Some(Arc::new(self.trees()?.function(&place)?)),
            What::Rest(_) => None,
        };
        row.function.clone().or_else(ask)
    }

    /// What has to be asked now.
    pub fn question(&mut self, snapshot: &Snapshot) -> Option<TreeQuestion> {
        self.desk.question(snapshot)
    }

    /// Takes an answer. True if another tree is on the screen.
    pub fn receive(&mut self, answer: Arc<TreeAnswer>, is_calm: bool) -> bool {
        self.desk.receive(answer, is_calm) && self.take_waiting()
    }

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

    /// The view was left: its tree would hold memory for nothing.
    pub fn release(&mut self) {
        self.desk.clear();
        self.top_down.release();
        self.bottom_up.release();
    }

    pub fn resize(&mut self, height: usize) {
        self.height = height;
        self.side_mut().resize(height);
    }

    /// The other way round; what was selected is looked for there.
    pub fn invert(&mut self) {
        let there = match self.desk.wanted {
            Direction::TopDown => &self.bottom_up,
            Direction::BottomUp => &self.top_down,
        };
        let held = self.side().held_function();
        self.desk.look_for = held.filter(|_| there.held_function() != held);
        self.desk.wanted = opposite(self.desk.wanted);
    }

    /// Another level between the root and the functions, or none; what was
    /// selected is looked for there.
    pub fn group(&mut self) {
        self.desk.look_for = self.side().held_function();
        self.desk.group_next();
        self.top_down.start_anew();
        self.bottom_up.start_anew();
    }

    /// What is between the root and the functions on the screen.
    pub fn groups(&self) -> GroupBy {
        self.desk.groups()
    }

    /// Finds a function in the next tree. What never was on top of a stack is
    /// not among the first rows of a bottom-up tree.
    pub fn look_for(&mut self, function: FrameId, was_on_top: bool) {
        self.desk.wanted = match was_on_top {
            true => Direction::BottomUp,
            false => Direction::TopDown,
        };
        self.desk.look_for = Some(function);
    }

    /// Finds a function in the next tree, whichever way round that is.
    pub fn link(&mut self, function: FrameId) {
        self.desk.look_for = Some(function);
    }

    /// The other way round than another tree, by the same groups; what gets
    /// selected there is selected here. `current` says what an older function is
    /// called now.
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

    /// Selects a function: at once if it is among the first rows.
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

    pub fn go(&mut self, motion: Motion) {
        self.with_trees(|side, trees| side.go(motion, trees));
    }

    pub fn select_line(&mut self, line: usize) {
        self.with_trees(|side, trees| side.select_line(line, trees));
    }

    pub fn fold(&mut self, action: FoldAction) {
        self.with_trees(|side, trees| match action {
            FoldAction::Open => side.open(trees),
            FoldAction::Close => side.close(trees),
            FoldAction::Toggle => side.toggle(trees),
            FoldAction::OpenAll => side.open_all(trees),
            FoldAction::CloseAll => side.close_all(trees),
        });
    }

    /// Opens the hot path below the selected row, and gives how many steps it goes down.
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

    pub fn find(&self) -> Option<&Find> {
        self.find.as_ref()
    }

    /// Rows that match, of those that are open.
    pub fn found(&self) -> usize {
        self.found
    }

    pub fn set_find(&mut self, find: Option<Find>) {
        self.find = find;
        self.count_found();
    }

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

    /// Which frame of the selected run is looked for, if the row's own is not.
    fn found_in_run(&self) -> Option<usize> {
        let (row, find) = (self.selected()?, self.find.as_ref()?);
        if self.name(row).is_some_and(|name| find.matches(&name)) {
            return None;
        }
        let names = self.hidden_names(row);
        names.iter().position(|name| find.matches(name))
    }

    /// As in the tables.
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
