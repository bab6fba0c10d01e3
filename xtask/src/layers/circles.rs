//! Finds circles in a graph: groups of nodes, each of which leads to every other.

use std::collections::{BTreeMap, BTreeSet};

/// For each node the nodes to which it leads.
pub type Graph<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Returns the groups of two or more nodes that lead to each other, sorted by name.
pub fn circles<'a>(graph: &Graph<'a>) -> Vec<BTreeSet<&'a str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = graph
        .keys()
        .map(|node| (*node, reached_from(graph, node)))
        .collect();
    let mut found: Vec<BTreeSet<&str>> = Vec::new();
    for (node, reached) in &reach {
        if reached.contains(node) && !found.iter().any(|circle| circle.contains(node)) {
            let returns = |other: &&&str| reach.get(**other).is_some_and(|r| r.contains(node));
            found.push(reached.iter().filter(returns).copied().collect());
        }
    }
    found
}

/// Returns every node that can be reached from `start` by one or more arrows.
fn reached_from<'a>(graph: &Graph<'a>, start: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![start];
    while let Some(node) = open.pop() {
        for next in graph.get(node).into_iter().flatten().copied() {
            if reached.insert(next) {
                open.push(next);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_who_leads_to_each_other_and_nobody_else() {
        let arrows = [
            ("a", "b"),
            ("b", "c"),
            ("c", "a"),
            ("c", "d"),
            ("d", "e"),
            ("x", "a"),
            ("y", "z"),
            ("z", "y"),
        ];
        let mut graph = Graph::new();
        for (from, to) in arrows {
            graph.entry(from).or_default().insert(to);
        }
        let found = circles(&graph);
        assert_eq!(found, [BTreeSet::from(["a", "b", "c"]), ["y", "z"].into()]);
    }
}
