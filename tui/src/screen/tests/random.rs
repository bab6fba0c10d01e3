//! Random events, with the rules checked after each of them.

use super::{ASCII, Hand, UTF8};
use crate::app::Event;
use crate::fixture::{step, tree_step};
use crate::geometry::Size;
use crate::screen::rules;
use crate::view_id::ViewId;
use crate::words::units;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Deed {
    Key(KeyCode, bool),
    Snapshot(u64),
    /// A snapshot that has stacks.
    Stacks(u64),
    Resize(u16, u16),
    Mouse(MouseEventKind, u16, u16),
    Wait(u64),
}

fn any_key() -> impl Strategy<Value = Deed> {
    let code = prop_oneof![
        6 => prop::char::range(' ', '~').prop_map(KeyCode::Char),
        4 => prop::sample::select(vec![
            KeyCode::Up, KeyCode::Down, KeyCode::PageUp, KeyCode::PageDown, KeyCode::Home,
            KeyCode::End, KeyCode::Esc, KeyCode::Enter, KeyCode::Backspace, KeyCode::Tab,
            KeyCode::BackTab, KeyCode::Left, KeyCode::Right, KeyCode::F(1), KeyCode::F(3), KeyCode::F(9),
        ]),
        1 => any::<char>().prop_map(KeyCode::Char),
    ];
    (code, prop::bool::weighted(0.1)).prop_map(|(code, control)| Deed::Key(code, control))
}

fn any_mouse() -> impl Strategy<Value = Deed> {
    let kind = prop::sample::select(vec![
        MouseEventKind::Down(MouseButton::Left),
        MouseEventKind::ScrollDown,
        MouseEventKind::ScrollUp,
    ]);
    (kind, 0u16..310, 0u16..90).prop_map(|(kind, x, y)| Deed::Mouse(kind, x, y))
}

fn any_deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        8 => any_key(),
        4 => (0u64..40).prop_map(Deed::Snapshot),
        2 => (0u64..40).prop_map(Deed::Stacks),
        2 => (1u16..300, 1u16..80).prop_map(|(width, height)| Deed::Resize(width, height)),
        1 => any_mouse(),
        1 => Just(Deed::Key(KeyCode::Char('w'), true)),
        2 => (0u64..3_000).prop_map(Deed::Wait),
    ]
}

