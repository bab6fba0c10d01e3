//! Tests of the flame graph.

use super::*;
use crate::fixture::tree_step;
use proptest::prelude::*;

fn flame(width: u16, height: u16) -> Hand {
    let mut hand = Hand::new(width, height);
    hand.show(tree_step(0)).keys("3");
    hand
}

/// Returns name and samples of the selected frame.
fn selected(hand: &Hand) -> (String, u64) {
    let bar = hand.app.views.flame.selected().expect("a selected frame");
    (bar.name.to_string(), bar.samples)
}

/// Returns the function that the user selected.
fn held(hand: &Hand) -> Option<String> {
    let flame = &hand.app.views.flame;
    let id = flame.held_function()?;
    Some(flame.tree()?.function(id).name.to_string())
}

#[test]
fn flames_at_every_size() {
    for (width, height) in [(60, 16), (80, 24), (120, 40), (160, 45)] {
        let mut hand = flame(width, height);
        hand.looks_like(&format!("flame-{width}x{height}"));
        hand.keys("jjjjjjjjj");
        hand.looks_like_in_ascii(&format!("flame-{width}x{height}-ascii"));
        hand.keys("\n");
        hand.looks_like(&format!("flame-zoomed-{width}x{height}"));
    }
    flame(80, 24).keys("I").looks_like("flame-bottom-up-80x24");
    flame(80, 24).keys("?").looks_like("flame-help-80x24");
    flame(80, 24).keys("%%%jj").looks_like("flame-unit-80x24");
    flame(80, 24)
        .keys("/LWLock\ni")
        .looks_like("flame-found-80x24");
}

#[test]
fn arrows_go_from_frame_to_frame() {
    let mut hand = flame(80, 24);
    hand.keys("+");
    assert_eq!(selected(&hand).0, "all");
    hand.keys("j");
    assert_eq!(selected(&hand).0, "_start");
    hand.keys("/^IndexNext\n");
    hand.code(KeyCode::Right);
    assert_eq!(selected(&hand).0, "SeqNext");
    hand.code(KeyCode::Down);
    assert_eq!(selected(&hand).0, "heap_getnext");
    hand.code(KeyCode::Up).code(KeyCode::Up);
    assert_eq!(selected(&hand).0, "ExecScan");
    hand.code(KeyCode::Down);
    assert_eq!(selected(&hand).0, "SeqNext", "down goes where one was");
    hand.code(KeyCode::Left);
    assert_eq!(selected(&hand).0, "IndexNext");
}

#[test]
fn zooming_in_and_out_is_the_identity() {
    let mut hand = flame(80, 24);
    hand.keys("/^_bt_compare\n\u{1b}");
    let before = hand.frame();
    hand.keys("\n");
    let zoomed = hand.frame();
    assert!(
        zoomed.contains("strcoll_l") && zoomed.contains("zoom 16.6%"),
        "{zoomed}"
    );
    assert!(!zoomed.contains("|SeqNext"));
    hand.keys("\u{8}");
    assert_eq!(hand.frame(), before);
}

#[test]
fn a_click_selects_the_frame_under_it() {
    use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
    let mut hand = flame(80, 24);
    let frame = hand.frame();
    let (row, line) = frame
        .lines()
        .enumerate()
        .find(|(_, line)| line.contains("|SeqNext"))
        .expect("it is there");
    let column = line
        .split("SeqNext")
        .next()
        .expect("before it")
        .chars()
        .count();
    hand.event(Event::Mouse(MouseEvent {
        kind: MouseEventKind::Down(MouseButton::Left),
        column: column as u16,
        row: row as u16,
        modifiers: KeyModifiers::NONE,
    }));
    assert_eq!(selected(&hand).0, "SeqNext");
}

#[test]
fn the_selected_function_goes_along() {
    let mut hand = Hand::new(80, 24);
    hand.show(tree_step(0)).keys("/PinBuffer\n\u{1b}3");
    assert_eq!(selected(&hand), ("PinBuffer".into(), 144));
    hand.keys("/^SeqNext\n\u{1b}2");
    let tree = &hand.app.views.tree;
    let name = tree.selected().and_then(|row| tree.name(row));
    assert_eq!(name.as_deref(), Some("SeqNext"));
    hand.keys("1");
    assert_eq!(hand.app.selected_name().as_deref(), Some("SeqNext"));
    hand.keys("8");
    hand.keys("3");
    assert_eq!(selected(&hand).0, "SeqNext");
}

