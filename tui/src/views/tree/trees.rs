//! The call tree that is shown and, if it is compared with a baseline or with the rest of the time,
//! the other tree. A *place*, a [`Pair`], is one position in both trees.

use super::paths::Step;
use crate::desk::Ask;
use profile::diff::{PartTest, Sides};
use profile::few;
use profile::query::{CallTree, Direction, GroupBy, Node, NodeKind, Pair};
use profile::{Cancel, Function, FunctionId, Query, TimeRange};
use std::sync::Arc;

/// The tree that is shown, and the one it is compared with, if any.
#[derive(Debug)]
pub struct Trees {
    /// The tree that is shown.
    pub now: CallTree,
    /// The tree that it is compared with.
    before: Option<Before>,
    /// The places below the root. In a tree of callers that is every function: too many to be
    /// searched for again at each key press.
    first: Vec<Pair>,
}

/// The tree that is compared with.
#[derive(Debug)]
struct Before {
    tree: CallTree,
    sides: Sides,
    /// If this is set, `tree` covers all time that is kept, including the part that is shown. It is
    /// compared with the rest, which is the difference of the two.
    rest: Option<PartTest>,
}

impl Trees {
    /// Counts the tree of the query, and that of the baseline if there is one. Returns `None` if it
    /// was cancelled.
    pub fn new<W>(
        ask: &Ask<W>,
        direction: Direction,
        group_by: GroupBy,
        cancel: &Cancel,
    ) -> Option<Self> {
        let selection = ask.select(cancel)?;
        let now = selection.tree(direction, group_by, cancel).ok()?;
        let before = match ask.baseline() {
            None => None,
            Some(baseline) => {
                let before = baseline.select(&ask.view, cancel)?;
                Some(Before {
                    tree: before.tree(direction, group_by, cancel).ok()?,
                    sides: Sides::of(&before, &selection),
                    rest: None,
                })
            }
        };
        Some(Self::with_first(now, before))
    }

    fn with_first(now: CallTree, before: Option<Before>) -> Self {
        let mut trees = Trees {
            now,
            before,
            first: Vec::new(),
        };
        trees.first = trees.find_children(&trees.root());
        trees
    }

    /// Returns the places below the root, in the order of [`Trees::children`].
    pub fn first(&self) -> &[Pair] {
        &self.first
    }

    /// Counts the tree of a part of the time that is kept, to be compared with the rest. Returns
    /// `None` if it was cancelled. The tree of the rest is not built: its samples are those of the
    /// whole time minus those of the part, place by place.
    pub fn of_range<W>(
        ask: &Ask<W>,
        range: TimeRange,
        direction: Direction,
        group_by: GroupBy,
        cancel: &Cancel,
    ) -> Option<Self> {
        let query = |window| Query {
            window,
            ..ask.query().clone()
        };
        let whole = ask.view.select(&query(TimeRange::ALL), cancel).ok()?;
        let part = whole.part(&query(range), cancel).ok()?;
        let mut sides = Sides::of(&whole, &part);
        sides.a.samples = sides.a.samples.saturating_sub(sides.b.samples);
        sides.a.seconds = (sides.a.seconds - sides.b.seconds).max(0.0);
        let before = Before {
            tree: whole.tree(direction, group_by, cancel).ok()?,
            sides,
            rest: Some(PartTest::new(&part, &whole)),
        };
        let now = part.tree(direction, group_by, cancel).ok()?;
        Some(Self::with_first(now, Some(before)))
    }

    /// Returns the test of whether a share differs significantly from that in the rest of the time.
    /// Returns `None` if a baseline is compared with, or nothing.
    pub fn rest(&self) -> Option<&PartTest> {
        self.before.as_ref()?.rest.as_ref()
    }

    /// Returns how many samples a place had in the baseline, or has in the rest of the time; 0 if
    /// nothing is compared.
    pub fn was(&self, place: &Pair) -> u64 {
        self.before
            .as_ref()
            .map_or(0, |before| before.samples(place))
    }

    /// Returns the samples and seconds of both sides, or `None` if nothing is compared.
    pub fn sides(&self) -> Option<&Sides> {
        self.before.as_ref().map(|before| &before.sides)
    }

    /// Returns the place of the root of both trees.
    pub fn root(&self) -> Pair {
        Pair {
            now: Some(self.now.root()),
            before: self.before.as_ref().map(|before| before.tree.root()),
        }
    }

    /// Returns the place at the end of a way from the root, or `None` if the shown tree does not
    /// have it.
    pub fn find(&self, way: &[NodeKind]) -> Option<Pair> {
        let is_it = |child: &Pair, kind: &NodeKind| child.now.is_some_and(|n| n.kind == *kind);
        let Some((kind, below)) = way.split_first() else {
            return Some(self.root());
        };
        let first = self.first.iter().find(|child| is_it(child, kind)).copied();
        below.iter().try_fold(first?, |place, kind| {
            let mut children = self.children(&place).into_iter();
            children.find(|child| is_it(child, kind))
        })
    }

