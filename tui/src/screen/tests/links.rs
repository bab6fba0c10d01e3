//! Frames with links, as a terminal gets them.

use super::{Hand, UTF8};
use crate::app::Event;
use crate::fixture::{postgres, tree_of_source, tree_step};
use crate::geometry::Size;
use crate::screen;
use crate::screen::rules;
use crate::terminal::Painter;
use crate::widgets::theme::Theme;
use std::sync::Arc;

const LINKED: Theme = Theme {
    links: true,
    ..UTF8
};

const OPEN: &str = "\x1b]8;;file://db-01/src/pg/heapam.c\x1b\\heapam.c:1691\x1b]8;;\x1b\\";

/// Returns an app in which some functions have a known source place.
fn hand() -> Hand {
    let mut hand = Hand::new(100, 24);
    let mut snapshot = postgres();
    let mut report = (*snapshot.report).clone();
    for (at, row) in report.functions.iter_mut().enumerate() {
        if at % 2 == 0 {
            row.file = Some("/src/pg/heapam.c".into());
            row.line = 1691;
        }
    }
    snapshot.report = Arc::new(report);
    hand.show(snapshot).wait(2_000);
    hand
}

#[test]
fn a_link_is_written_whole_or_not_at_all() {
    let mut hand = hand();
    let size = Size {
        width: 100,
        height: 24,
    };
    let mut painter = Painter::new(size).expect("memory");
    let mut parser = vt100::Parser::new(24, 100, 0);
    let mut drawn = Vec::new();
    for key in ["", "j", "j", "j", "i", "j", "2", "1", "k", "k", "k"] {
        hand.keys(key);
        let bytes = painter
            .frame(|frame| screen::draw(&hand.app, &LINKED, frame))
            .expect("memory");
        parser.process(&bytes);
        let lines = parser.screen().rows(0, 100);
        let text: String = lines
            .map(|line| line.trim_end().to_owned() + "\n")
            .collect();
        // The text is the same as without links.
        assert_eq!(text, rules::frame(&hand.app, &UTF8), "after {key:?}");
        let bytes = String::from_utf8(bytes).expect("UTF-8");
        assert!(!bytes.contains('\u{10ffff}'));
        let opened = bytes.matches("\x1b]8;;file").count();
        assert_eq!(opened, bytes.matches("\x1b]8;;\x1b").count());
        assert_eq!(opened, bytes.matches(OPEN).count());
        drawn.push(opened);
    }
    assert!(drawn[0] == 1 && drawn[1] == 0 && drawn[2] == 1, "{drawn:?}");
    // If nothing has changed, nothing is written.
    hand.app.update(Event::Tick, hand.app.now);
    let frame = |painter: &mut Painter, hand: &Hand| {
        let bytes = painter.frame(|frame| screen::draw(&hand.app, &LINKED, frame));
        bytes.expect("memory")
    };
    frame(&mut painter, &hand);
    assert_eq!(frame(&mut painter, &hand), b"");
}

#[test]
fn what_comes_in_the_place_of_a_link_is_written() {
    let mut hand = hand();
    let size = Size {
        width: 100,
        height: 24,
    };
    let mut painter = Painter::new(size).expect("memory");
    let mut draw = |theme: &Theme, hand: &Hand| {
        let bytes = painter.frame(|frame| screen::draw(&hand.app, theme, frame));
        String::from_utf8(bytes.expect("memory")).expect("UTF-8")
    };
    hand.keys("j");
    hand.keys("j");
    assert!(draw(&LINKED, &hand).contains(OPEN));
    // The same letters without a link are all written again.
    assert!(draw(&UTF8, &hand).contains("heapam.c:1691"));
}

/// Returns the text and the target of the only link in a whole frame.
fn link(hand: &Hand) -> Option<(String, String)> {
    let size = hand.app.terminal.size;
    let mut painter = Painter::new(size).expect("memory");
    let bytes = painter.frame(|frame| screen::draw(&hand.app, &LINKED, frame));
    let bytes = String::from_utf8(bytes.expect("memory")).expect("UTF-8");
    let (_, link) = bytes.split_once("\x1b]8;;file://db-01")?;
    let (path, rest) = link.split_once("\x1b\\")?;
    let (words, _) = rest.split_once("\x1b]8;;\x1b\\")?;
    assert!(!rest.contains("\x1b]8;;file"), "more than one link");
    Some((words.to_owned(), path.to_owned()))
}

#[test]
fn every_view_of_functions_links_to_what_is_selected() {
    let path = "/src/pg sql/heapam.c";
    for keys in [
        "/^ExecScan\n\u{1b}",
        "/^ExecScan\n\u{1b}2",
        "/^ExecScan\n\u{1b}2I",
        "/^ExecScan\n\u{1b}3",
        "/^ExecScan\n\u{1b}\n",
    ] {
        let mut hand = Hand::new(160, 45);
        hand.show(tree_of_source(path)).keys(keys).wait(2_000);
        let (words, to) = link(&hand).unwrap_or_else(|| panic!("{keys:?}\n{}", hand.frame()));
        assert!(words.starts_with("heapam.c:1"), "{words}");
        assert_eq!(to, "/src/pg%20sql/heapam.c", "{keys:?}");
        // An explanation or another sentence has no link.
        hand.keys("i");
        assert_eq!(link(&hand), None, "{keys:?}");
    }
}

#[test]
fn lines_of_code_link_to_where_their_text_was_found() {
    let mut hand = Hand::new(160, 45);
    hand.show(tree_step(0)).keys("/heap_hot\n\u{1b}a");
    let (words, to) = link(&hand).expect("a link");
    assert!(words.starts_with("heapam.c:"), "{words}");
    assert_eq!(to, "/build/postgres/src/heapam.c");
    let mut without = Hand::new(160, 45);
    without.show(tree_step(0)).keys("/strcoll\n\u{1b}a");
    assert_eq!(link(&without), None);
}

#[test]
fn the_screen_as_text_has_no_links() {
    let text = screen::as_text(&hand().app, &LINKED);
    assert!(
        !text.contains('\x1b') && text.contains("heapam.c:1691"),
        "{text}"
    );
}
