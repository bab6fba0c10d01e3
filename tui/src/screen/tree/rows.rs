//! From a call tree and what is open in it to *rows*, one a line. Only what is
//! open is looked at.

use super::paths::{PathId, Paths, Step};
use profile::query::{CallTree, Node, NodeKind};
use profile::{Function, FunctionId};
use std::collections::HashSet;
use std::sync::Arc;

/// One line of the tree.
#[derive(Debug, Clone)]
pub struct TreeRow {
    pub path: PathId,
    pub what: What,
    pub samples: u64,
    pub own: u64,
    /// Samples of the node above.
    pub parent_samples: u64,
    /// Steps from the root.
    pub depth: u32,
    /// The lines of the levels above, a character each.
    pub guides: Arc<str>,
    pub joint: Joint,
    pub fold: Fold,
    /// No longer in the tree; these are its last numbers.
    pub gone: bool,
    /// What it is, if the tree cannot be asked: it may know the function's
    /// number for another one.
    pub function: Option<Arc<Function>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Node(Node),
    /// So many small ones.
    Rest(usize),
}

impl TreeRow {
    pub fn function_id(&self) -> Option<FunctionId> {
        match self.what {
            What::Node(Node {
                kind: NodeKind::Function { id, .. },
                ..
            }) => Some(id),
            What::Node(_) | What::Rest(_) => None,
        }
    }
}

/// How a row hangs on the one above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joint {
    Root,
    /// Others follow below the same node.
    Middle,
    Last,
    /// The only one below a node that has no samples of its own: not indented,
    /// and with the line of the node above, if that has one.
    Chain {
        line: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    Leaf,
    Closed,
    Open,
}

/// From so many rows on nothing more is opened.
const ROWS_MAX: usize = 20_000;

/// Below that share of all samples and of the node above a node is small.
pub const SMALL_PERCENT: u64 = 1;
const SMALL_PERCENT_OF_PARENT: u64 = 10;

/// Whether a node is not worth a row of its own among many.
pub fn is_tiny(samples: u64, all: u64) -> bool {
    samples * 100 < all * SMALL_PERCENT
}

/// All rows. What leads to `held` is never among the small ones.
pub fn rows(
    tree: &CallTree,
    paths: &mut Paths,
    open: &HashSet<PathId>,
    held: Option<PathId>,
) -> Vec<TreeRow> {
    let on_the_way = held.map_or_else(HashSet::new, |held| paths.upwards(held).collect());
    let mut layout = Layout {
        tree,
        all: tree.root().samples,
        paths,
        open,
        on_the_way,
        waiting: Vec::new(),
        rows: Vec::new(),
    };
    if layout.all > 0 {
        layout.lay_out();
    }
    layout.rows
}

struct Layout<'a> {
    tree: &'a CallTree,
    all: u64,
    paths: &'a mut Paths,
    open: &'a HashSet<PathId>,
    on_the_way: HashSet<PathId>,
    /// The next row is the last.
    waiting: Vec<TreeRow>,
    rows: Vec<TreeRow>,
}

impl Layout<'_> {
    fn lay_out(&mut self) {
        let root = self.tree.root();
        self.waiting.push(TreeRow {
            path: Paths::ROOT,
            what: What::Node(root),
            samples: root.samples,
            own: root.own,
            parent_samples: root.samples,
            depth: 0,
            guides: "".into(),
            joint: Joint::Root,
            fold: Fold::Leaf,
            gone: false,
            function: None,
        });
        while let Some(mut row) = self.waiting.pop() {
            let is_open = self.open.contains(&row.path);
            match row.what {
                What::Node(node) if self.tree.has_children(&node) => {
                    let has_room = self.rows.len() + self.waiting.len() < ROWS_MAX;
                    row.fold = fold(is_open && has_room);
                    if row.fold == Fold::Open {
                        self.open_node(&row, &node);
                    }
                }
                What::Node(_) => {}
                What::Rest(_) => row.fold = fold(is_open),
            }
            self.rows.push(row);
        }
    }

    /// The rows below a node: large ones, then the small ones as one row, and
    /// after it each of them if that is open.
    fn open_node(&mut self, above: &TreeRow, node: &Node) {
        let children = self.tree.children(node);
        let is_chain = children.len() == 1 && node.own == 0 && above.joint != Joint::Root;
        let (guides, chain) = hang(above, is_chain);
        let (large, small): (Vec<_>, Vec<_>) = children
            .into_iter()
            .enumerate()
            .partition(|(at, child)| *at == 0 || self.is_large(above.path, node, child));
        let small: Vec<Node> = small.into_iter().map(|(_, child)| child).collect();
        let row = |path, what, samples, own| TreeRow {
            path,
            what,
            samples,
            own,
            parent_samples: node.samples,
            depth: node.depth + 1,
            guides: Arc::clone(&guides),
            joint: chain.unwrap_or(Joint::Middle),
            fold: Fold::Leaf,
            gone: false,
            function: None,
        };
        let mut below = Vec::new();
        let add = |paths: &mut Paths, child: Node, below: &mut Vec<TreeRow>| {
            let path = paths.child(above.path, Step::Node(child.kind));
            below.push(row(path, What::Node(child), child.samples, child.own));
        };
        for (_, child) in large {
            add(self.paths, child, &mut below);
        }
        if small.len() == 1 {
            add(self.paths, small[0], &mut below);
        } else if !small.is_empty() {
            let path = self.paths.child(above.path, Step::Rest);
            let samples = small.iter().map(|child| child.samples).sum();
            let own = small.iter().map(|child| child.own).sum();
            below.push(row(path, What::Rest(small.len()), samples, own));
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

    fn is_large(&self, above: PathId, node: &Node, child: &Node) -> bool {
        let path = self.paths.find_child(above, Step::Node(child.kind));
        let is_small = is_tiny(child.samples, self.all)
            && child.samples * 100 < node.samples * SMALL_PERCENT_OF_PARENT;
        let is_wanted = |path: PathId| self.open.contains(&path) || self.on_the_way.contains(&path);
        !is_small || path.is_some_and(is_wanted)
    }
}

/// The guides of the rows below a row, and their joint where they are a chain.
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
    match is_open {
        true => Fold::Open,
        false => Fold::Closed,
    }
}