#[test]
fn a_narrow_function_is_zoomed_to() {
    let mut hand = Hand::new(80, 24);
    hand.show(tree_step(0)).keys("/HeapTupleSat\n3");
    assert_eq!(selected(&hand).0, "HeapTupleSatisfiesVisibility");
    assert!(hand.app.views.flame.is_zoomed());
    hand.looks_like("flame-narrow");
    hand.keys("\u{1b}");
    assert!(!hand.app.views.flame.is_zoomed());
    assert!(
        hand.frame()
            .contains("HeapTupleSatisfiesVisibility: too narrow here")
    );
    hand.keys("\n");
    assert_eq!(selected(&hand).0, "HeapTupleSatisfiesVisibility");
}

#[test]
fn a_vanished_frame_is_said_to_be_gone() {
    let mut hand = flame(80, 24);
    hand.keys("/^recv\n\u{1b}").wait(2_000);
    // This step lacks the only stack that has the function.
    hand.show(tree_step(15));
    assert!(
        hand.frame().contains("recv: gone from the window"),
        "{}",
        hand.frame()
    );
    hand.wait(2_000).show(tree_step(0));
    assert_eq!(selected(&hand).0, "recv");
}

#[test]
fn frames_lie_within_their_parents() {
    for (width, step) in [(80, 0), (160, 5), (61, 9)] {
        let mut hand = Hand::new(width, 60);
        hand.show(tree_step(step)).keys("3+");
        let flame = &hand.app.views.flame;
        let rows: Vec<_> = flame.shown().map(|(_, row)| row).collect();
        assert!(rows.len() > 10);
        for pair in rows.windows(2) {
            for bar in pair[1] {
                let parent = &pair[0][bar.parent];
                assert!(parent.start <= bar.start && bar.end() <= parent.end());
                assert!(bar.samples <= parent.samples);
            }
            for next in pair[1].windows(2) {
                assert!(next[0].end() <= next[1].start);
            }
        }
    }
}

#[test]
fn frames_with_one_child_each_are_one_row() {
    let mut hand = flame(80, 24);
    assert!(
        hand.frame()
            .contains("_start › 2 frames › PostgresMain [+]"),
        "{}",
        hand.frame()
    );
    // The function that is searched for gets a row of its own.
    hand.keys("/^main$\n\u{1b}");
    assert_eq!(selected(&hand).0, "main");
    assert_eq!(held(&hand).as_deref(), Some("main"));
    hand.keys("j");
    assert_eq!(selected(&hand).0, "PostgresMain");
    hand.keys("+");
    assert!(!hand.frame().contains("[+]"), "{}", hand.frame());
}

#[test]
fn colors_stay_with_their_modules() {
    let mut hand = flame(80, 24);
    hand.keys("+");
    let legend = |hand: &Hand| {
        let legend = hand.app.views.flame.legend();
        legend
            .map(|(tint, module)| (tint, module.to_owned()))
            .collect::<Vec<_>>()
    };
    let before = legend(&hand);
    assert_eq!(before[0].1, "postgres");
    for step in 4..20 {
        hand.wait(2_000).show(tree_step(step));
        assert_eq!(legend(&hand), before);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A selected frame stays selected through new snapshots and other sizes as long as it is
    /// visible, and no rule is broken.
    #[test]
    fn the_selection_sticks(
        deeds in prop::collection::vec(
            (prop::sample::select(vec!['j', 'k', 'h', 'l', 'G', 'g', '\n', '\u{8}', 'I', '#', 's', 'r']), 0u64..40),
            1..40,
        ),
    ) {
        let mut hand = flame(80, 24);
        for (key, step) in deeds {
            let before = held(&hand);
            let direction = hand.app.views.flame.direction();
            match key {
                's' => hand.wait(2_000).show(tree_step(if step < 4 { 0 } else { step })),
                'r' => hand.event(Event::Resize(Size { width: 60 + step as u16 * 5, height: 16 + step as u16 })),
                key => hand.keys(&key.to_string()),
            };
            rules::frame(&hand.app, &UTF8);
            rules::frame(&hand.app, &ASCII);
            let flame = &hand.app.views.flame;
            // Going back to before the direction changed restores another selection.
            if matches!(key, 's' | 'r' | '\u{8}') && flame.direction() == direction {
                prop_assert_eq!(held(&hand), before);
            }
            if flame.held_function().is_some() && flame.hidden().is_none() && flame.selected().is_some() {
                let id = flame.selected().and_then(|bar| bar.function.as_ref()).map(|f| f.id);
                prop_assert_eq!(id, flame.held_function());
            }
        }
    }
}
