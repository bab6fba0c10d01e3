//! Two trees side by side, and a part beside the rest.

use crate::common::{self, given, select, store};
use profile::diff::apart;
use profile::query::{CallTree, Direction, GroupBy, Pair};
use profile::{
    Cancel, Ending, Frame, FrameKind, ModuleId, NameState, NewSample, ProcessId, Query, Selection,
    Store, TimeRange, View,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn tree(selection: &Selection, direction: Direction) -> CallTree {
    let tree = selection.tree(direction, GroupBy::Process, &Cancel::new());
    tree.unwrap()
}

/// All places below a node, by their path from the root: samples before and now.
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
            // Both sides of a pair have the numbers that each tree has alone.
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

/// Ten seconds of `usual`, in one of which `odd` has a fifth of the time.
fn seconds() -> View {
    let mut store = Store::new(common::limits());
    store.add_module(ModuleId(1), "app", "/app");
    for second in 0..10u64 {
        for tick in 0..100 {
            let address = if second == 4 && tick % 5 == 0 { 2 } else { 1 };
            assert!(store.add_sample(NewSample {
                time_ns: second * 1_000_000_000 + tick * 10_000_000,
                cpu: 0,
                process: ProcessId(1),
                tid: 1,
                comm: "app",
                frames: &[Frame {
                    module: ModuleId(1),
                    address,
                    kind: FrameKind::User
                }],
                kernel_frames: 0,
                ending: Ending::Root,
                weight: 1,
            }));
        }
    }
    for id in store.frames_to_name(usize::MAX) {
        let name = ["", "usual", "odd"][store.frame(id).expect("asked for").address as usize];
        store.set_name(id, NameState::Named(name.into()));
    }
    store.view()
}

#[test]
fn what_a_second_has_of_its_own_is_told() {
    let view = seconds();
    let select = |window| {
        let query = Query {
            window,
            ..Query::default()
        };
        view.select(&query, &Cancel::new()).expect("not cancelled")
    };
    let all = select(TimeRange::ALL);
    let second = |at: u64| {
        select(TimeRange::between(
            at * 1_000_000_000 - 1,
            (at + 1) * 1_000_000_000 - 1,
        ))
    };
    let told: Vec<(String, i64)> = apart(&second(4), &all)
        .iter()
        .map(|each| (each.name.to_string(), each.points as i64))
        .collect();
    assert_eq!(told, [("odd".into(), 20), ("usual".into(), -20)]);
    assert_eq!(apart(&second(6), &all).len(), 0, "nothing that is sure");
    assert_eq!(apart(&all, &all).len(), 0, "there is no rest");
}
