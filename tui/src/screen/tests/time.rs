//! Tests of the map of time.

use super::*;
use crate::calendar::SECOND_NS;
use crate::fixture::tree_step;
use crate::knobs::Window;
use proptest::prelude::*;

fn time(width: u16, height: u16) -> Hand {
    let mut hand = Hand::new(width, height);
    hand.show(tree_step(0)).keys("/SeqNext\n\u{1b}6");
    hand
}

#[test]
fn times_at_every_size() {
    for (width, height) in [(60, 16), (80, 24), (120, 40), (160, 45)] {
        let mut hand = time(width, height);
        hand.looks_like(&format!("time-{width}x{height}"));
        hand.keys("hhhhjjvll");
        hand.looks_like_in_ascii(&format!("time-{width}x{height}-ascii"));
    }
    time(80, 24).keys("i").looks_like("time-explain-80x24");
    time(80, 24).keys("?").looks_like("time-help-80x24");
    time(80, 24).keys("%%%%").looks_like("time-unit-80x24");
}

#[test]
fn rows_may_be_cpus_or_threads() {
    let mut hand = time(80, 24);
    let sum = |hand: &Hand| {
        let answer = hand.app.views.time.answer().expect("an answer");
        answer.all.cells.iter().sum::<u64>()
    };
    let all = sum(&hand);
    for rows in ["cpus", "threads"] {
        hand.keys("o");
        assert_eq!(sum(&hand), all);
        hand.looks_like(&format!("time-{rows}-80x24"));
        // Whole seconds are marked, in whatever row the cursor is.
        hand.keys("hhvlj");
        let (from, to) = hand.app.views.time.stretch().expect("a stretch");
        assert_eq!((from % SECOND_NS, to - from), (0, 2 * SECOND_NS));
        hand.looks_like_in_ascii(&format!("time-{rows}-80x24-ascii"));
        hand.keys("\u{1b}");
    }
    hand.keys("i").looks_like("time-threads-explain-80x24");
    hand.keys("o");
    assert_eq!(hand.app.views.time.rows(), 10);
}

#[test]
fn the_mouse_marks_and_what_is_different_is_said() {
    use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
    let mut hand = time(120, 40);
    let mut mouse = |kind, column| {
        hand.event(Event::Mouse(MouseEvent {
            kind,
            column,
            row: 8,
            modifiers: KeyModifiers::NONE,
        }));
    };
    mouse(MouseEventKind::Down(MouseButton::Left), 100);
    mouse(MouseEventKind::Drag(MouseButton::Left), 108);
    mouse(MouseEventKind::Drag(MouseButton::Left), 112);
    let (from, to) = hand.app.views.time.marked().expect("a mark");
    assert_eq!((from.row, to.row), (3, 3));
    assert!(to.second - from.second > 4);
    assert!(hand.app.views.time.apart().is_some());
    let frame = hand.frame();
    assert!(frame.contains("mark   in it"), "{frame}");
}

#[test]
fn what_is_marked_becomes_the_window_of_every_view() {
    let mut hand = time(80, 24);
    let map = &hand.app.views.time.answer().expect("an answer").all;
    assert_eq!(
        map.cells.iter().sum::<u64>(),
        3_277 + 21,
        "all that is kept"
    );
    // The newest six seconds except the last one, from the third row on.
    hand.keys("hhhhhjjvllllkk");
    let (from, to) = hand.app.views.time.marked().expect("a mark");
    assert_eq!((to.second - from.second, from.row, to.row), (4, 2, 0));
    let map = &hand.app.views.time.answer().expect("an answer").all;
    let cell = |second: u64, row| map.cell((second - map.first_second) as usize, row);
    let cells =
        (from.second..=to.second).flat_map(|second| (0..map.rows).map(move |row| (second, row)));
    let inside =
        cells.filter(|cell| (from.second, from.row) <= *cell && *cell <= (to.second, to.row));
    let marked: u64 = inside.map(|(second, row)| cell(second, row)).sum();
    assert!(marked > 100 && marked < 3_277);
    hand.keys("\n");
    assert!(matches!(hand.app.knobs.window, Window::Between { .. }));
    assert_eq!(hand.app.shown.report.samples, marked);
    assert!(hand.frame().contains("marked (3.9s)"), "{}", hand.frame());
    // The map still shows all samples.
    let map = &hand.app.views.time.answer().expect("an answer").all;
    assert_eq!(map.cells.iter().sum::<u64>(), 3_277 + 21);
    for view in ["1", "2", "3", "4", "5"] {
        hand.keys(view);
        let header = format!("{} samples", crate::words::units::count(marked));
        assert!(hand.frame().contains(&header), "{view}");
    }
    hand.keys("2");
    assert_eq!(
        hand.app
            .views
            .tree
            .trees()
            .map(|trees| trees.now.root().samples),
        Some(marked)
    );
    hand.keys("6,");
    assert_eq!(hand.app.shown.report.samples, 3_277);
}

