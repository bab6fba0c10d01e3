//! Builds the *rows* of a call tree, one for each line, from what is open in it. Nodes below closed
//! rows are not visited, so that the cost does not depend on the size of the tree.

use super::paths::{PathId, Paths, Step};
use super::runs;
use super::trees::{Trees, function_id, samples};
use profile::query::Pair;
use profile::{Function, FunctionId};
use std::collections::HashSet;
use std::sync::Arc;

/// One line of the tree.
#[derive(Debug, Clone)]
pub struct TreeRow {
    pub path: PathId,
    pub what: What,
    pub samples: u64,
    /// Samples of the node itself, without those of its children.
    pub own: u64,
    /// Its samples in the tree compared with. `None` if nothing is compared.
    pub before: Option<u64>,
    /// Samples of the parent.
    pub parent_samples: u64,
    /// Number of steps from the root.
    pub depth: u32,
    /// The vertical lines of the levels above, one character for each level.
    pub guides: Arc<str>,
    /// How the row is joined to its parent.
    pub joint: Joint,
    pub fold: Fold,
    /// The frames above it that are folded into this row, the outermost first. Each has only the
    /// next one below it.
    pub run: Arc<[Pair]>,
    /// The row is not in the tree any more, and shows its last numbers.
    pub gone: bool,
    /// The function of a row that is gone, because its id may mean another function in the present
    /// tree.
    pub function: Option<Arc<Function>>,
}

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A node, or the last node of a run.
    Place(Pair),
    /// The sum of this many small children. They have rows of their own only if this row is open.
    Rest(usize),
}

impl TreeRow {
    /// Returns the function of a row, or `None` for the root, groups, sums, and places that exist
    /// only in the baseline.
    pub fn function_id(&self) -> Option<FunctionId> {
        match self.what {
            What::Place(place) => function_id(&place.now?),
            What::Rest(_) => None,
        }
    }
}

/// How a row is joined to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joint {
    Root,
    /// Another child of the same parent follows below.
    Middle,
    /// The last child.
    Last,
    /// The only child of a node without own samples. It is not indented, and continues the parent's
    /// vertical line if there is one.
    Chain {
        line: bool,
    },
}

/// Whether a row can be opened, and whether it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// There are no children.
    Leaf,
    Closed,
    Open,
}

/// If there are this many rows, no more rows are opened.
const ROWS_MAX: usize = 20_000;

/// A child is small if it has less than this share of all samples, in percent, and less than
/// [`SMALL_PERCENT_OF_PARENT`] of its parent's.
pub const SMALL_PERCENT: u64 = 1;
/// The share of the parent's samples, in percent, below which a child may be small.
const SMALL_PERCENT_OF_PARENT: u64 = 10;

/// Whether a node has less than [`SMALL_PERCENT`] percent of all samples.
pub fn is_tiny(samples: u64, all: u64) -> bool {
    samples * 100 < all * SMALL_PERCENT
}

/// Returns all rows from the top, none if there are no samples. `held` is the path of the selected
/// row: rows on the way to it are never summed up with the small ones.
pub fn rows(
    trees: &Trees,
    paths: &mut Paths,
    open: &HashSet<PathId>,
    unfolded: &HashSet<PathId>,
    held: Option<PathId>,
) -> Vec<TreeRow> {
    let on_the_way = held.map_or_else(HashSet::new, |held| paths.upwards(held).collect());
    let mut layout = Layout {
        trees,
        all: samples(trees.root().now),
        all_before: samples(trees.root().before),
        paths,
        open,
        unfolded,
        held,
        on_the_way,
        waiting: Vec::new(),
        rows: Vec::new(),
    };
    if layout.all + layout.all_before > 0 {
        layout.lay_out();
    }
    layout.rows
}

struct Layout<'a> {
    trees: &'a Trees,
    /// All samples of the shown tree.
    all: u64,
    /// All samples of the tree compared with.
    all_before: u64,
    paths: &'a mut Paths,
    open: &'a HashSet<PathId>,
    /// If a run contains one of these paths, each of its frames gets a row.
    unfolded: &'a HashSet<PathId>,
    /// The path of the selected row.
    held: Option<PathId>,
    /// The path of the selected row and all its parents.
    on_the_way: HashSet<PathId>,
    /// A stack of rows that are still to be added. The last one is next.
    waiting: Vec<TreeRow>,
    rows: Vec<TreeRow>,
}

