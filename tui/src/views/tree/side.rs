//! One *side* of the tree view, callers first or callees first: what is open
//! and selected there. It outlives the trees that it is shown for.

use super::paths::{PathId, Paths, Step};
use super::rows;
use super::rows::{Fold, Joint, TreeRow, What, is_tiny};
use super::trees::{Trees, samples};
use crate::lists::cursor::{Cursor, visible};
use crate::lists::motion::Motion;
use profile::FunctionId;
use profile::query::{Direction, NodeKind, Pair};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// While a callee has that share of its caller, the hot path goes on.
const HOT_SHARE: f64 = 0.5;

/// "All" opens so many rows, those near the root first.
const OPEN_AT_ONCE: usize = 500;

/// What is open and not in the tree is forgotten beyond that.
const OPEN_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub struct Side {
    at: SidePlace,
    rows: Vec<TreeRow>,
    keys: Vec<PathId>,
    height: usize,
}

/// What is open and selected, whatever tree is shown.
#[derive(Debug, Clone, Default)]
pub struct SidePlace {
    paths: Paths,
    open: HashSet<PathId>,
    /// Frames of runs that are shown one by one.
    unfolded: HashSet<PathId>,
    cursor: Cursor<PathId>,
    /// The selected row when it was last in the tree.
    last_seen: Option<TreeRow>,
    /// Where the hot path ended.
    hot_end: Option<PathId>,
    /// Something was opened or selected. Until then the hot path is open.
    touched: bool,
}

impl SidePlace {
    /// The same where functions are called what they are now, without the paths that
    /// nothing needs any more.
    fn renamed(&self, current: impl Fn(FunctionId) -> FunctionId) -> SidePlace {
        let (mut cursor, mut last_seen) = (self.cursor.clone(), self.last_seen.clone());
        let held = cursor.held();
        let sets = self.open.iter().chain(&self.unfolded).copied();
        let keep = sets.chain(held).chain(self.hot_end);
        let (paths, became) = self.paths.renamed(keep, current);
        let new = |id: PathId| became.get(&id).copied();
        if let Some(held) = held.and_then(new) {
            cursor.rename(held);
            if let Some(row) = &mut last_seen {
                row.path = held;
            }
        }
        SidePlace {
            open: self.open.iter().copied().filter_map(new).collect(),
            unfolded: self.unfolded.iter().copied().filter_map(new).collect(),
            hot_end: self.hot_end.and_then(new),
            paths,
            cursor,
            last_seen,
            touched: self.touched,
        }
    }
}

impl Side {
    /// The paths that are needed for it, and no others.
    pub fn place(&self) -> SidePlace {
        self.at.renamed(|function| function)
    }

    /// Goes back to a place; its tree has to be asked for next.
    pub fn return_to(&mut self, place: SidePlace) {
        self.release();
        self.at = SidePlace {
            cursor: place.cursor.come_back(),
            ..place
        };
    }

    pub fn rows(&self) -> &[TreeRow] {
        &self.rows
    }

    pub fn offset(&self) -> usize {
        self.at.cursor.offset()
    }

    pub fn index(&self) -> usize {
        self.at.cursor.index()
    }

    /// The rows on the screen.
    pub fn shown(&self) -> &[TreeRow] {
        let end = self.offset() + visible(self.rows.len(), self.height);
        // While an answer is waited for there are none, however far it was scrolled.
        let shown = self.rows.get(self.offset()..end.min(self.rows.len()));
        shown.unwrap_or_default()
    }

    pub fn selected(&self) -> Option<&TreeRow> {
        self.rows.get(self.index())
    }

    pub fn is_hot_end(&self, row: &TreeRow) -> bool {
        self.at.hot_end == Some(row.path)
    }

    /// The function that was selected on purpose.
    pub fn held_function(&self) -> Option<FunctionId> {
        self.at
            .cursor
            .held()
            .and_then(|id| self.at.paths.function(id))
    }

    /// Takes another tree; `current` says what an older function is called now.
    pub fn take(&mut self, trees: &Trees, current: impl Fn(FunctionId) -> FunctionId) {
        self.at = self.at.renamed(current);
        if !self.at.touched {
            self.open_at_first(trees);
        }
        self.open_above_selected();
        self.rebuild(trees);
        if self.at.open.len() > OPEN_MAX {
            let present: HashSet<PathId> = self.keys.iter().copied().collect();
            self.at.open.retain(|id| present.contains(id));
            self.at.unfolded.retain(|id| present.contains(id));
        }
    }

    /// Frames of a run that leads to the selected row may branch in another tree: then they
    /// are rows of their own, and the selected one has to be seen below them.
    fn open_above_selected(&mut self) {
        if let Some(held) = self.at.cursor.held() {
            self.at.open.extend(self.at.paths.upwards(held).skip(1));
        }
    }

    /// The next tree has other ways: its hot path is open, its top selected.
    pub fn start_anew(&mut self) {
        self.at.touched = false;
        self.at.unfolded.clear();
        self.at.cursor.watch_top();
        self.at.hot_end = None;
    }