    /// Returns the places below a place: the one with most samples first or, if trees are compared,
    /// the one that changed most, up or down.
    pub fn children(&self, place: &Pair) -> Vec<Pair> {
        if *place == self.root() {
            self.first.clone()
        } else {
            self.find_children(place)
        }
    }

    fn find_children(&self, place: &Pair) -> Vec<Pair> {
        match (&self.before, &place.now) {
            (Some(before), _) => {
                let mut pairs = self.now.pairs(&before.tree, place);
                let change = |pair: &Pair| before.change(pair).abs();
                few::sort_by(&mut pairs, |a, b| change(b).total_cmp(&change(a)));
                pairs
            }
            (None, Some(node)) => self.now.children(node).into_iter().map(alone).collect(),
            (None, None) => Vec::new(),
        }
    }

    /// Whether there are places below a place in either tree.
    pub fn has_children(&self, place: &Pair) -> bool {
        let now = place.now.as_ref();
        let was = self.before.as_ref().zip(place.before.as_ref());
        now.is_some_and(|node| self.now.has_children(node))
            || was.is_some_and(|(before, node)| before.tree.has_children(node))
    }

    /// Returns the hot path below a place. The weight of a place is its samples or, if trees are
    /// compared, its change, which may be negative. At each place the path
    /// 1. goes to the child with most samples, or with most change in the direction of the place's
    ///    own change,
    /// 2. ends if the weight of that child is less than `share` of the weight of the place, except
    ///    at the root,
    /// 3. ends at a place of weight 0, and at a place without children.
    pub fn hot_path(&self, place: &Pair, share: f64) -> Vec<Pair> {
        let weight = |pair: &Pair| match &self.before {
            Some(before) => before.change(pair),
            None => samples(pair.now) as f64,
        };
        // Of many programs none may have half of all samples. There the path goes to the one with
        // most.
        let is_all = |place: &Pair| {
            let node = place.now.or(place.before);
            node.is_none_or(|node| matches!(node.kind, NodeKind::Root))
        };
        let mut path = Vec::new();
        let mut at = *place;
        loop {
            let whole = weight(&at);
            let sign = if whole < 0.0 { -1.0 } else { 1.0 };
            let below = self.children(&at).into_iter();
            let most = below.max_by(|a, b| (sign * weight(a)).total_cmp(&(sign * weight(b))));
            match most {
                Some(next) if whole != 0.0 && (is_all(&at) || weight(&next) / whole >= share) => {
                    path.push(next);
                    at = next;
                }
                _ => return path,
            }
        }
    }

    /// Returns the step that leads to a place from its parent: `Gone` if only the tree compared
    /// with has the place.
    pub fn step(&self, place: &Pair) -> Step {
        match (place.now, place.before) {
            (Some(node), _) => Step::Node(node.kind),
            (None, Some(node)) => Step::Gone(node.kind),
            (None, None) => Step::Rest,
        }
    }

    /// Returns the name of a place, from the shown tree if it has the place.
    pub fn name(&self, place: &Pair) -> Arc<str> {
        self.node(place)
            .map(|(tree, node)| tree.name(node.kind))
            .unwrap_or_default()
    }

    /// Returns the function of a place, or `None` for the root and for groups.
    pub fn function(&self, place: &Pair) -> Option<Function> {
        let (tree, node) = self.node(place)?;
        Some(tree.function(function_id(&node)?))
    }

    fn node(&self, place: &Pair) -> Option<(&CallTree, Node)> {
        let now = place.now.map(|node| (&self.now, node));
        let was = self.before.as_ref().zip(place.before);
        now.or(was.map(|(before, node)| (&before.tree, node)))
    }
}

impl Before {
    /// Returns how many samples a place has on the side compared with:
    /// 1. for a baseline: its samples in that tree,
    /// 2. for the rest of the time: its samples in the whole time minus those in the shown part.
    fn samples(&self, pair: &Pair) -> u64 {
        let samples_here = match self.rest {
            Some(_) => samples(pair.now),
            None => 0,
        };
        samples(pair.before).saturating_sub(samples_here)
    }

    /// Returns by how much the place has grown, in the unit of the two sides: see `Sides::change`.
    fn change(&self, pair: &Pair) -> f64 {
        self.sides.change(self.samples(pair), samples(pair.now))
    }
}

/// Returns the place of a node if nothing is compared.
pub fn alone(node: Node) -> Pair {
    Pair {
        now: Some(node),
        before: None,
    }
}

/// Returns the samples of a node; 0 if that side of a pair does not have it.
pub fn samples(node: Option<Node>) -> u64 {
    node.map_or(0, |node| node.samples)
}

/// Returns the function of a node, or `None` for the root and for groups.
pub fn function_id(node: &Node) -> Option<FunctionId> {
    match node.kind {
        NodeKind::Function { id, .. } => Some(id),
        NodeKind::Root | NodeKind::Group(_) => None,
    }
}
