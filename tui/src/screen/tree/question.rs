//! What a tree is asked with, and the answer: found on a thread of its own,
//! because it looks at every sample of the window.

use crate::snapshot::Snapshot;
use profile::query::{CallTree, Direction, GroupBy, NodeKind};
use profile::{Cancel, FunctionId, Query, View};

/// Asks for the call tree of a snapshot.
#[derive(Debug, Clone)]
pub struct TreeQuestion {
    pub key: QuestionKey,
    view: View,
    query: Query,
}

/// What tells one question from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuestionKey {
    /// The snapshot's.
    pub generation: u64,
    /// Which query, of whatever snapshot.
    pub turn: u64,
    pub direction: Direction,
    /// A function whose heaviest place is to be found.
    pub look_for: Option<FunctionId>,
}

/// A tree, with all that belongs to it.
#[derive(Debug)]
pub struct TreeAnswer {
    pub key: QuestionKey,
    pub tree: CallTree,
    pub view: View,
    /// The way to the function that was looked for, if it is there.
    pub found: Option<Vec<NodeKind>>,
}

impl PartialEq for TreeQuestion {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for TreeQuestion {}

impl TreeQuestion {
    /// Nothing where the snapshot comes from no store.
    pub fn new(snapshot: &Snapshot, key: QuestionKey) -> Option<Self> {
        Some(TreeQuestion {
            key,
            view: snapshot.view.clone()?,
            query: snapshot.query.clone(),
        })
    }

    /// Nothing if it was cancelled.
    pub fn answer(self, cancel: &Cancel) -> Option<TreeAnswer> {
        let selection = self.view.select(&self.query, cancel).ok()?;
        let tree = selection
            .tree(self.key.direction, GroupBy::None, cancel)
            .ok()?;
        let look_for = self.key.look_for.map(|id| self.view.function_of(id));
        let found = look_for.and_then(|id| heaviest_place(&tree, id));
        Some(TreeAnswer {
            key: self.key,
            tree,
            view: self.view,
            found,
        })
    }
}

/// The way from the root to the function's place with most samples, where each
/// stack counts at its first one.
fn heaviest_place(tree: &CallTree, function: FunctionId) -> Option<Vec<NodeKind>> {
    let is_it = |kind: &NodeKind| matches!(kind, NodeKind::Function { id, .. } if *id == function);
    let mut best: Option<(Vec<NodeKind>, u64)> = None;
    let mut run: Option<(Vec<NodeKind>, u64)> = None;
    let mut finish = |run: Option<(Vec<NodeKind>, u64)>| {
        if let Some(run) = run
            && best.as_ref().is_none_or(|(_, most)| run.1 > *most)
        {
            best = Some(run);
        }
    };
    // Stacks are sorted: those that begin alike are side by side.
    for (mut kinds, samples) in tree.stacks() {
        let Some(at) = kinds.iter().position(is_it) else {
            continue;
        };
        kinds.truncate(at + 1);
        match &mut run {
            Some((way, sum)) if *way == kinds => *sum += samples,
            _ => finish(run.replace((kinds, samples))),
        }
    }
    finish(run);
    best.map(|(way, _)| way)
}
