//! Tests of the page of a function.

use super::*;
use crate::fixture::tree_step;
use crate::views::page::PageRow;
use proptest::prelude::*;

fn page(width: u16, height: u16, name: &str) -> Hand {
    let mut hand = Hand::new(width, height);
    hand.show(tree_step(0));
    hand.keys(&format!("/{name}\n\u{1b}\n"));
    assert_eq!(hand.app.view, ViewId::Page);
    hand
}

/// Returns the name of the page's function.
fn title(hand: &Hand) -> String {
    let answer = hand.app.views.page.answer().expect("an answer");
    answer.function.name.to_string()
}

#[test]
fn pages_at_every_size() {
    for (width, height) in [(60, 16), (80, 24), (120, 40), (160, 45)] {
        let mut hand = page(width, height, "heap_hot");
        hand.looks_like(&format!("page-{width}x{height}"));
        hand.keys("jj");
        hand.looks_like_in_ascii(&format!("page-{width}x{height}-ascii"));
    }
    page(80, 24, "copy_user")
        .keys("k")
        .looks_like("page-callers-80x24");
    page(80, 24, "heap_hot")
        .keys("i")
        .looks_like("page-explain-80x24");
    page(80, 24, "heap_hot")
        .keys("%%%j")
        .looks_like("page-unit-80x24");
    page(80, 24, "heap_hot")
        .keys("?")
        .looks_like("page-help-80x24");
}

#[test]
fn both_sides_add_up() {
    let hand = page(80, 24, "heap_hot");
    let answer = hand.app.views.page.answer().expect("an answer");
    let found = answer.page.as_ref().expect("a page");
    let sum = |rows: &[profile::query::Neighbour]| rows.iter().map(|row| row.samples).sum::<u64>();
    assert_eq!(sum(&found.callers), found.function.total_samples);
    assert_eq!(sum(&found.callees), found.function.total_samples);
    // The rows on the screen add up as well.
    let mut sums = (0, 0);
    for (row, _) in hand.app.views.page.shown() {
        match row {
            PageRow::Caller(neighbour) => sums.0 += neighbour.samples,
            PageRow::MoreCallers(_, samples, _) => sums.0 += samples,
            PageRow::Callee(neighbour) => sums.1 += neighbour.samples,
            PageRow::MoreCallees(_, samples, _) => sums.1 += samples,
            _ => {}
        }
    }
    assert_eq!(sums, (1_182, 1_182));
    assert_eq!(
        answer.seconds.iter().sum::<u64>(),
        1_189,
        "more than the window"
    );
}

#[test]
fn pages_lead_to_pages_and_back() {
    let mut hand = page(80, 24, "heap_hot");
    let first = hand.frame();
    hand.keys("k");
    let on_caller = hand.frame();
    hand.keys("\n");
    assert_eq!(title(&hand), "IndexNext");
    hand.keys("j\n");
    assert_eq!(title(&hand), "heap_hot_search_buffer");
    hand.keys("\u{8}");
    assert_eq!(title(&hand), "IndexNext");
    hand.keys("\u{8}");
    assert_eq!(hand.frame(), on_caller);
    hand.keys("j");
    assert_eq!(hand.frame(), first);
}

#[test]
fn going_back_finds_all_as_it_was() {
    let mut hand = Hand::new(80, 24);
    hand.show(tree_step(0))
        .keys("ss/heap_hot\n\u{1b}")
        .wait(2_000);
    let before = hand.frame();
    hand.keys("\nk\n\u{8}\u{8}");
    assert_eq!(hand.app.view, ViewId::Functions);
    assert_eq!(hand.frame(), before);
    for view in ["2E/PinB\n\u{1b}", "3jjjj"] {
        hand.keys(view).wait(2_000);
        let before = hand.frame();
        hand.keys("p");
        assert_eq!(hand.app.view, ViewId::Page);
        hand.keys("\u{8}");
        assert_eq!(hand.frame(), before);
    }
}

#[test]
fn what_is_summed_up_can_be_opened() {
    let mut hand = page(60, 16, "heap_hot");
    hand.keys("/more\n\u{1b}G");
    let frame = hand.frame();
    assert!(frame.contains(" more; Enter: show"), "{frame}");
    let count = |hand: &Hand| hand.app.views.page.found().1;
    let before = count(&hand);
    hand.keys("\n");
    assert!(count(&hand) > before);
    hand.looks_like("page-open-60x16");
    hand.keys("\n");
    assert_eq!(hand.frame(), frame);
}

#[test]
fn a_page_goes_to_the_tree_and_the_flame_graph() {
    let mut hand = page(80, 24, "PinBuffer");
    hand.keys("3");
    let bar = hand.app.views.flame.selected().expect("a frame");
    assert_eq!(&*bar.name, "PinBuffer");
    let mut hand = page(80, 24, "PinBuffer");
    hand.keys("t");
    let tree = &hand.app.views.tree;
    let name = tree.selected().and_then(|row| tree.name(row));
    assert_eq!(
        (name.as_deref(), hand.app.view),
        (Some("PinBuffer"), ViewId::Tree)
    );
}