fn apply(hand: &mut Hand, deed: &Deed) {
    match deed {
        Deed::Key(code, control) => {
            let modifiers = if *control {
                KeyModifiers::CONTROL
            } else {
                KeyModifiers::NONE
            };
            hand.event(Event::Key(KeyEvent::new(*code, modifiers)));
        }
        Deed::Snapshot(number) => {
            hand.show(step(*number));
        }
        Deed::Stacks(number) => {
            hand.show(tree_step(*number));
        }
        Deed::Resize(width, height) => {
            let (width, height) = (*width, *height);
            hand.event(Event::Resize(Size { width, height }));
        }
        Deed::Mouse(kind, column, row) => {
            hand.event(Event::Mouse(MouseEvent {
                kind: *kind,
                column: *column,
                row: *row,
                modifiers: KeyModifiers::NONE,
            }));
        }
        Deed::Wait(milliseconds) => {
            hand.wait(*milliseconds);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_events_break_a_rule(deeds in prop::collection::vec(any_deed(), 1..40)) {
        let mut hand = Hand::new(80, 24);
        for deed in &deeds {
            apply(&mut hand, deed);
            rules::frame(&hand.app, &UTF8);
        }
        rules::frame(&hand.app, &ASCII);
    }

    /// Whatever arrives and however the terminal changes, the selected function stays selected, and
    /// on the same line if the size of the terminal does not change.
    #[test]
    fn a_selection_sticks(
        start in 1usize..25,
        deeds in prop::collection::vec(prop_oneof![
            (0u64..40).prop_map(Deed::Snapshot),
            (60u16..300, 16u16..80).prop_map(|(width, height)| Deed::Resize(width, height)),
            (0u64..3_000).prop_map(Deed::Wait),
        ], 1..20),
    ) {
        let mut hand = Hand::new(80, 24);
        hand.show(step(0)).keys(&"j".repeat(start)).wait(2_000);
        let mut frame = hand.selected().expect("a selection");
        for deed in &deeds {
            let line = hand.app.views.functions.table.selected_line();
            let geometry = hand.app.geometry();
            apply(&mut hand, deed);
            let report = &hand.app.shown.report;
            let expected = report.find_function(frame).map_or(frame, |at| report.functions[at].id);
            let owner = report.owners[frame.0 as usize];
            let held = hand.selected().expect("a selection");
            prop_assert!(held == expected || held == owner, "{held:?} {expected:?}");
            // A function that was merged with another one in one snapshot may be separate again in
            // an older one; the selection has moved along.
            frame = held;
            let functions = &hand.app.views.functions.table;
            if hand.app.geometry() == geometry {
                let at_an_end = functions.offset() == 0
                    || functions.offset() + usize::from(geometry.map_or(0, |g| g.body_height))
                        > functions.len();
                prop_assert!(functions.selected_line() == line || at_an_end);
            }
        }
    }

    #[test]
    fn a_frozen_screen_does_not_change(numbers in prop::collection::vec(0u64..40, 1..10)) {
        let mut hand = Hand::new(80, 24);
        hand.show(step(0)).keys("jj").wait(2_000).keys(" ");
        // All lines except the one with the time and the number of waiting samples.
        let still = |hand: &Hand| {
            let frame = hand.frame();
            let lines = frame.lines().enumerate().filter(|(at, _)| *at != 3);
            lines.map(|(_, line)| line.to_owned()).collect::<Vec<_>>()
        };
        let before = still(&hand);
        for number in numbers {
            hand.wait(900).show(step(number));
            prop_assert_eq!(&still(&hand), &before);
        }
    }

    /// The number of samples in the header is what the numbers below it are shares of, and what
    /// they add up to, even while an answer is still to come.
    #[test]
    fn header_and_body_count_the_same_samples(
        view in prop::sample::select(vec!["1", "2", "3", "4", "5", "1\n"]),
        deeds in prop::collection::vec(prop_oneof![
            (0u64..40).prop_map(Deed::Stacks),
            any_key(),
            (0u64..3_000).prop_map(Deed::Wait),
        ], 1..20),
    ) {
        let mut hand = Hand::new(80, 24);
        hand.show(tree_step(0)).keys(view);
        for deed in &deeds {
            apply(&mut hand, deed);
            let app = &hand.app;
            let (counted, report) = (app.counted(), &app.shown.report);
            let sum = match app.view {
                ViewId::Functions => report.functions.iter().map(|row| row.self_samples).sum(),
                ViewId::Processes => report.processes.iter().map(|row| row.samples).sum(),
                ViewId::Threads => report.threads.iter().map(|row| row.samples).sum(),
                ViewId::Tree => match app.views.tree.side().rows().first() {
                    Some(root) => root.samples,
                    None => continue,
                },
                ViewId::Flame if !app.views.flame.is_zoomed() => {
                    match app.views.flame.shown().next().and_then(|(_, row)| row.first()) {
                        Some(root) if app.views.flame.offset() == 0 => root.samples,
                        _ => continue,
                    }
                }
                _ => continue,
            };
            prop_assert_eq!(sum, counted, "{:?}", app.view);
            let header = hand.frame();
            let header = header.lines().nth(2).unwrap_or_default();
            let is_browsing = matches!(app.mode, crate::app::mode::Mode::Browse);
            prop_assert!(!is_browsing || header.starts_with(&units::count(counted)), "{}", header);
        }
    }

    #[test]
    fn any_size_is_drawn(width in 1u16..300, height in 1u16..80, view in 0..ViewId::ALL.len()) {
        let mut hand = Hand::new(width, height);
        hand.frame();
        hand.show(tree_step(5));
        for _ in 0..view {
            hand.code(KeyCode::Tab);
        }
        for keys in ["", "?", "q", "/x", "\n", "i", " "] {
            hand.keys(keys);
            rules::frame(&hand.app, &UTF8);
        }
        rules::frame(&hand.app, &ASCII);
    }
}
