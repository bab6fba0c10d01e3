//! Tests of the code of a function.

use super::*;
use crate::fixture::{tree_of_build, tree_step};
use crate::views::code::{CodeRow, Layout};
use engine::snapshot::Baseline;
use profile::Filter;
use proptest::prelude::*;

fn code(width: u16, height: u16, name: &str) -> Hand {
    let mut hand = Hand::new(width, height);
    hand.show(tree_step(0));
    hand.keys(&format!("/{name}\n\u{1b}a"));
    assert_eq!(hand.app.view, ViewId::Code);
    hand
}

fn title(hand: &Hand) -> String {
    let answer = hand.app.views.code.answer().expect("an answer");
    answer.function.name.to_string()
}

/// Returns the samples of all rows that are not included in other rows.
fn sum(hand: &Hand) -> u64 {
    let rows = hand.app.views.code.rows().iter();
    rows.filter(|row| !row.is_part())
        .map(CodeRow::samples)
        .sum()
}

#[test]
fn code_at_every_size() {
    for (width, height) in [(60, 16), (80, 24), (120, 40), (160, 45)] {
        let mut hand = code(width, height, "heap_hot");
        hand.looks_like(&format!("code-{width}x{height}"));
        hand.keys("jj");
        hand.looks_like_in_ascii(&format!("code-{width}x{height}-ascii"));
    }
    for (keys, name) in [
        ("o", "source"),
        ("oo", "assembly"),
        ("ooA", "intel"),
        ("?", "help"),
        ("i", "explain"),
    ] {
        code(80, 24, "heap_hot")
            .keys(keys)
            .looks_like(&format!("code-{name}-80x24"));
    }
    code(80, 24, "copy_user").looks_like("code-kernel-80x24");
    code(80, 24, "heap_hot")
        .keys("%%%")
        .looks_like("code-unit-80x24");
    code(80, 24, "strcoll").looks_like("code-without-source-80x24");
    let mut none = Hand::new(80, 24);
    none.show(tree_step(0))
        .keys("87")
        .looks_like("code-of-nothing-80x24");
}

#[test]
fn jumps_have_arrows_and_can_be_followed() {
    let mut hand = code(100, 24, "heap_hot");
    assert!(!hand.frame().contains('►'), "below lines there is none");
    hand.keys("oo");
    let row = |frame: &str, place: &str| {
        let line = frame.lines().find(|line| line.contains(place));
        line.expect("it is on the screen").to_owned()
    };
    let frame = hand.frame();
    assert!(row(&frame, " +0x0 ").contains("┌► mov"), "{frame}");
    assert!(row(&frame, " +0x4 ").contains("│  test"), "{frame}");
    assert!(row(&frame, " +0xa ").contains("└─ jne"), "{frame}");
    hand.keys("jj\n");
    assert!(
        row(&hand.frame(), " +0x0 ").starts_with('>'),
        "{}",
        hand.frame()
    );
    // Where instructions need the room there are no arrows.
    hand.event(Event::Resize(Size {
        width: 60,
        height: 24,
    }));
    assert!(!hand.frame().contains('►'), "{}", hand.frame());
}

#[test]
fn every_layout_adds_up() {
    for name in ["heap_hot", "LWLock", "copy_user", "strcoll", "IndexNext"] {
        let mut hand = code(80, 24, name);
        for layout in [Layout::Both, Layout::Source, Layout::Assembly] {
            let answer = hand.app.views.code.answer().expect("an answer");
            let report = &hand.app.shown.report;
            let row = report
                .functions
                .iter()
                .find(|row| row.name == answer.function.name);
            assert_eq!(
                row.map(|row| row.self_samples),
                Some(sum(&hand)),
                "{name} {layout:?}"
            );
            hand.keys("o");
        }
    }
}

/// Returns the code, compared with a recording of step 0.
fn compared(width: u16, height: u16, name: &str, build_id: &[u8], step: u64) -> Hand {
    let mut hand = Hand::new(width, height);
    let then = tree_of_build(0, build_id).view;
    let baseline = Baseline::of_file(then.expect("it has one"), "all of then.pft");
    let begun = hand.app.begin_with(Filter::default(), 0, Some(baseline));
    assert_eq!(begun, Ok(()));
    hand.keys("=").show(tree_step(step)).keys(".....");
    hand.keys(&format!("/{name}\n\u{1b}a="));
    assert_eq!(hand.app.view, ViewId::Code);
    hand
}

/// Returns the sum of a layout's samples in the baseline.
fn sum_before(hand: &Hand) -> u64 {
    let rows = hand.app.views.code.rows().iter();
    rows.filter(|row| !row.is_part()).map(CodeRow::before).sum()
}