impl Layout<'_> {
    /// Adds rows depth first: each row is followed by the rows below it if it is open.
    fn lay_out(&mut self) {
        let root = self.trees.root();
        self.waiting.push(TreeRow {
            path: Paths::ROOT,
            what: What::Place(root),
            samples: self.all,
            own: root.now.map_or(0, |node| node.own),
            before: self.trees.sides().map(|_| self.all_before),
            parent_samples: self.all,
            depth: 0,
            guides: "".into(),
            joint: Joint::Root,
            fold: Fold::Leaf,
            run: Arc::default(),
            gone: false,
            function: None,
        });
        while let Some(mut row) = self.waiting.pop() {
            let is_open = self.open.contains(&row.path);
            match row.what {
                What::Place(place) if self.trees.has_children(&place) => {
                    let has_room = self.rows.len() + self.waiting.len() < ROWS_MAX;
                    row.fold = fold(is_open && has_room);
                    if row.fold == Fold::Open {
                        self.open_place(&row, &place);
                    }
                }
                What::Place(_) => {}
                What::Rest(_) => row.fold = fold(is_open),
            }
            self.rows.push(row);
        }
    }

    /// Adds the rows below an open place, in this order:
    /// 1. the first child, and all others that are large (see `is_large`),
    /// 2. one row with the sum of the small ones; a single small child has its own row,
    /// 3. each of the small ones, if the row of their sum is open.
    ///
    /// If a run starts at a child, the row is that of its last frame, and the other frames are
    /// stored in its `run`, unless one of them is selected or was unfolded.
    fn open_place(&mut self, above: &TreeRow, place: &Pair) {
        let children = self.trees.children(place);
        let own = place.now.map_or(0, |node| node.own);
        let is_chain = children.len() == 1 && own == 0 && above.joint != Joint::Root;
        let (guides, chain) = hang(above, is_chain);
        let (large, small): (Vec<_>, Vec<_>) = children
            .into_iter()
            .enumerate()
            .partition(|(at, child)| *at == 0 || self.is_large(above, child));
        let small: Vec<Pair> = small.into_iter().map(|(_, child)| child).collect();
        let is_compared = self.trees.sides().is_some();
        let row = |path, what, samples, own, before| TreeRow {
            path,
            what,
            samples,
            own,
            before: is_compared.then_some(before),
            parent_samples: above.samples,
            depth: above.depth + 1,
            guides: Arc::clone(&guides),
            joint: chain.unwrap_or(Joint::Middle),
            fold: Fold::Leaf,
            run: Arc::default(),
            gone: false,
            function: None,
        };
        let own = |child: &Pair| child.now.map_or(0, |node| node.own);
        let trees = self.trees;
        let (held, unfolded) = (self.held, self.unfolded);
        let direction = trees.now.direction();
        let node = place.now.or(place.before);
        let can_begin = node.is_some_and(|node| runs::can_begin_below(node.kind, direction));
        let folded = |paths: &mut Paths, first: PathId, child: &Pair| {
            let (run, last) = runs::run(trees, child).filter(|_| can_begin)?;
            let after = run.iter().skip(1).chain([&last]);
            let mut all = vec![first];
            let end = after.fold(first, |above, place| {
                let path = paths.child(above, trees.step(place));
                all.push(path);
                path
            });
            // A selected frame keeps its own row, so its run is not folded.
            let is_hidden = |held| held != end && all.contains(&held);
            let is_shown = held.is_some_and(is_hidden) || all.iter().any(|p| unfolded.contains(p));
            (!is_shown).then_some((run, last, end))
        };
        let add = |paths: &mut Paths, child: Pair, below: &mut Vec<TreeRow>| {
            let path = paths.child(above.path, trees.step(&child));
            let (is, was) = (samples(child.now), samples(child.before));
            let mut row = row(path, What::Place(child), is, own(&child), was);
            if let Some((run, last, path)) = folded(paths, path, &child) {
                (row.path, row.what, row.own) = (path, What::Place(last), own(&last));
                row.depth += run.len() as u32;
                row.run = run.into();
            }
            below.push(row);
        };
        let mut below = Vec::new();
        for (_, child) in large {
            add(self.paths, child, &mut below);
        }
        if small.len() == 1 {
            add(self.paths, small[0], &mut below);
        } else if !small.is_empty() {
            let path = self.paths.child(above.path, Step::Rest);
            let is = small.iter().map(|child| samples(child.now)).sum();
            let was = small.iter().map(|child| samples(child.before)).sum();
            let own = small.iter().map(own).sum();
            below.push(row(path, What::Rest(small.len()), is, own, was));
            if self.open.contains(&path) {
                for child in small {
                    add(self.paths, child, &mut below);
                }
            }
        }
        if let Some(last) = below.last_mut()
            && last.joint == Joint::Middle
        {
            last.joint = Joint::Last;
        }
        self.waiting.extend(below.into_iter().rev());
    }

    /// Whether a child has a row of its own beside others:
    /// 1. it has enough of all samples or of its parent's now,
    /// 2. or it had enough in the tree compared with,
    /// 3. or it is open, or on the way to the selected row.
    fn is_large(&self, above: &TreeRow, child: &Pair) -> bool {
        let is_small = |samples: u64, all: u64, parent: u64| {
            is_tiny(samples, all) && samples * 100 < parent * SMALL_PERCENT_OF_PARENT
        };
        let (is, was) = (samples(child.now), samples(child.before));
        let was_above = above.before.unwrap_or(0);
        let path = self.paths.find_child(above.path, self.trees.step(child));
        let is_wanted = |path: PathId| self.open.contains(&path) || self.on_the_way.contains(&path);
        (is > 0 && !is_small(is, self.all, above.samples))
            || (was > 0 && !is_small(was, self.all_before, was_above))
            || path.is_some_and(is_wanted)
    }
}

/// Returns the guides of the rows below a row, and their joint if they are a chain.
fn hang(above: &TreeRow, is_chain: bool) -> (Arc<str>, Option<Joint>) {
    let line = matches!(above.joint, Joint::Middle | Joint::Chain { line: true });
    if is_chain {
        return (Arc::clone(&above.guides), Some(Joint::Chain { line }));
    }
    let guides = match above.joint {
        Joint::Root => Arc::clone(&above.guides),
        _ => format!("{}{}", above.guides, if line { '│' } else { ' ' }).into(),
    };
    (guides, None)
}

fn fold(is_open: bool) -> Fold {
    if is_open { Fold::Open } else { Fold::Closed }
}
