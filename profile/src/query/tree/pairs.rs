//! Two trees *side by side*: nodes at the same path of names are paired. Functions are matched as
//! in a diff: by build-id and name, else by module and name.

use super::{CallTree, Node, NodeKind};
use crate::{Role, few};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// A place that at least one of the two trees has: the displayed tree or the earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// Its node in the displayed tree; `None` if the place is gone.
    pub now: Option<Node>,
    /// Its node in the earlier tree; `None` if the place is new.
    pub before: Option<Node>,
}

/// The key that distinguishes a child from its siblings, in either tree.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Known {
    name: Arc<str>,
    module: Arc<str>,
    role: Option<Role>,
    inlined: bool,
}

impl CallTree {
    /// The pair of the two roots.
    pub fn root_pair(&self, before: &CallTree) -> Pair {
        Pair {
            now: Some(self.root()),
            before: Some(before.root()),
        }
    }

    /// The pairs directly below one: by samples in the displayed tree, falling, then those that
    /// only the earlier tree has.
    pub fn pairs(&self, before: &CallTree, at: &Pair) -> Vec<Pair> {
        let children = |tree: &CallTree, node: &Option<Node>| {
            let node = node.as_ref();
            node.map_or_else(Vec::new, |node| tree.children_unsorted(node))
        };
        let mut gone: Vec<Option<Node>> =
            children(before, &at.before).into_iter().map(Some).collect();
        let mut known: HashMap<Known, Vec<usize>> = HashMap::new();
        for (number, node) in gone.iter().flatten().enumerate() {
            known.entry(before.known(node)).or_default().push(number);
        }
        let mut pairs: Vec<Pair> = children(self, &at.now)
            .into_iter()
            .map(|node| {
                let same = known.get_mut(&self.known(&node));
                let found = same.and_then(|numbers| self.take_best(before, &node, numbers, &gone));
                Pair {
                    now: Some(node),
                    before: found.and_then(|number| gone[number].take()),
                }
            })
            .collect();
        pairs.extend(gone.into_iter().flatten().map(|node| Pair {
            now: None,
            before: Some(node),
        }));
        let samples = |node: Option<Node>| node.map_or(0, |node| node.samples);
        few::sort_by_key(&mut pairs, |pair| {
            Reverse((samples(pair.now), samples(pair.before)))
        });
        pairs
    }

    /// The key of a node in another tree: its name, and for functions also the module.
    fn known(&self, node: &Node) -> Known {
        match node.kind {
            NodeKind::Function { id, inlined } => {
                let function = self.function(id);
                Known {
                    name: function.name,
                    module: function.module,
                    role: Some(function.role),
                    inlined,
                }
            }
            kind => Known {
                name: self.name(kind),
                module: Arc::default(),
                role: None,
                inlined: false,
            },
        }
    }

    /// Takes, among several nodes with the same key, the one of the same build, else the first.
    fn take_best(
        &self,
        before: &CallTree,
        node: &Node,
        numbers: &mut Vec<usize>,
        gone: &[Option<Node>],
    ) -> Option<usize> {
        let build_id = |tree: &CallTree, node: &Node| match node.kind {
            NodeKind::Function { id, .. } => Some(tree.function(id).build_id),
            _ => None,
        };
        let is_same_build = |number: &usize| {
            let other = gone[*number].as_ref();
            other.is_some_and(|other| build_id(before, other) == build_id(self, node))
        };
        let best = match numbers.len() {
            0 => return None,
            1 => 0,
            _ => numbers.iter().position(is_same_build).unwrap_or(0),
        };
        Some(numbers.remove(best))
    }
}
