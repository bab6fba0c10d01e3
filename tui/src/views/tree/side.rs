//! One *side* of the tree view is one of its two directions, with what is open and selected in it.
//! It is kept when the tree is replaced by a newer one.

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

/// The hot path continues while a callee has at least this share of its caller's samples.
const HOT_SHARE: f64 = 0.5;

/// Maximum number of rows that "open all" opens, those near the root first.
const OPEN_AT_ONCE: usize = 500;

/// If more paths than this are open, those that are not in the present tree are dropped.
const OPEN_MAX: usize = 10_000;

/// The rows of one direction, and what is open and selected among them.
#[derive(Debug, Default)]
pub struct Side {
    at: SidePosition,
    rows: Vec<TreeRow>,
    /// The path of each row in the order of the rows. The cursor moves over these.
    keys: Vec<PathId>,
    /// Number of lines of the body.
    height: usize,
}

/// What is open and selected, independent of the tree.
#[derive(Debug, Clone, Default)]
pub struct SidePosition {
    /// Assigns the numbers of all paths in this struct. They are not valid in any other one.
    paths: Paths,
    /// The paths whose children are shown. They stay open while they are not in the tree.
    open: HashSet<PathId>,
    /// Frames of runs that are shown one by one.
    unfolded: HashSet<PathId>,
    cursor: Cursor<PathId>,
    /// The selected row as it was when it was last in the tree.
    last_seen: Option<TreeRow>,
    /// The end of the last opened hot path.
    hot_end: Option<PathId>,
    /// The user has opened or selected something. Until then the hot path is open.
    touched: bool,
}

