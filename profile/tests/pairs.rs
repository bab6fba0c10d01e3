//! Two trees side by side.

mod common;

use common::{given, select, store};
use profile::query::{CallTree, Direction, GroupBy, Pair};
use profile::{Cancel, Selection};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn tree(selection: &Selection, direction: Direction) -> CallTree {
    let tree = selection.tree(direction, GroupBy::Process, &Cancel::new());
    tree.unwrap()
}

/// Every place below, by its way from the root: samples before and now.
type Places = BTreeMap<String, (u64, u64)>;

fn places(now: &CallTree, before: &CallTree, at: &Pair, way: &str, all: &mut Places) {
    let (mut sum_now, mut sum_before) = (0, 0);
    for pair in now.pairs(before, at) {
        let samples = |node: Option<profile::query::Node>| node.map_or(0, |node| node.samples);
        let name = |tree: &CallTree, node: Option<_>| {
            node.map(|node: profile::query::Node| tree.name(node.kind))
        };
        if let (Some(a), Some(b)) = (name(before, pair.before), name(now, pair.now)) {
            assert_eq!(a, b);
        }
        let name = name(now, pair.now).or(name(before, pair.before)).unwrap();
        let way = format!("{way};{name}");
        let place = all.entry(way.clone()).or_default();
        *place = (place.0 + samples(pair.before), place.1 + samples(pair.now));
        sum_before += samples(pair.before);
        sum_now += samples(pair.now);
        places(now, before, &pair, &way, all);
    }
    let below = |node: Option<profile::query::Node>| node.map_or(0, |n| n.samples - n.own);
    assert_eq!((below(at.before), below(at.now)), (sum_before, sum_now));
}

fn compare(before: &Selection, now: &Selection, direction: Direction) -> Places {
    let (before, now) = (tree(before, direction), tree(now, direction));
    let mut all = Places::new();
    places(&now, &before, &now.root_pair(&before), "", &mut all);
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_place_of_both_is_there_once(
        samples in prop::collection::vec(given(), 0..40),
        others in prop::collection::vec(given(), 0..40),
    ) {
        let (a, b) = (store(&samples), store(&others));
        for direction in [Direction::TopDown, Direction::BottomUp] {
            let (a, b) = (select(&a, ""), select(&b, ""));
            let there = compare(&a, &b, direction);
            // What stands beside is what either tree says by itself.
            let alone = |of: &Selection| compare(of, of, direction);
            let (before, now) = (alone(&a), alone(&b));
            for (way, (was, is)) in &there {
                prop_assert_eq!(*was, before.get(way).map_or(0, |counts| counts.0), "{}", way);
                prop_assert_eq!(*is, now.get(way).map_or(0, |counts| counts.1), "{}", way);
            }
            for (way, counts) in before.iter().chain(&now) {
                prop_assert!(there.contains_key(way), "{}", way);
                prop_assert_eq!(counts.0, counts.1, "A is A: {}", way);
            }
        }
    }
}
