//! The question for a call tree, and the answer.

use super::trees::Trees;
use crate::code::Library;
use crate::desk::{Answer, Answerable, Ask, Key};
use profile::query::{CallTree, Direction, GroupBy, NodeKind};
use profile::{Cancel, FunctionId, Query, TimeRange, View};
use std::sync::Arc;

/// Which tree is wanted. Two equal values ask for the same tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeWanted {
    pub direction: Direction,
    pub group_by: GroupBy,
    /// A stretch of time that is compared with all other time that is kept. `None` for the usual
    /// tree of the window.
    pub stretch: Option<Stretch>,
    /// A function whose place in the tree is wanted as well.
    pub look_for: Option<FunctionId>,
}

impl TreeWanted {
    /// Returns the same without the function to find, in order to compare trees.
    pub fn without_search(self) -> Self {
        TreeWanted {
            look_for: None,
            ..self
        }
    }
}

/// A part of the time that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stretch {
    /// The window of the query.
    Window,
    /// The time from start to end in nanoseconds; the end is excluded.
    Between(u64, u64),
}

impl Stretch {
    fn range(self, query: &Query) -> TimeRange {
        match self {
            Stretch::Window => query.window,
            // A `TimeRange` excludes its start and includes its end.
            Stretch::Between(start_ns, end_ns) => {
                TimeRange::between(start_ns.saturating_sub(1), end_ns.saturating_sub(1))
            }
        }
    }
}

/// The question for a tree, or only for a place in it if the tree is already on the screen.
#[derive(Debug, Clone)]
pub struct TreeQuestion {
    ask: Ask<TreeWanted>,
    /// The wanted tree, if it is already on the screen.
    there: Option<Arc<Trees>>,
}

impl TreeQuestion {
    /// Creates the question. If `shown`, the answer on the screen, has the wanted tree, that tree
    /// is used.
    pub fn new(ask: Ask<TreeWanted>, shown: Option<&Arc<TreeAnswer>>) -> Self {
        let is_that = |shown: &&Arc<TreeAnswer>| {
            let tree = |key: &Key<TreeWanted>| Key {
                what: key.what.without_search(),
                ..*key
            };
            tree(&shown.key) == tree(&ask.key)
        };
        let there = shown.filter(is_that).map(|shown| Arc::clone(&shown.trees));
        TreeQuestion { ask, there }
    }

    /// Answers the question. Returns `None` if it was cancelled.
    pub fn answer(self, cancel: &Cancel) -> Option<TreeAnswer> {
        match self.there {
            Some(trees) => Some(TreeAnswer::of(self.ask, trees)),
            None => TreeAnswer::new(self.ask, cancel),
        }
    }
}

impl PartialEq for TreeQuestion {
    fn eq(&self, other: &Self) -> bool {
        self.ask == other.ask
    }
}

impl Eq for TreeQuestion {}

/// A tree, with everything that belongs to it.
#[derive(Debug)]
pub struct TreeAnswer {
    pub key: Key<TreeWanted>,
    pub trees: Arc<Trees>,
    pub view: View,
    /// The ways to the function that was searched for. `None` if there was no search, or if the
    /// function is not in the tree.
    pub found: Option<Found>,
}

impl TreeAnswer {
    /// Counts the tree. Returns `None` if it was cancelled.
    pub fn new(ask: Ask<TreeWanted>, cancel: &Cancel) -> Option<Self> {
        let wanted = ask.key.what;
        let (direction, group_by) = (wanted.direction, wanted.group_by);
        let trees = match wanted.stretch {
            Some(stretch) => {
                let range = stretch.range(ask.query());
                Trees::of_range(&ask, range, direction, group_by, cancel)?
            }
            None => Trees::new(&ask, direction, group_by, cancel)?,
        };
        Some(Self::of(ask, Arc::new(trees)))
    }

    /// Returns the way to the function that was searched for. Of the two in `found` it is the one
    /// that suits a list of rows: the heaviest or, in a tree of callers, the nearest to the root.
    pub fn way_to_found(&self) -> Option<&[NodeKind]> {
        let found = self.found.as_ref()?;
        Some(match self.key.what.direction {
            Direction::TopDown => &found.heaviest,
            Direction::BottomUp => &found.nearest,
        })
    }

    fn of(ask: Ask<TreeWanted>, trees: Arc<Trees>) -> Self {
        let look_for = ask.key.what.look_for.map(|id| ask.view.function_of(id));
        let found = look_for.and_then(|id| find(&trees.now, id));
        TreeAnswer {
            key: ask.key,
            trees,
            view: ask.view,
            found,
        }
    }
}

/// Ways from the root to places of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The place with most samples, where each stack counts at its first place.
    pub heaviest: Vec<NodeKind>,
    /// The heaviest of the places that are nearest to the root. In a tree of callers, users look
    /// for a function there: its own row, or a row below a function that it called last.
    pub nearest: Vec<NodeKind>,
}

/// Finds a function in all stacks of a tree. Returns `None` if no stack has it.
/// 1. Each stack is cut behind the first place of the function: that is its way.
/// 2. Stacks are sorted, so that stacks with the same way are neighbours: their samples are summed.
/// 3. The way with the largest sum is the heaviest. Of the shortest ways, the one with the largest
///    sum is the nearest.
fn find(tree: &CallTree, function: FunctionId) -> Option<Found> {
    let is_it = |kind: &NodeKind| matches!(kind, NodeKind::Function { id, .. } if *id == function);
    let mut run: Option<(Vec<NodeKind>, u64)> = None;
    let mut heaviest: Option<(Vec<NodeKind>, u64)> = None;
    let mut nearest: Option<(Vec<NodeKind>, u64)> = None;
    let mut finish = |(way, samples): (Vec<NodeKind>, u64)| {
        let is_nearer = |(other, most): &(Vec<NodeKind>, u64)| {
            (way.len(), std::cmp::Reverse(samples)) < (other.len(), std::cmp::Reverse(*most))
        };
        if nearest.as_ref().is_none_or(is_nearer) {
            nearest = Some((way.clone(), samples));
        }
        if heaviest.as_ref().is_none_or(|(_, most)| samples > *most) {
            heaviest = Some((way, samples));
        }
    };
    // The stacks are sorted, so that those with the same start are neighbours.
    for (mut kinds, samples) in tree.stacks() {
        let Some(at) = kinds.iter().position(is_it) else {
            continue;
        };
        kinds.truncate(at + 1);
        match &mut run {
            Some((way, sum)) if *way == kinds => *sum += samples,
            _ => run
                .replace((kinds, samples))
                .into_iter()
                .for_each(&mut finish),
        }
    }
    run.into_iter().for_each(&mut finish);
    let ((heaviest, _), (nearest, _)) = heaviest.zip(nearest)?;
    Some(Found { heaviest, nearest })
}

impl Answerable for TreeQuestion {
    fn answer(&self, _: &mut dyn Library, cancel: &Cancel) -> Option<Answer> {
        Some(Answer::new(self.clone().answer(cancel)?))
    }
}
