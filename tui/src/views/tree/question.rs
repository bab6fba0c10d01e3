//! What a tree is asked with, and the answer.

use super::trees::Trees;
use crate::code::Library;
use crate::desk::{Answer, Answerable, Ask, Key};
use profile::query::{CallTree, Direction, GroupBy, NodeKind};
use profile::{Cancel, FunctionId, Query, TimeRange, View};
use std::sync::Arc;

/// Which tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeWanted {
    pub direction: Direction,
    pub group_by: GroupBy,
    /// Only that stretch of time, against all other that is kept.
    pub stretch: Option<Stretch>,
    /// A function whose place is to be found.
    pub look_for: Option<FunctionId>,
}

impl TreeWanted {
    /// The same tree, whatever is to be found in it.
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
    /// That of the query.
    Window,
    /// The time between two moments in nanoseconds; the second one is not part of it.
    Between(u64, u64),
}

impl Stretch {
    fn range(self, query: &Query) -> TimeRange {
        match self {
            Stretch::Window => query.window,
            // A range begins after its start and ends with its end.
            Stretch::Between(start_ns, end_ns) => {
                TimeRange::between(start_ns.saturating_sub(1), end_ns.saturating_sub(1))
            }
        }
    }
}

/// Asks for a tree, or for a place in one that is there already.
#[derive(Debug, Clone)]
pub struct TreeQuestion {
    ask: Ask<TreeWanted>,
    there: Option<Arc<Trees>>,
}

impl TreeQuestion {
    /// `shown` is on the screen; it may be another tree.
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

    /// `None` if it was cancelled.
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

/// A tree, with all that belongs to it.
#[derive(Debug)]
pub struct TreeAnswer {
    pub key: Key<TreeWanted>,
    pub trees: Arc<Trees>,
    pub view: View,
    /// Where the function is that was looked for, if it is there.
    pub found: Option<Found>,
}

impl TreeAnswer {
    /// `None` if it was cancelled.
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

    /// The way to what was looked for, as a list of rows is read.
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
    /// The place with most samples, where each stack counts at its first one.
    pub heaviest: Vec<NodeKind>,
    /// The heaviest of those that are nearest to the root. From what was on top of
    /// the stacks down to its callers that is where one looks for a function: its own
    /// row, or a row below one that it called last.
    pub nearest: Vec<NodeKind>,
}

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
    // Stacks are sorted: those that begin alike are side by side.
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
