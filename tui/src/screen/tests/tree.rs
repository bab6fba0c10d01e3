//! Tests of the call tree.

use super::*;
use crate::fixture::tree_step;
use proptest::prelude::*;

fn tree(width: u16, height: u16) -> Hand {
    let mut hand = Hand::new(width, height);
    hand.show(tree_step(0)).keys("2");
    hand
}

/// Returns name and samples of the selected row, and its line on the screen.
fn selected(hand: &Hand) -> (String, u64, usize) {
    let tree = &hand.app.views.tree;
    let row = tree.selected().expect("a selected row");
    let name = tree
        .name(row)
        .map_or_else(|| "rest".into(), |name| name.to_string());
    (
        name,
        row.samples,
        tree.side().index() - tree.side().offset(),
    )
}

fn row_count(hand: &Hand) -> usize {
    hand.app.views.tree.side().rows().len()
}

#[test]
fn trees_at_every_size() {
    for (width, height) in [(60, 16), (80, 24), (120, 40)] {
        let mut hand = tree(width, height);
        hand.keys("*");
        hand.looks_like(&format!("tree-{width}x{height}"));
        hand.keys("jk");
        hand.looks_like_in_ascii(&format!("tree-{width}x{height}-ascii"));
        hand.keys("gI").keys("jl");
        hand.looks_like(&format!("tree-bottom-up-{width}x{height}"));
    }
    tree(80, 24).keys("E").looks_like("tree-all-80x24");
    tree(80, 24).keys("?").looks_like("tree-help-80x24");
}

#[test]
fn the_hot_path_is_open_until_something_is_touched() {
    let mut hand = tree(80, 24);
    assert!(hand.frame().contains("heap_hot_search_buffer"));
    hand.keys("C");
    assert!(!hand.frame().contains("heap_hot_search_buffer"));
    hand.wait(2_000).show(tree_step(0));
    assert!(!hand.frame().contains("heap_hot_search_buffer"));
}

#[test]
fn a_rest_says_how_many_and_shows_them() {
    let mut hand = tree(80, 24);
    hand.keys("*/heap_hot\nl");
    assert_eq!(selected(&hand).0, "heap_hot_search_buffer");
    let frame = hand.frame();
    assert!(frame.contains("3 more, each <1%"), "{frame}");
    let before = row_count(&hand);
    while selected(&hand).0 != "rest" {
        hand.keys("j");
    }
    hand.code(KeyCode::Enter);
    assert_eq!(row_count(&hand), before + 3);
    assert_eq!(selected(&hand).0, "rest");
    hand.code(KeyCode::Enter);
    assert_eq!(row_count(&hand), before);
}

#[test]
fn left_closes_and_then_goes_to_the_caller() {
    let mut hand = tree(80, 24);
    hand.keys("/^IndexNext\n");
    let before = row_count(&hand);
    hand.code(KeyCode::Left);
    assert!(row_count(&hand) < before);
    assert_eq!(selected(&hand).0, "IndexNext");
    hand.code(KeyCode::Left);
    assert_eq!(selected(&hand).0, "ExecScan");
    hand.code(KeyCode::Right);
    assert_eq!(
        selected(&hand).0,
        "IndexNext",
        "an open row is left downwards"
    );
    hand.code(KeyCode::Right);
    assert_eq!(row_count(&hand), before);
}

#[test]
fn the_callers_of_a_function_are_a_tree() {
    let mut hand = Hand::new(80, 24);
    hand.show(tree_step(0)).keys("/copy_user\nt");
    assert_eq!(hand.app.view, ViewId::Tree);
    assert_eq!(selected(&hand).0, "copy_user_generic");
    hand.looks_like("tree-callers");
    hand.keys("\u{8}");
    assert_eq!(hand.app.view, ViewId::Functions);
    // A function that was never on top of a stack is searched for from the root.
    hand.keys("/main$\nn").keys("t");
    let (name, samples, _) = selected(&hand);
    assert!(name == "main" || name == "__libc_start_main", "{name}");
    assert_eq!(samples, 3_208);
}

#[test]
fn inverting_keeps_the_function() {
    let mut hand = tree(80, 24);
    hand.keys("E/PinBuffer\n");
    let there = selected(&hand);
    hand.keys("I");
    assert!(hand.frame().contains("BOTTOM-UP"));
    assert_eq!(selected(&hand).0, "PinBuffer");
    assert_eq!(hand.app.views.tree.selected().map(|row| row.depth), Some(1));
    hand.keys("I");
    assert_eq!(selected(&hand), there);
}