    /// The rows go with their tree; what is open and selected stays.
    pub fn release(&mut self) {
        self.rows = Vec::new();
        self.keys = Vec::new();
    }

    pub fn resize(&mut self, height: usize) {
        self.height = height;
        if !self.keys.is_empty() {
            self.at.cursor.settle(&self.keys, height);
        }
    }

    fn open_at_first(&mut self, trees: &Trees) {
        self.at.open = HashSet::from([Paths::ROOT]);
        if trees.now.direction() == Direction::TopDown {
            let path = trees.hot_path(&trees.root(), HOT_SHARE);
            self.open_along(Paths::ROOT, &path, trees);
        }
    }

    /// Opens what is on the way, returns its end.
    fn open_along(&mut self, from: PathId, way: &[Pair], trees: &Trees) -> PathId {
        way.iter().fold(from, |above, place| {
            self.at.open.insert(above);
            self.at.paths.child(above, trees.step(place))
        })
    }

    pub fn rebuild(&mut self, trees: &Trees) {
        self.lay_out(self.at.cursor.held(), trees);
        self.at.cursor.settle(&self.keys, self.height);
        self.remember(trees);
    }

    /// The rows of what is open. The one that is wanted is among them even if it is
    /// small, or was selected and has vanished.
    fn lay_out(&mut self, wanted: Option<PathId>, trees: &Trees) {
        self.rows = rows::rows(
            trees,
            &mut self.at.paths,
            &self.at.open,
            &self.at.unfolded,
            wanted,
        );
        if let Some(wanted) = wanted {
            self.keep_gone(wanted);
        }
        self.keys = self.rows.iter().map(|row| row.path).collect();
    }

    /// A selected row that vanished stays below what is left of its way until
    /// it is left.
    fn keep_gone(&mut self, held: PathId) {
        let Some(mut row) = self.at.last_seen.clone().filter(|row| row.path == held) else {
            return;
        };
        let position = |id| self.rows.iter().position(|row| row.path == id);
        if position(held).is_some() {
            return;
        }
        let Some(above) = self.at.paths.upwards(held).skip(1).find_map(position) else {
            return;
        };
        let parent = &self.rows[above];
        (row.gone, row.fold) = (true, Fold::Leaf);
        row.depth = parent.depth + 1;
        row.guides = match parent.joint {
            Joint::Root => "".into(),
            Joint::Middle | Joint::Chain { line: true } => format!("{}│", parent.guides).into(),
            Joint::Last | Joint::Chain { line: false } => format!("{} ", parent.guides).into(),
        };
        let next_is_below = self
            .rows
            .get(above + 1)
            .is_some_and(|n| n.depth > parent.depth);
        row.joint = if next_is_below {
            Joint::Middle
        } else {
            Joint::Last
        };
        self.rows.insert(above + 1, row);
    }

    fn remember(&mut self, trees: &Trees) {
        if self.at.cursor.held().is_none() {
            self.at.last_seen = None;
        } else if let Some(row) = self.selected()
            && !row.gone
        {
            let function = match row.what {
                What::Place(place) => trees.function(&place).map(Arc::new),
                What::Rest(_) => None,
            };
            self.at.last_seen = Some(TreeRow {
                function,
                ..row.clone()
            });
        }
    }

    pub fn go(&mut self, motion: Motion, trees: &Trees) {
        let at = self.index();
        if motion.watches_top(at) {
            self.at.cursor.watch_top();
            self.rebuild(trees);
        } else {
            let page = visible(self.rows.len(), self.height);
            self.select(motion.target(at, page, self.rows.len()), trees);
        }
    }

    pub fn select_line(&mut self, line: usize, trees: &Trees) {
        if line < self.shown().len() {
            self.select(self.offset() + line, trees);
        }
    }

    pub fn select(&mut self, at: usize, trees: &Trees) {
        self.at.touched = true;
        self.at.cursor.select(at, &self.keys, self.height);
        if self.rows.iter().any(|row| row.gone) {
            self.rebuild(trees);
        }
        self.remember(trees);
    }

    fn select_path(&mut self, path: PathId, trees: &Trees) {
        if let Some(at) = self.keys.iter().position(|key| *key == path) {
            self.select(at, trees);
        }
    }

    /// Opens the selected row, and on from there as long as there is only one
    /// way; an open one is left downwards.
    pub fn open(&mut self, trees: &Trees) {
        let Some(row) = self.hold(trees) else {
            return;
        };
        match (row.fold, row.what) {
            (Fold::Leaf, _) => {}
            (Fold::Open, _) => self.go(Motion::Down(1), trees),
            (Fold::Closed, What::Rest(_)) => {
                self.at.open.insert(row.path);
                self.rebuild(trees);
            }
            (Fold::Closed, What::Place(place)) => {
                self.open_only_way(row.path, place, trees);
                self.rebuild(trees);
            }
        }
    }