#[test]
fn a_second_mark_ends_the_stretch_and_a_third_begins_another() {
    let mut hand = time(80, 24);
    let seconds = |hand: &Hand| {
        let (from, to) = hand.app.views.time.marked().expect("a mark");
        to.second - from.second
    };
    hand.keys("hhhhhvll");
    assert_eq!(seconds(&hand), 2, "to the cursor");
    hand.keys("vhhh");
    assert_eq!(seconds(&hand), 2, "to where it was ended");
    assert!(!hand.frame().contains("v: to here"), "{}", hand.frame());
    hand.keys("v");
    assert_eq!(seconds(&hand), 0, "another begins");
    hand.keys("\u{1b}");
    assert!(hand.app.views.time.marked().is_none());
}

#[test]
fn a_stretch_keeps_its_times_when_the_map_gets_more_rows() {
    let mut hand = time(80, 16);
    let times = |hand: &Hand| hand.app.views.time.stretch().expect("a stretch");
    hand.keys("hhhhhjjvlljjv");
    let (rows, before) = (hand.app.views.time.rows(), times(&hand));
    hand.event(Event::Resize(Size {
        width: 80,
        height: 24,
    }));
    assert_eq!(hand.app.views.time.rows(), 2 * rows);
    let after = times(&hand);
    assert_eq!(after.0, before.0);
    // The last cell is half as long now.
    assert_eq!(before.1 - after.1, SECOND_NS / rows as u64 / 2);
}

#[test]
fn back_ends_the_mark_first() {
    let mut hand = time(80, 24);
    hand.keys("hhv");
    assert!(hand.app.views.time.marked().is_some());
    hand.keys("\u{1b}");
    assert!(hand.app.views.time.marked().is_none());
    assert_eq!(hand.app.view, ViewId::Time);
}

#[test]
fn the_selected_function_is_on_the_map() {
    let hand = time(80, 24);
    let frame = hand.frame();
    assert!(frame.contains("# half: SeqNext"), "{frame}");
    let answer = hand.app.views.time.answer().expect("an answer");
    let (own, _) = answer.own.as_ref().expect("the function's");
    assert_eq!(own.cells.iter().sum::<u64>(), 704 + 2);
    let signs = frame.matches('#').count();
    assert!(signs >= 2 + 2, "{frame}");
}

#[test]
fn a_held_second_stays_under_the_cursor() {
    let mut hand = time(80, 24);
    hand.keys("hhhj").wait(2_000);
    let before = hand.app.views.time.selected();
    hand.show(tree_step(9));
    assert_eq!(hand.app.views.time.selected(), before);
    hand.keys("G");
    assert_ne!(hand.app.views.time.selected(), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn nothing_breaks(
        deeds in prop::collection::vec(
            (prop::sample::select(vec!['o', 'j', 'k', 'h', 'l', 'G', 'g', 'v', '\n', '\u{8}', ',', 's', 'r']), 0u64..40),
            1..30,
        ),
    ) {
        let mut hand = time(80, 24);
        for (key, step) in deeds {
            match key {
                's' => hand.wait(2_000).show(tree_step(step)),
                'r' => hand.event(Event::Resize(Size { width: 60 + step as u16 * 5, height: 16 + step as u16 })),
                key => hand.keys(&key.to_string()),
            };
            rules::frame(&hand.app, &UTF8);
            rules::frame(&hand.app, &ASCII);
        }
    }
}
