//! Everything by its name.

use super::*;
use crate::action::Key;
use crate::screen::Mode;
use crate::screen::knobs::Window;
use crate::snapshot::Span;
use crate::view::fixture::tree_step;

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
    assert!(hand.app.frozen.is_some());
    assert!(matches!(hand.app.mode, Mode::Browse));
    hand.keys(":flame gr\n");
    assert_eq!(hand.app.view, View::Flame);
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
    hand.app.keymap.rebind("write", &[key]);
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
    let selected = hand.app.views.functions.selected(report);
    assert_eq!(selected.map(|line| &*line.row.name), Some("PinBuffer"));
    hand.keys(":write x.doc\n");
    assert!(hand.frame().contains("no format"), "{}", hand.frame());
    hand.keys("\u{1b}:write x.folded\n");
    assert!(matches!(hand.effects[..], [Effect::Write(_)]));
}