#[test]
fn a_cut_stack_says_why() {
    let mut hand = tree(80, 24);
    hand.keys("/stopped\n");
    let frame = hand.frame();
    assert!(frame.contains("[stopped: no frame pointer]"), "{frame}");
    hand.keys("i");
    assert!(hand.frame().contains("keeps no frame pointer"));
}

#[test]
fn shares_below_a_row_add_up() {
    let mut hand = tree(120, 60);
    hand.keys("E");
    let rows = hand.app.views.tree.side().rows();
    assert!(rows.len() > 12);
    for (at, row) in rows.iter().enumerate() {
        let below = rows[at + 1..]
            .iter()
            .take_while(|below| below.depth > row.depth);
        let children = below.filter(|below| below.depth == row.depth + 1 + below.run.len() as u32);
        let sum: u64 = children.map(|child| child.samples).sum();
        assert!(sum == 0 || sum + row.own == row.samples, "{row:?}");
    }
}

#[test]
fn a_run_of_frames_is_one_row_until_it_is_opened() {
    let mut hand = tree(80, 24);
    let run = "_start › 2 frames › PostgresMain [+]";
    assert!(hand.frame().contains(run), "{}", hand.frame());
    let before = row_count(&hand);
    hand.keys("j");
    assert_eq!(selected(&hand).0, "PostgresMain");
    hand.code(KeyCode::Enter);
    assert_eq!(selected(&hand).0, "PostgresMain");
    assert_eq!(row_count(&hand), before + 3);
    assert!(!hand.frame().contains(run));
    hand.wait(2_000).show(tree_step(0));
    assert_eq!(row_count(&hand), before + 3);
    // After closing its parent, the run is folded again.
    hand.keys("kkkhk").wait(2_000).show(tree_step(4));
    assert!(hand.frame().contains(run), "{}", hand.frame());
    hand.keys("/^PortalRun\n\u{1b}");
    assert_eq!(selected(&hand).0, "PortalRun");
    assert!(hand.frame().contains("PortalRun"));
}

#[test]
fn a_vanished_row_stays_below_its_callers() {
    let mut hand = tree(80, 24);
    hand.keys("Gl/bgworker\n").wait(2_000);
    assert_eq!(selected(&hand).0, "bgworker");
    hand.show(tree_step(20));
    assert_eq!(selected(&hand).0, "bgworker");
    hand.looks_like("tree-gone");
    hand.keys("k");
    assert!(!hand.frame().contains(" gone"));
}

#[test]
fn a_row_that_vanished_is_not_doubled_by_a_comparison() {
    for keys in ["b=", "b"] {
        let mut hand = tree(80, 24);
        hand.keys("Gl/bgworker\n").wait(2_000).keys(keys);
        hand.wait(2_000).show(tree_step(20)).wait(2_000);
        if keys == "b" {
            hand.keys("=").wait(2_000);
        }
        hand.show(tree_step(20));
        assert_eq!(selected(&hand).0, "bgworker", "{keys}");
        let frame = hand.frame();
        let rows = frame.lines().filter(|line| line.contains("bgworker"));
        let rows: Vec<&str> = rows.filter(|line| line.contains("gone")).collect();
        assert_eq!(rows.len(), 1, "{frame}");
        // The function shrank, or its samples in the baseline are not known. In no case did it
        // grow.
        assert!(!rows[0].contains('▲'), "{frame}");
        assert_eq!(rows[0].contains("-16.2     16.2"), keys == "b=", "{frame}");
    }
}

#[test]
fn a_selected_row_is_seen_when_its_run_branches() {
    let mut hand = tree(80, 24);
    hand.keys("C").wait(2_000).show(tree_step(39)).keys("G");
    let run = "[stopped: no frame pointer] › 1 frame › AllocSetAlloc [+]";
    assert!(hand.frame().contains(run), "{}", hand.frame());
    hand.wait(2_000).show(tree_step(0));
    assert_eq!(selected(&hand).0, "AllocSetAlloc");
    assert_eq!(selected(&hand).1, 17);
    assert!(!hand.frame().contains("gone"), "{}", hand.frame());
}