#[test]
fn what_it_was_before_adds_up_too() {
    for name in ["heap_hot", "LWLock", "copy_user", "strcoll", "IndexNext"] {
        for step in [0, 5, 11] {
            let mut hand = compared(80, 24, name, b"one build", step);
            for layout in [Layout::Both, Layout::Source, Layout::Assembly] {
                let code = &hand.app.views.code;
                let answer = code.answer().expect("an answer");
                let before = answer.before.as_ref().expect("a baseline");
                assert!(before.is_same_build && before.samples > 0);
                assert_eq!(sum_before(&hand), before.samples, "{name} {layout:?}");
                if step == 0 {
                    let same = |row: &CodeRow| row.before() == row.samples();
                    let counted = |row: &&CodeRow| !matches!(row, CodeRow::Call { .. });
                    assert!(code.rows().iter().filter(counted).all(same));
                }
                rules::frame(&hand.app, &UTF8);
                hand.keys("o");
            }
        }
    }
}

#[test]
fn the_difference_of_code_at_every_size() {
    for (width, height) in [(60, 16), (80, 24), (120, 40)] {
        let mut hand = compared(width, height, "heap_hot", b"one build", 5);
        hand.looks_like(&format!("difference-code-{width}x{height}"));
        hand.keys("jj");
        hand.looks_like_in_ascii(&format!("difference-code-{width}x{height}-ascii"));
    }
}

#[test]
fn addresses_of_another_build_are_not_compared() {
    let hand = compared(80, 24, "heap_hot", b"another build", 5);
    let frame = hand.frame();
    assert!(frame.contains("A is of another build"), "{frame}");
    let answer = hand.app.views.code.answer().expect("an answer");
    let before = answer.before.as_ref().expect("a baseline");
    let mut seen = 0;
    for row in hand.app.views.code.rows() {
        if matches!(row, CodeRow::Instruction { .. }) {
            assert_eq!(before.of(row), None);
            seen += 1;
        }
    }
    assert!(seen > 0);
    assert_eq!(sum_before(&hand), before.samples);
}

#[test]
fn instructions_below_a_line_are_its_own() {
    let hand = code(80, 24, "heap_hot");
    let rows = hand.app.views.code.rows();
    let mut checked = 0;
    for (at, row) in rows.iter().enumerate() {
        let CodeRow::Line { samples, .. } = row else {
            continue;
        };
        let below = rows[at + 1..]
            .iter()
            .take_while(|row| matches!(row, CodeRow::Instruction { .. } | CodeRow::Gap(_)));
        let below: Vec<u64> = below.map(CodeRow::samples).collect();
        if !below.is_empty() {
            assert_eq!(below.iter().sum::<u64>(), *samples);
            checked += 1;
        }
    }
    assert!(checked > 0);
}

#[test]
fn code_leads_to_code_and_back() {
    let mut hand = code(80, 24, "heap_hot");
    let first = hand.frame();
    // The call in the made-up code has samples, and so has the function that it calls.
    hand.keys("\n");
    let second = title(&hand);
    assert_ne!(second, "heap_hot_search_buffer");
    assert_eq!(hand.app.view, ViewId::Code);
    hand.keys("\u{8}");
    assert_eq!(title(&hand), "heap_hot_search_buffer");
    assert_eq!(hand.frame(), first);
    hand.keys("\u{8}");
    assert_eq!(hand.app.view, ViewId::Functions);
}

#[test]
fn going_back_finds_all_as_it_was() {
    for keys in ["", "2E/PinB\n\u{1b}", "3jjjj"] {
        let mut hand = Hand::new(80, 24);
        hand.show(tree_step(0))
            .keys("/heap_hot\n\u{1b}")
            .keys(keys)
            .wait(2_000);
        let before = hand.frame();
        hand.keys("ajj");
        assert_eq!(hand.app.view, ViewId::Code);
        hand.keys("\u{8}");
        assert_eq!(hand.frame(), before, "{keys}");
    }
}

#[test]
fn the_selected_function_goes_along() {
    let mut hand = Hand::new(80, 24);
    hand.show(tree_step(0)).keys("/PinBuffer\n\u{1b}7");
    assert_eq!(title(&hand), "PinBuffer");
    hand.keys("3");
    let bar = hand.app.views.flame.selected().expect("a frame");
    assert_eq!(&*bar.name, "PinBuffer");
    // From a page it is the code of the selected row.
    let mut hand = Hand::new(80, 24);
    hand.show(tree_step(0)).keys("/heap_hot\n\u{1b}\nka");
    assert_eq!(title(&hand), "IndexNext");
    hand.keys("p");
    assert_eq!(hand.app.view, ViewId::Page);
    assert!(hand.frame().contains("IndexNext"));
}

#[test]
fn hot_lines_are_found() {
    let mut hand = code(80, 24, "PinBuffer");
    let here = |hand: &Hand| hand.app.views.code.selected().cloned().expect("a row");
    let hottest = here(&hand).samples();
    let rows = hand.app.views.code.rows().iter();
    assert_eq!(
        rows.filter(|row| !row.is_part())
            .map(CodeRow::samples)
            .max(),
        Some(hottest)
    );
    hand.keys("g}");
    assert!(here(&hand).samples() > 0);
    hand.keys("{");
    assert!(here(&hand).samples() > 0 && hand.frame().contains("hot row"));
}