    fn open_only_way(&mut self, mut path: PathId, mut place: Pair, trees: &Trees) {
        self.at.open.insert(path);
        while let [only] = trees.children(&place)[..]
            && trees.has_children(&only)
        {
            path = self.at.paths.child(path, trees.step(&only));
            self.at.open.insert(path);
            place = only;
        }
    }

    /// Closes the selected row; a closed one is left to the row above.
    pub fn close(&mut self, trees: &Trees) {
        let Some(row) = self.hold(trees) else {
            return;
        };
        if row.fold == Fold::Open {
            self.at.open.remove(&row.path);
            let paths = &self.at.paths;
            let is_below = |id: &PathId| paths.upwards(*id).any(|above| above == row.path);
            self.at.unfolded.retain(|id| !is_below(id));
            self.rebuild(trees);
        } else {
            // Frames of a run have no rows.
            let has_row = |path: &PathId| self.keys.contains(path);
            let above = self.at.paths.upwards(row.path).skip(1).find(has_row);
            if let Some(above) = above {
                self.select_path(above, trees);
            }
        }
    }

    /// Opens or closes the selected row; of a run, shows every frame.
    pub fn toggle(&mut self, trees: &Trees) {
        if self.selected().is_some_and(|row| !row.run.is_empty()) {
            return self.unfold(trees);
        }
        match self.selected().map(|row| row.fold) {
            Some(Fold::Open) => self.close(trees),
            Some(Fold::Closed) => self.open(trees),
            Some(Fold::Leaf) | None => {}
        }
    }

    /// A row for each frame of the selected run.
    fn unfold(&mut self, trees: &Trees) {
        let Some(row) = self.hold(trees) else {
            return;
        };
        let above = self.at.paths.upwards(row.path).skip(1);
        let frames: Vec<PathId> = above.take(row.run.len()).collect();
        self.at.open.extend(&frames);
        self.at.unfolded.extend(&frames);
        self.rebuild(trees);
    }

    /// Shows every frame of the selected run, and selects the one of that number.
    pub fn unfold_to(&mut self, frame: usize, trees: &Trees) {
        let Some(row) = self.selected() else {
            return;
        };
        let steps = row.run.len().saturating_sub(frame);
        let path = self.at.paths.upwards(row.path).nth(steps);
        self.unfold(trees);
        if let Some(path) = path {
            self.select_path(path, trees);
        }
    }

    /// Opens all that is not small, up to a limit.
    pub fn open_all(&mut self, trees: &Trees) {
        self.at.touched = true;
        let root = trees.root();
        let (all, all_before) = (samples(root.now), samples(root.before));
        let is_small = |place: &Pair| {
            is_tiny(samples(place.now), all.max(1))
                && is_tiny(samples(place.before), all_before.max(1))
        };
        let mut waiting = VecDeque::from([(Paths::ROOT, root)]);
        let mut opened = 0;
        while let Some((path, place)) = waiting.pop_front()
            && opened < OPEN_AT_ONCE
        {
            self.at.open.insert(path);
            opened += 1;
            for child in trees.children(&place) {
                if !is_small(&child) && trees.has_children(&child) {
                    waiting.push_back((self.at.paths.child(path, trees.step(&child)), child));
                }
            }
        }
        self.rebuild(trees);
    }

    /// Closes all but what leads to the selected row.
    pub fn close_all(&mut self, trees: &Trees) {
        self.at.touched = true;
        self.at.open = HashSet::from([Paths::ROOT]);
        self.at.unfolded.clear();
        self.open_above_selected();
        self.rebuild(trees);
    }

    /// Opens the hot path below the selected row and selects its end.
    pub fn open_hot_path(&mut self, trees: &Trees) {
        let Some(row) = self.hold(trees) else {
            return;
        };
        let What::Place(place) = row.what else {
            return;
        };
        let way = trees.hot_path(&place, HOT_SHARE);
        let end = self.open_along(row.path, &way, trees);
        self.at.hot_end = Some(end);
        self.rebuild(trees);
        self.select_path(end, trees);
    }

    /// Selects the place at the end of a way, and opens what leads there.
    pub fn select_way(&mut self, way: &[NodeKind], trees: &Trees) {
        self.at.touched = true;
        let open = self.at.open.len();
        let end = way.iter().fold(Paths::ROOT, |above, kind| {
            self.at.open.insert(above);
            self.at.paths.child(above, Step::Node(*kind))
        });
        if trees.now.direction() == Direction::BottomUp
            && let Some(place) = trees.find(way)
        {
            self.open_only_way(end, place, trees);
        }
        if !self.keys.contains(&end) {
            self.at.unfolded.insert(end);
        }
        if self.at.open.len() > open || !self.keys.contains(&end) {
            self.lay_out(Some(end), trees);
        }
        self.select_path(end, trees);
    }

    /// Makes the selected row one that was selected on purpose.
    fn hold(&mut self, trees: &Trees) -> Option<TreeRow> {
        let row = self.selected()?.clone();
        self.at.touched = true;
        self.at.cursor.select(self.index(), &self.keys, self.height);
        self.remember(trees);
        (!row.gone).then_some(row)
    }
}
