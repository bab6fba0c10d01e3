//! Arranges a list of rows as a *family*: rows that descend from another row are below it. Siblings
//! are in the order of the list.

use std::collections::HashMap;
use std::sync::Arc;

/// The id of a row and of its parent, which need not be in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    pub id: u32,
    pub parent: Option<u32>,
}

/// How many generations are indented. Deeper rows are drawn at this depth.
const DEPTH_MAX: usize = 8;

/// Returns the indices of the rows in their new order, each with the guides that are drawn before
/// its name. Every row occurs once, even if parents form a circle.
///
/// ```text
/// postgres          siblings whose parent
/// ├─ autovacuum     is not in the list:
/// └─ backend        ┌─ worker
///    └─ helper      └─ worker
/// ```
pub fn arrange(members: &[Member]) -> Vec<(usize, Arc<str>)> {
    // If two rows have the same id, the first one is the parent.
    let mut by_id: HashMap<u32, usize> = HashMap::new();
    for (at, member) in members.iter().enumerate() {
        by_id.entry(member.id).or_insert(at);
    }
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut orphans: HashMap<u32, Vec<usize>> = HashMap::new();
    for (at, member) in members.iter().enumerate() {
        let parent = member.parent.filter(|parent| *parent != member.id);
        match parent.map(|parent| (parent, by_id.get(&parent))) {
            Some((_, Some(above))) if *above != at => children.entry(*above).or_default().push(at),
            // Children of init (1) and kthreadd (2) are not related to each other.
            Some((parent, None)) if parent > 2 => orphans.entry(parent).or_default().push(at),
            _ => {}
        }
    }
    let mut walk = Walk {
        children: &children,
        seen: vec![false; members.len()],
        rows: Vec::with_capacity(members.len()),
    };
    for (at, member) in members.iter().enumerate() {
        if walk.seen[at] {
            continue;
        }
        match member.parent {
            Some(parent) if by_id.contains_key(&parent) => {}
            Some(parent) if orphans.get(&parent).is_some_and(|all| all.len() > 1) => {
                walk.siblings(&orphans[&parent]);
            }
            _ => walk.family(at, String::new(), ""),
        }
    }
    // The remaining rows are those whose parents form a circle.
    for at in 0..members.len() {
        walk.family(at, String::new(), "");
    }
    walk.rows
}

struct Walk<'a> {
    children: &'a HashMap<usize, Vec<usize>>,
    /// Whether each row was added already.
    seen: Vec<bool>,
    rows: Vec<(usize, Arc<str>)>,
}

impl Walk<'_> {
    /// Adds rows with the same parent, which is not in the list.
    fn siblings(&mut self, siblings: &[usize]) {
        for (place, at) in siblings.iter().enumerate() {
            let joint = match place {
                0 => "┌─ ",
                _ if place + 1 == siblings.len() => "└─ ",
                _ => "├─ ",
            };
            self.family(*at, String::new(), joint);
        }
    }

    /// Adds a row and all its descendants. It uses a list instead of recursion, because a family
    /// may be deeper than our stack allows.
    fn family(&mut self, first: usize, guides: String, joint: &'static str) {
        let mut todo = vec![(first, guides, joint, 0)];
        while let Some((at, guides, joint, depth)) = todo.pop() {
            if std::mem::replace(&mut self.seen[at], true) {
                continue;
            }
            self.rows.push((at, format!("{guides}{joint}").into()));
            let Some(children) = self.children.get(&at) else {
                continue;
            };
            let below = match joint {
                _ if depth >= DEPTH_MAX => guides,
                "" => guides,
                "└─ " => guides + "   ",
                _ => guides + "│  ",
            };
            let last = children.len() - 1;
            for (place, child) in children.iter().enumerate().rev() {
                let joint = if place == last { "└─ " } else { "├─ " };
                todo.push((*child, below.clone(), joint, depth + 1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(members: &[(u32, u32)]) -> String {
        let of = |(id, parent): &(u32, u32)| Member {
            id: *id,
            parent: Some(*parent),
        };
        let members: Vec<Member> = members.iter().map(of).collect();
        let rows = arrange(&members)
            .into_iter()
            .map(|(at, guides)| format!("{guides}{}\n", members[at].id));
        rows.collect()
    }

    #[test]
    fn children_stand_below_their_parent_in_the_order_of_the_list() {
        let all = [(9, 7), (50, 1), (7, 1), (30, 9), (8, 7), (60, 1)];
        assert_eq!(drawn(&all), "50\n7\n├─ 9\n│  └─ 30\n└─ 8\n60\n");
    }

    #[test]
    fn children_of_a_parent_without_a_row_hang_together() {
        let all = [(9, 700), (50, 1), (8, 700), (80, 8), (5, 44)];
        assert_eq!(drawn(&all), "┌─ 9\n└─ 8\n   └─ 80\n50\n5\n");
    }

    #[test]
    fn every_row_comes_once_whatever_the_numbers_say() {
        // A circle, a row that is its own parent, and two rows with the same id.
        let all = [(1, 2), (2, 1), (3, 3), (4, 4), (4, 3), (5, 4)];
        let rows = drawn(&all);
        assert_eq!(rows.lines().count(), all.len(), "{rows}");
        // Too deep for recursion, and too deep to indent every generation.
        let deep: Vec<(u32, u32)> = (10..100_000).map(|id| (id, id - 1)).collect();
        let rows = drawn(&deep);
        assert_eq!(rows.lines().count(), deep.len());
        assert!(rows.lines().all(|row| row.chars().count() < 40));
    }
}