impl SidePosition {
    /// Returns the position with the present ids of its functions, and without paths that are not
    /// needed any more.
    fn renamed(&self, current: impl Fn(FunctionId) -> FunctionId) -> SidePosition {
        let (mut cursor, mut last_seen) = (self.cursor.clone(), self.last_seen.clone());
        let held = cursor.held();
        let sets = self.open.iter().chain(&self.unfolded).copied();
        let keep = sets.chain(held).chain(self.hot_end);
        // Paths get new numbers. Paths that were not kept have none, and leave the sets.
        let (paths, became) = self.paths.renamed(keep, current);
        let new = |id: PathId| became.get(&id).copied();
        if let Some(held) = held.and_then(new) {
            cursor.rename(held);
            if let Some(row) = &mut last_seen {
                row.path = held;
            }
        }
        SidePosition {
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
    /// Returns what is open and selected, with only the paths that are needed to come back to it.
    pub fn place(&self) -> SidePosition {
        self.at.renamed(|function| function)
    }

    /// Goes back to a position. Its tree has to be asked for next.
    pub fn return_to(&mut self, place: SidePosition) {
        self.release();
        self.at = SidePosition {
            cursor: place.cursor.come_back(),
            ..place
        };
    }

    /// Returns all rows that are not hidden in closed ones, visible or not. There are none while
    /// the tree is being counted.
    pub fn rows(&self) -> &[TreeRow] {
        &self.rows
    }

    /// Returns the number of the first row on the screen.
    pub fn offset(&self) -> usize {
        self.at.cursor.offset()
    }

    /// Returns the number of the selected row, counted from 0.
    pub fn index(&self) -> usize {
        self.at.cursor.index()
    }

    /// Returns the rows on the screen.
    pub fn shown(&self) -> &[TreeRow] {
        let end = self.offset() + visible(self.rows.len(), self.height);
        // While an answer is awaited there are no rows, whatever the scroll position is.
        let shown = self.rows.get(self.offset()..end.min(self.rows.len()));
        shown.unwrap_or_default()
    }

    /// Returns the selected row, or `None` if there are no rows.
    pub fn selected(&self) -> Option<&TreeRow> {
        self.rows.get(self.index())
    }

    /// Whether the last opened hot path ended at this row.
    pub fn is_hot_end(&self, row: &TreeRow) -> bool {
        self.at.hot_end == Some(row.path)
    }

    /// Returns the function that the user selected, or `None` if nothing was selected, or a row
    /// without a function.
    pub fn held_function(&self) -> Option<FunctionId> {
        self.at
            .cursor
            .held()
            .and_then(|id| self.at.paths.function(id))
    }

    /// Takes another tree and builds its rows. `current` returns the present id of a function.
    /// Until the user has opened or selected something, the hot path is opened in each tree.
    pub fn take(&mut self, trees: &Trees, current: impl Fn(FunctionId) -> FunctionId) {
        self.at = self.at.renamed(current);
        if !self.at.touched {
            self.open_at_first(trees);
        }
        self.open_above_selected();
        self.rebuild(trees);
        // Trees change while samples come in, and each may leave paths that no later tree has.
        if self.at.open.len() > OPEN_MAX {
            let present: HashSet<PathId> = self.keys.iter().copied().collect();
            self.at.open.retain(|id| present.contains(id));
            self.at.unfolded.retain(|id| present.contains(id));
        }
    }

    /// Opens all parents of the selected row. A run on the way to it may branch in another tree:
    /// then its frames have rows of their own, and the selected row has to be visible below them.
    fn open_above_selected(&mut self) {
        if let Some(held) = self.at.cursor.held() {
            self.at.open.extend(self.at.paths.upwards(held).skip(1));
        }
    }

    /// Forgets what the user has opened and selected, because ways of this tree do not exist in the
    /// next one. In the next tree the hot path is opened and the top selected.
    pub fn start_anew(&mut self) {
        self.at.touched = false;
        self.at.unfolded.clear();
        self.at.cursor.watch_top();
        self.at.hot_end = None;
    }

    /// Forgets the stored row. If the next tree does not have the selected row, it is not shown any
    /// more.
    pub fn forget_last_seen(&mut self) {
        self.at.last_seen = None;
    }

    /// Frees the rows because their tree is dropped. What is open and selected stays.
    pub fn release(&mut self) {
        self.rows = Vec::new();
        self.keys = Vec::new();
    }

    /// Sets how many lines fit on the screen.
    pub fn resize(&mut self, height: usize) {
        self.height = height;
        if !self.keys.is_empty() {
            self.at.cursor.settle(&self.keys, height);
        }
    }

    /// Opens what is open at first: the root and, if callees are below callers, the hot path.
    fn open_at_first(&mut self, trees: &Trees) {
        self.at.open = HashSet::from([Paths::ROOT]);
        if trees.now.direction() == Direction::TopDown {
            // Bottom-up the first level already shows the result: which functions use time
            // themselves.
            let path = trees.hot_path(&trees.root(), HOT_SHARE);
            self.open_along(Paths::ROOT, &path, trees);
        }
    }

    /// Opens all places on a way that starts at the path `from`. Returns the path of its end, which
    /// is not opened.
    fn open_along(&mut self, from: PathId, way: &[Pair], trees: &Trees) -> PathId {
        way.iter().fold(from, |above, place| {
            self.at.open.insert(above);
            self.at.paths.child(above, trees.step(place))
        })
    }

    /// Builds the rows again after something was opened or closed, or for another tree. The
    /// selected row stays on its line of the screen.
    pub fn rebuild(&mut self, trees: &Trees) {
        self.lay_out(self.at.cursor.held(), trees);
        self.at.cursor.settle(&self.keys, self.height);
        self.remember(trees);
    }

    /// Builds the rows of what is open. They include the row `wanted` even if it is small, or if it
    /// was selected and is not in the tree any more.
    fn lay_out(&mut self, wanted: Option<PathId>, trees: &Trees) {
        self.rows = rows::rows(
            trees,
            &mut self.at.paths,
            &self.at.open,
            &self.at.unfolded,
            wanted,
        );
        if let Some(wanted) = wanted {
            self.keep_gone(wanted, trees);
        }
        self.keys = self.rows.iter().map(|row| row.path).collect();
    }

    /// Adds the selected row again if it is not in the tree any more: below its nearest parent that
    /// is left, with its last numbers, until another row is selected.
    fn keep_gone(&mut self, held: PathId, trees: &Trees) {
        let Some(mut row) = self.at.last_seen.clone().filter(|row| row.path == held) else {
            return;
        };
        let position = |id| self.rows.iter().position(|row| row.path == id);
        if position(held).is_some() {
            return;
        }
        // The root is always present, unless there is no tree.
        let Some(above) = self.at.paths.upwards(held).skip(1).find_map(position) else {
            return;
        };
        // A comparison has a row of its own for a function that has no samples any more.
        if let Some(same) = self.same_function(above, &row, trees) {
            self.at.cursor.rename(self.rows[same].path);
            return;
        }
        let parent = &self.rows[above];
        (row.gone, row.fold) = (true, Fold::Leaf);
        row.depth = parent.depth + 1;
        row.guides = match parent.joint {
            Joint::Root => "".into(),
            Joint::Middle | Joint::Chain { line: true } => format!("{}│", parent.guides).into(),
            Joint::Last | Joint::Chain { line: false } => format!("{} ", parent.guides).into(),
        };
        // It is inserted before the other children of its parent, if there are any.
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

    /// Returns the index of the row directly below the row `above` that has the same function as a
    /// row which left the tree.
    fn same_function(&self, above: usize, gone: &TreeRow, trees: &Trees) -> Option<usize> {
        let wanted = gone.function.as_ref()?;
        let depth = self.rows[above].depth;
        let mut below = self
            .rows
            .iter()
            .enumerate()
            .skip(above + 1)
            .take_while(|(_, row)| row.depth > depth);
        let found = below.find(|(_, row)| {
            let What::Place(place) = row.what else {
                return false;
            };
            row.depth == depth + 1
                && trees.function(&place).is_some_and(|function| {
                    (&function.name, &function.module) == (&wanted.name, &wanted.module)
                })
        });
        found.map(|(at, _)| at)
    }

    /// Stores the selected row, in case it is not in the next tree.
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

    /// Moves the selection. Moving up from the first row releases the selected row: from then on
    /// the first row is selected, whatever it is.
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

    /// Selects the row on a line of the body, counted from 0 at the top. Lines below the last row
    /// are ignored.
    pub fn select_line(&mut self, line: usize, trees: &Trees) {
        if line < self.shown().len() {
            self.select(self.offset() + line, trees);
        }
    }

    /// Selects a row by its number. A row that was only shown because it was selected disappears if
    /// it is not in the tree.
    pub fn select(&mut self, at: usize, trees: &Trees) {
        self.at.touched = true;
        self.at.cursor.select(at, &self.keys, self.height);
        if self.rows.iter().any(|row| row.gone) {
            self.rebuild(trees);
        }
        self.remember(trees);
    }

    /// Selects the row with this path, if there is one.
    fn select_path(&mut self, path: PathId, trees: &Trees) {
        if let Some(at) = self.keys.iter().position(|key| *key == path) {
            self.select(at, trees);
        }
    }

    /// Opens the selected row, and the rows below it as long as there is only one. If it is already
    /// open, selects the row below it.
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

    /// Opens a place, and the places below it as long as there is only one: the user has no other
    /// choice there.
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

    /// Closes the selected row. If it is already closed, selects its parent.
    pub fn close(&mut self, trees: &Trees) {
        let Some(row) = self.hold(trees) else {
            return;
        };
        if row.fold == Fold::Open {
            self.at.open.remove(&row.path);
            let paths = &self.at.paths;
            // Runs below are folded again when their parent is opened next.
            let is_below = |id: &PathId| paths.upwards(*id).any(|above| above == row.path);
            self.at.unfolded.retain(|id| !is_below(id));
            self.rebuild(trees);
        } else {
            // Frames folded into a run have no rows.
            let has_row = |path: &PathId| self.keys.contains(path);
            let above = self.at.paths.upwards(row.path).skip(1).find(has_row);
            if let Some(above) = above {
                self.select_path(above, trees);
            }
        }
    }

    /// Opens or closes the selected row. If it stands for a run, each frame of the run gets a row.
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

    /// Gives each frame of the selected run a row of its own.
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

    /// Gives each frame of the selected run a row, and selects the one with this number, counted
    /// from 0 at the outermost frame.
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

    /// Opens all rows that are not small, at most [`OPEN_AT_ONCE`], those near the root first.
    pub fn open_all(&mut self, trees: &Trees) {
        self.at.touched = true;
        let root = trees.root();
        let (all, all_before) = (samples(root.now), samples(root.before));
        let is_small = |place: &Pair| {
            is_tiny(samples(place.now), all.max(1))
                && is_tiny(samples(place.before), all_before.max(1))
        };
        // Breadth first: if not all can be opened, those near the root are.
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

    /// Closes all rows except those on the way to the selected row.
    pub fn close_all(&mut self, trees: &Trees) {
        self.at.touched = true;
        self.at.open = HashSet::from([Paths::ROOT]);
        self.at.unfolded.clear();
        self.open_above_selected();
        self.rebuild(trees);
    }

    /// Opens the hot path below the selected row, and selects its end.
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

    /// Selects the place at the end of a way, and opens the places on the way.
    pub fn select_way(&mut self, way: &[NodeKind], trees: &Trees) {
        self.at.touched = true;
        let open = self.at.open.len();
        let end = way.iter().fold(Paths::ROOT, |above, kind| {
            self.at.open.insert(above);
            self.at.paths.child(above, Step::Node(*kind))
        });
        // In the tree of callers, users open the row of a function to see its callers.
        if trees.now.direction() == Direction::BottomUp
            && let Some(place) = trees.find(way)
        {
            self.open_only_way(end, place, trees);
        }
        // The place may be inside a run: then it gets a row of its own.
        if !self.keys.contains(&end) {
            self.at.unfolded.insert(end);
        }
        if self.at.open.len() > open || !self.keys.contains(&end) {
            self.lay_out(Some(end), trees);
        }
        self.select_path(end, trees);
    }

    /// Makes the selected row one that the user has selected, so that it stays selected. Returns
    /// the row, or `None` if there is none or it is not in the tree any more.
    fn hold(&mut self, trees: &Trees) -> Option<TreeRow> {
        let row = self.selected()?.clone();
        self.at.touched = true;
        self.at.cursor.select(self.index(), &self.keys, self.height);
        self.remember(trees);
        (!row.gone).then_some(row)
    }
}