#[test]
fn the_hottest_row_is_selected_until_another_is() {
    let selected = |hand: &Hand| {
        let row = hand.app.views.code.selected().expect("a row");
        (row.key(), row.samples())
    };
    let after = |hand: &mut Hand, step| {
        hand.wait(30_000).show(tree_step(step)).wait(30_000);
        selected(hand)
    };
    // Another address of the function is the hottest one in that step.
    let mut hand = code(80, 24, "copy_user");
    let (before, _) = selected(&hand);
    let (key, samples) = after(&mut hand, 15);
    let rows = hand.app.views.code.rows().iter();
    assert_eq!(rows.map(CodeRow::samples).max(), Some(samples));
    assert!(key != before && samples > 0);
    // In the first of these steps its code has no samples.
    let mut hand = code(80, 24, "heap_hot");
    let (before, _) = selected(&hand);
    assert_eq!(after(&mut hand, 23), (before, 0));
    let (moved_to, _) = selected(hand.keys("g"));
    assert!(moved_to != before);
    assert_eq!(after(&mut hand, 4), (moved_to, 0));
}

#[test]
fn an_editor_gets_the_line() {
    let mut hand = code(80, 24, "heap_hot");
    hand.keys("e");
    let [Effect::Edit(path, line)] = &hand.effects[..] else {
        panic!("{:?}", hand.effects);
    };
    assert!(path.ends_with("heapam.c") && *line == 8, "{path:?} {line}");
    hand.event(Event::Edited(Err("set EDITOR".into())));
    assert!(hand.frame().contains("not edited: set EDITOR"));
    let mut hand = code(80, 24, "strcoll");
    assert!(hand.keys("e").effects.is_empty());
    assert!(hand.frame().contains("no source text here"));
}

#[test]
fn what_was_edited_is_read_anew_also_while_frozen() {
    let mut hand = code(80, 24, "heap_hot");
    hand.keys("jj ");
    let visit = |hand: &Hand| hand.app.views.code.answer().map(|a| a.key.what.visit);
    let (before, row) = (visit(&hand), hand.app.views.code.selected().cloned());
    hand.event(Event::Edited(Ok(())));
    assert!(visit(&hand) > before);
    assert_eq!(hand.app.views.code.selected().cloned(), row);
    hand.keys("a");
    assert_eq!(hand.app.view, ViewId::Code);
}

#[test]
fn a_row_is_copied_and_found() {
    let mut hand = code(80, 24, "heap_hot");
    hand.keys("/is normal|itemidisnormal\n\u{1b}");
    hand.keys("y");
    let [Effect::Copy(text)] = &hand.effects[..] else {
        panic!("{:?}", hand.effects);
    };
    assert!(text.starts_with("if (!ItemIdIsNormal(lp))"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn without_samples_it_says_so() {
    let mut hand = code(80, 24, "PinBuffer");
    let mut none = tree_step(4);
    none.asked.query.window = profile::TimeRange::between(1, 2);
    hand.wait(2_000).show(none);
    let frame = hand.frame();
    assert!(frame.contains("has no samples in this window"), "{frame}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// New snapshots, late names and other sizes keep the selection, and the sums stay right.
    #[test]
    fn the_selection_sticks(
        deeds in prop::collection::vec(
            (prop::sample::select("jkGg}{oA/ssr\n\u{8}".chars().collect::<Vec<_>>()), 0u64..40),
            1..30,
        ),
    ) {
        let mut hand = code(80, 24, "heap_hot");
        for (key, step) in deeds {
            if hand.app.view != ViewId::Code {
                break;
            }
            let of = |hand: &Hand| {
                let code = &hand.app.views.code;
                (title(hand), code.selected().and_then(CodeRow::key))
            };
            let line = |hand: &Hand| (hand.app.pane(), hand.app.views.code.line_here());
            let line_before = line(&hand);
            let before = hand.app.views.code.answer().map(|_| of(&hand));
            match key {
                's' => hand.wait(2_000).show(tree_step(step)),
                'r' => hand.event(Event::Resize(Size { width: 60 + step as u16 * 5, height: 16 + step as u16 })),
                '/' => hand.keys("/e\n\u{1b}"),
                key => hand.keys(&key.to_string()),
            };
            rules::frame(&hand.app, &UTF8);
            rules::frame(&hand.app, &ASCII);
            let Some(answer) = hand.app.views.code.answer() else {
                continue;
            };
            if answer.code.addresses.is_empty() {
                continue;
            }
            let samples = answer.samples();
            prop_assert_eq!(sum(&hand), samples);
            let now = of(&hand);
            let line_now = line(&hand);
            if key == 'r' && line_now.0 != line_before.0 {
                // Side by side, an instruction is in the other pane.
                prop_assert!(line_now.1 == line_before.1 || line_before.1.is_none());
            } else if key == 'r' && before.is_some() {
                prop_assert_eq!(Some(now), before);
            } else {
                prop_assert!(now.1.is_some());
            }
        }
    }
}