#[test]
fn a_stack_is_copied() {
    let mut hand = page(80, 24, "PinBuffer");
    hand.keys("Y");
    let [Effect::Copy(stack)] = &hand.effects[..] else {
        panic!("{:?}", hand.effects);
    };
    assert!(stack.starts_with("_start;__libc_start_main;main;"));
    assert!(stack.ends_with(";heap_hot_search_buffer;PinBuffer"));
}

#[test]
fn without_samples_a_page_says_so() {
    let mut hand = page(80, 24, "AllocSetAlloc");
    hand.keys("k").wait(2_000);
    let mut none = tree_step(4);
    none.asked.query.window = profile::TimeRange::between(1, 2);
    hand.show(none);
    assert!(
        hand.frame().contains("has no samples in this window"),
        "{}",
        hand.frame()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// New snapshots, late names and other sizes keep the selection.
    #[test]
    fn the_selection_sticks(
        deeds in prop::collection::vec(
            (prop::sample::select(vec!['j', 'k', 'G', 'g', '\n', '\u{8}', '/', 's', 's', 'r']), 0u64..40),
            1..30,
        ),
    ) {
        let mut hand = page(80, 24, "heap_hot");
        for (key, step) in deeds {
            if hand.app.view != ViewId::Page {
                break;
            }
            let of = |hand: &Hand| {
                let page = &hand.app.views.page;
                let name = page.selected_function().map(|f| f.name.to_string());
                let key = page.selected().and_then(PageRow::key).map(|key| std::mem::discriminant(&key));
                (name, key)
            };
            let before = of(&hand);
            match key {
                's' => hand.wait(2_000).show(tree_step(if step < 4 { 0 } else { step })),
                'r' => hand.event(Event::Resize(Size { width: 60 + step as u16 * 5, height: 16 + step as u16 })),
                '/' => hand.keys("/a\n\u{1b}"),
                key => hand.keys(&key.to_string()),
            };
            rules::frame(&hand.app, &UTF8);
            rules::frame(&hand.app, &ASCII);
            let is_here = |hand: &Hand| hand.app.views.page.selected().is_some();
            let is_more = hand.app.views.page.selected().is_none_or(|row| matches!(
                row, PageRow::MoreCallers(..) | PageRow::MoreCallees(..) | PageRow::Function
            ));
            if matches!(key, 's' | 'r') && is_here(&hand) && before.0.is_some() && !is_more {
                prop_assert_eq!(of(&hand), before);
            }
        }
    }
}

#[test]
fn on_a_wide_screen_the_callers_stand_beside() {
    let mut hand = Hand::new(160, 45);
    hand.show(tree_step(0)).wait(2_000);
    hand.looks_like("beside-160x45");
    let beside = |hand: &Hand| {
        let page = &hand.app.views.page_beside;
        page.answer().map(|answer| answer.function.name.to_string())
    };
    assert_eq!(
        beside(&hand).as_deref(),
        Some("hash_search_with_hash_value")
    );
    // It follows the selection, and new numbers.
    hand.keys("j");
    assert_eq!(beside(&hand).as_deref(), Some("heap_getnext"));
    hand.wait(2_000).show(tree_step(4)).wait(2_000);
    assert_eq!(beside(&hand).as_deref(), Some("heap_getnext"));
    assert!(hand.frame().contains("│ OF IT%"));
    hand.keys("|");
    assert!(!hand.frame().contains("OF IT%"));
    hand.keys("|").keys("2").keys("1");
    assert!(hand.frame().contains("OF IT%"));
    hand.event(Event::Resize(Size {
        width: 119,
        height: 45,
    }));
    assert!(!hand.frame().contains("OF IT%"), "too narrow");
}

#[test]
fn a_double_click_is_enter_and_the_right_button_goes_back() {
    use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
    let mut hand = Hand::new(80, 24);
    hand.show(tree_step(0)).wait(2_000);
    let click = |hand: &mut Hand, button, row| {
        hand.event(Event::Mouse(MouseEvent {
            kind: MouseEventKind::Down(button),
            column: 30,
            row,
            modifiers: KeyModifiers::NONE,
        }));
    };
    click(&mut hand, MouseButton::Left, 7);
    click(&mut hand, MouseButton::Left, 8);
    assert_eq!(hand.app.view, ViewId::Functions, "two rows");
    hand.wait(1_000);
    click(&mut hand, MouseButton::Left, 8);
    assert_eq!(hand.app.view, ViewId::Functions, "too slow");
    click(&mut hand, MouseButton::Left, 8);
    assert_eq!(hand.app.view, ViewId::Page);
    click(&mut hand, MouseButton::Right, 8);
    assert_eq!(hand.app.view, ViewId::Functions);
    // A third click starts over, so that it cannot end a second double click.
    click(&mut hand, MouseButton::Left, 8);
    assert_eq!(hand.app.view, ViewId::Functions);
}