#[test]
fn rows_wait_while_keys_are_pressed() {
    let mut hand = tree(80, 24);
    hand.keys("E").wait(2_000).keys("j");
    let before = row_count(&hand);
    let samples = selected(&hand).1;
    hand.show(tree_step(7));
    assert_eq!((row_count(&hand), selected(&hand).1), (before, samples));
    hand.wait(1_000);
    assert_ne!(selected(&hand).1, samples);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Keys that fold and unfold keep a row selected, and no rule is broken.
    #[test]
    fn folds_keep_the_selection(
        deeds in prop::collection::vec(
            (prop::sample::select(vec!['\n', 'E', 'C', 'l', 'j', 'j', 'k', 'G', '*', 'I', 's']), 0u64..40),
            1..30,
        ),
    ) {
        let mut hand = tree(80, 24);
        for (key, step) in deeds {
            let before = selected(&hand);
            let fold = hand.app.views.tree.selected().map(|row| row.fold);
            hand.keys(&key.to_string());
            rules::frame(&hand.app, &UTF8);
            let opens = key == 'l' && fold == Some(crate::views::tree::Fold::Closed);
            let is_held = hand.app.views.tree.side().held_function().is_some();
            if matches!(key, '\n' | 'E' | 'C') && is_held || opens {
                let after = selected(&hand);
                prop_assert_eq!(&after.0, &before.0);
                // A small row that was selected before becomes a part of the rest.
                if after.0 != "rest" {
                    prop_assert_eq!(after.1, before.1);
                }
            }
            if key == 's' {
                let before = selected(&hand).0;
                hand.wait(2_000).show(tree_step(if step < 4 { 0 } else { step }));
                rules::frame(&hand.app, &ASCII);
                if is_held {
                    prop_assert_eq!(selected(&hand).0, before);
                }
            }
        }
    }
}

#[test]
fn by_process_and_by_thread() {
    let mut hand = Hand::new(120, 40);
    hand.show(tree_step(0)).wait(2_000);
    hand.keys("2").wait(2_000);
    let total = |hand: &Hand| hand.app.views.tree.side().rows()[0].samples;
    let before = (total(&hand), hand.frame());
    hand.keys("o").wait(2_000);
    assert!(
        hand.frame().contains("TOP-DOWN by process"),
        "{}",
        hand.frame()
    );
    let tree = &hand.app.views.tree;
    let name = tree.name(&tree.side().rows()[1]);
    assert_eq!(name.as_deref(), Some("postgres[4121]"));
    assert_eq!(total(&hand), before.0);
    hand.keys("jo").wait(2_000);
    assert!(hand.frame().contains("postgres/4121"), "{}", hand.frame());
    hand.keys("ji");
    assert!(
        hand.frame().contains("all that were taken there"),
        "{}",
        hand.frame()
    );
    hand.keys("o").wait(2_000);
    assert_eq!((total(&hand), hand.keys("g").frame()), before);
    hand.keys("3o").wait(2_000);
    assert!(
        hand.frame().contains("|postgres[4121] "),
        "{}",
        hand.frame()
    );
    hand.keys("I").wait(2_000);
    assert!(
        hand.frame()
            .contains("BOTTOM-UP: callers below their callee, by process")
    );
}

#[test]
fn find_reaches_what_is_closed() {
    let mut hand = tree(80, 24);
    hand.keys("C").wait(2_000);
    assert!(!hand.frame().contains("strcoll_l"));
    hand.keys("/strcoll\n").wait(2_000);
    assert_eq!(selected(&hand).0, "strcoll_l");
    hand.keys("/no_such_thing\n");
    assert_eq!(selected(&hand).0, "strcoll_l", "nothing is called so");
}

#[test]
fn a_function_is_found_the_other_way_round_where_one_looks_for_it() {
    let way = |hand: &Hand| {
        let tree = &hand.app.views.tree;
        let row = tree.selected().expect("a selected row");
        (selected(hand).0, row.depth)
    };
    let mut hand = tree(80, 24);
    hand.keys("/heap_hot\n\u{1b}I").wait(2_000);
    assert_eq!(
        way(&hand),
        ("heap_hot_search_buffer".into(), 1),
        "its own row"
    );
    // Most of its samples are below a deep stack. The nearest place is below the function that it
    // called last.
    let mut hand = tree(80, 24);
    hand.keys("/^ExecutorRun\n\u{1b}I").wait(2_000);
    assert_eq!(way(&hand), ("ExecutorRun".into(), 2));
    hand.keys("I").wait(2_000);
    assert_eq!(selected(&hand).0, "ExecutorRun");
}
