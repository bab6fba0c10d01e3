//! Frames with links, as a terminal gets them.

use super::{Hand, UTF8};
use crate::app::Event;
use crate::screen::geometry::Size;
use crate::terminal::Painter;
use crate::view;
use crate::view::fixture::postgres;
use crate::view::rules;
use crate::view::theme::Theme;
use std::sync::Arc;

const LINKED: Theme = Theme {
    links: true,
    ..UTF8
};

const OPEN: &str = "\x1b]8;;file://db-01/src/pg/heapam.c\x1b\\heapam.c:1691\x1b]8;;\x1b\\";

/// Of some functions the source is known.
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
        let bytes = painter.frame(|frame| view::draw(&hand.app, &LINKED, frame));
        let bytes = bytes.expect("memory");
        parser.process(&bytes);
        let lines = parser.screen().rows(0, 100);
        let text: String = lines
            .map(|line| line.trim_end().to_owned() + "\n")
            .collect();
        // The text is that of a terminal without links.
        assert_eq!(text, rules::frame(&hand.app, &UTF8), "after {key:?}");
        let bytes = String::from_utf8(bytes).expect("UTF-8");
        assert!(!bytes.contains('\u{10ffff}'));
        let opened = bytes.matches("\x1b]8;;file").count();
        assert_eq!(opened, bytes.matches("\x1b]8;;\x1b").count());
        assert_eq!(opened, bytes.matches(OPEN).count());
        drawn.push(opened);
    }
    assert!(drawn[0] == 1 && drawn[1] == 0 && drawn[2] == 1, "{drawn:?}");
    // Nothing has changed: nothing is written.
    hand.app.update(Event::Tick, hand.app.now);
    let frame = |painter: &mut Painter, hand: &Hand| {
        let bytes = painter.frame(|frame| view::draw(&hand.app, &LINKED, frame));
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
        let bytes = painter.frame(|frame| view::draw(&hand.app, theme, frame));
        String::from_utf8(bytes.expect("memory")).expect("UTF-8")
    };
    hand.keys("j");
    hand.keys("j");
    assert!(draw(&LINKED, &hand).contains(OPEN));
    // The same letters without a link: each of them is written anew.
    assert!(draw(&UTF8, &hand).contains("heapam.c:1691"));
}

#[test]
fn the_screen_as_text_has_no_links() {
    let text = view::as_text(&hand().app, &LINKED);
    assert!(
        !text.contains('\x1b') && text.contains("heapam.c:1691"),
        "{text}"
    );
}
