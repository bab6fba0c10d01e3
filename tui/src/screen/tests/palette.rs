//! Tests of the palette, and of keys that a user has assigned.

use super::*;
use crate::action::Key;
use crate::app::DrawCost;
use crate::app::mode::Mode;
use crate::code::Syntax;
use crate::fixture::tree_step;
use crate::knobs::{Unit, Window};
use crate::views::functions::FunctionColumn;
use engine::snapshot::Span;

#[test]
fn the_palette_at_every_size() {
    let mut hand = Hand::new(80, 24);
    hand.show(postgres()).keys(":");
    hand.looks_like("palette");
    hand.keys("fo").code(KeyCode::Down);
    hand.looks_like("palette-typed");
    let mut small = Hand::new(60, 16);
    small.show(postgres()).keys("2:").keys("path");
    small.looks_like("palette-tree-60x16");
    for (width, height) in [(60, 16), (79, 23), (160, 45), (300, 80), (20, 4)] {
        let mut hand = Hand::new(width, height);
        hand.show(postgres()).keys(":");
        for theme in [UTF8, ASCII] {
            rules::frame(&hand.app, &theme);
        }
    }
}

#[test]
fn what_is_chosen_is_done() {
    let mut hand = Hand::new(80, 24);
    hand.show(postgres()).keys(":freeze\n");
    assert!(hand.app.feed.freezing.frozen.is_some());
    assert!(matches!(hand.app.mode, Mode::Browse));
    hand.keys(":flame gr\n");
    assert_eq!(hand.app.view, ViewId::Flame);
    hand.keys(":no such thing\n");
    assert!(matches!(hand.app.mode, Mode::Browse));
    hand.keys(":quit\n");
    assert_eq!(hand.effects, [Effect::Quit]);
}

#[test]
fn other_keys_are_in_the_key_line_and_in_the_help() {
    let mut hand = Hand::new(160, 45);
    let key = "ctrl-s".parse().expect("a key");
    assert_eq!(key, Key::Ctrl('s'));
    hand.app.input.keymap.rebind("write", &[key]);
    hand.show(postgres());
    assert!(hand.frame().contains("^s write"), "{}", hand.frame());
    hand.keys("?");
    assert!(hand.frame().contains("^s "), "{}", hand.frame());
}

#[test]
fn orders_have_a_word_behind_them() {
    let mut hand = Hand::new(80, 24);
    hand.show(tree_step(0)).wait(2_000);
    hand.keys(":pi");
    assert!(hand.frame().contains("pid 4121"), "{}", hand.frame());
    hand.keys("d 1\n");
    assert!(
        hand.frame().contains("no process 1 has samples"),
        "{}",
        hand.frame()
    );
    hand.keys("\u{8}4121");
    hand.looks_like("palette-order-80x24");
    hand.keys("\n");
    assert_eq!(hand.app.knobs.scope.len(), 1);
    hand.keys(":window all\n");
    assert_eq!(hand.app.knobs.window, Window::Last(Span::All));
    hand.keys(":filter fn~(\n");
    assert!(matches!(hand.app.mode, Mode::Palette(_)));
    hand.keys("\u{1b}:filter !_bt_\n");
    assert_eq!(hand.app.knobs.filter.to_string(), "!_bt_");
    hand.keys("2:goto PinBuffer\n");
    let report = &hand.app.shown.report;
    let selected = hand.app.views.functions.table.selected(report);
    assert_eq!(selected.map(|line| &*line.row.name), Some("PinBuffer"));
    hand.keys(":write x.doc\n");
    assert!(hand.frame().contains("no format"), "{}", hand.frame());
    hand.keys("\u{1b}:write x.folded\n");
    assert!(matches!(hand.effects[..], [Effect::Write(_)]));
}

#[test]
fn words_of_the_command_line_are_orders_too() {
    let mut hand = Hand::new(80, 24);
    hand.show(tree_step(0)).wait(2_000);
    let refused = |hand: &mut Hand, typed: &str, why: &str| {
        hand.keys(typed);
        assert!(hand.frame().contains(why), "{}", hand.frame());
        hand.keys("\u{1b}");
    };
    hand.keys(":unit samples\n");
    assert_eq!(hand.app.knobs.unit, Some(Unit::Samples));
    refused(&mut hand, ":unit miles\n", "there are percent, machine");
    hand.keys(":unit usual\n");
    assert_eq!(hand.app.knobs.unit, None);
    hand.keys(":view flame\n");
    assert_eq!(hand.app.view, ViewId::Flame);
    refused(&mut hand, ":view moon\n", "there are functions, tree");
    hand.keys(":sort total\n");
    assert_eq!(hand.app.view, ViewId::Functions);
    let column = hand.app.views.functions.table.column();
    assert_eq!(column, FunctionColumn::TotalSamples);
    refused(&mut hand, ":sort size\n", "there are self, total, name");
    hand.keys(":theme 16\n");
    assert_eq!(
        hand.effects,
        [Effect::SetTheme(crate::choices::Theme::Sixteen)]
    );
    refused(&mut hand, ":theme pink\n", "there are auto, dark, light");
    hand.keys(":asm intel\n");
    assert_eq!(hand.app.views.code.syntax(), Syntax::Intel);
    hand.keys(":export x.folded\n");
    assert!(matches!(hand.effects[..], [Effect::Write(_)]));
}

#[test]
fn what_drawing_costs_is_shown_until_it_is_enough() {
    let mut hand = Hand::new(80, 24);
    hand.show(postgres()).keys(":perf on\n");
    hand.app.terminal.draw_cost = Some(DrawCost {
        frames: 1_234,
        drawn_in: Duration::from_micros(1_500),
        bytes: 2_345,
        written_in: Duration::from_micros(200),
    });
    let shown = "frame 1,234: drawn in 1.5 ms, 2,345 bytes, written in 0.2 ms";
    assert!(hand.frame().contains(shown), "{}", hand.frame());
    hand.keys(":perf off\n");
    assert!(!hand.frame().contains("drawn in"), "{}", hand.frame());
}
