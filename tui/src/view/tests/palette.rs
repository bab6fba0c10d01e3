//! Everything by its name.

use super::*;
use crate::action::Key;
use crate::screen::Mode;

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
