//! Frames as the bytes that a terminal gets: they are few, and show what was drawn.

use super::{ASCII, Hand, UTF8};
use crate::fixture::{bush, postgres, step};
use crate::geometry::Size;
use crate::screen;
use crate::screen::rules;
use crate::terminal::Painter;
use crate::widgets::theme::Theme;

/// At one megabit per second this takes 0.13 seconds.
const FRAME_BYTES_MAX: usize = 16 << 10;

/// A painter whose terminal is a parser.
struct Screen {
    painter: Painter,
    parser: vt100::Parser,
    theme: Theme,
}

impl Screen {
    fn new(width: u16, height: u16, theme: Theme) -> Self {
        Screen {
            painter: Painter::new(Size { width, height }).expect("memory"),
            parser: vt100::Parser::new(height, width, 0),
            theme,
        }
    }

    /// Draws, and returns the number of bytes.
    fn draw(&mut self, hand: &Hand) -> usize {
        let bytes = self
            .painter
            .frame(|frame| screen::draw(&hand.app, &self.theme, frame))
            .expect("memory");
        let is_frame = bytes.starts_with(b"\x1b[?2026h") && bytes.ends_with(b"\x1b[?2026l");
        assert!(is_frame || bytes.is_empty());
        self.parser.process(&bytes);
        bytes.len()
    }

    fn text(&self) -> String {
        let (_, width) = self.parser.screen().size();
        let lines = self.parser.screen().rows(0, width);
        lines
            .map(|line| line.trim_end().to_owned() + "\n")
            .collect()
    }
}

#[test]
fn a_terminal_shows_what_was_drawn() {
    for (width, height) in [(60, 16), (80, 24), (160, 45)] {
        let mut hand = Hand::new(width, height);
        let mut screen = Screen::new(width, height, UTF8);
        screen.draw(&hand);
        for number in 0..4 {
            hand.wait(1_100).show(step(number)).keys("j");
            screen.draw(&hand);
            assert_eq!(screen.text(), rules::frame(&hand.app, &UTF8));
            let (row, _) = screen.parser.screen().cursor_position();
            let geometry = hand.app.geometry().expect("a screen");
            let line = hand.app.views.functions.table.selected_line() as u16;
            assert_eq!(row, geometry.body + line);
            assert!(!screen.parser.screen().hide_cursor());
        }
    }
}

#[test]
fn frames_are_small() {
    for (width, height, refresh_max) in [(80, 24, 3_000), (160, 45, 6_000), (300, 80, 10_000)] {
        let mut hand = Hand::new(width, height);
        let mut screen = Screen::new(width, height, UTF8);
        hand.show(postgres()).wait(2_000);
        let full = screen.draw(&hand);
        assert!(full <= FRAME_BYTES_MAX, "{full} bytes at {width}x{height}");
        hand.keys("j");
        let moved = screen.draw(&hand);
        assert!(
            moved <= 1_500,
            "{moved} bytes for a move at {width}x{height}"
        );
        let still = screen.draw(&hand);
        assert!(still <= 64, "{still} bytes for nothing");
        hand.wait(2_000).show(step(2));
        let refresh = screen.draw(&hand);
        eprintln!("{width}x{height}: full {full}, move {moved}, refresh {refresh} bytes");
        assert!(
            refresh <= refresh_max,
            "{refresh} bytes at {width}x{height}"
        );
    }
}

/// The worst case: a branching graph, in which neighbouring frames belong to different modules.
#[test]
fn flames_are_small() {
    for (width, height, max) in [(80, 24, 6_000), (160, 45, FRAME_BYTES_MAX)] {
        let mut hand = Hand::new(width, height);
        let mut screen = Screen::new(width, height, UTF8);
        hand.show(bush()).keys("3").wait(2_000);
        let full = screen.draw(&hand);
        assert_eq!(screen.text(), rules::frame(&hand.app, &UTF8));
        hand.keys("j");
        let moved = screen.draw(&hand);
        eprintln!("flame {width}x{height}: full {full}, move {moved} bytes");
        assert!(full <= max, "{full} bytes at {width}x{height}");
        assert!(moved <= 1_500, "{moved} bytes for a move");
    }
}

#[test]
fn without_colors_there_are_none() {
    let mut hand = Hand::new(80, 24);
    hand.show(postgres());
    let mut painter = Painter::new(hand.app.terminal.size).expect("memory");
    let bytes = painter
        .frame(|frame| screen::draw(&hand.app, &ASCII, frame))
        .expect("memory");
    let text = String::from_utf8(bytes).expect("text");
    assert!(
        text.bytes()
            .all(|b| b == 0x1b || (0x20..=0x7e).contains(&b))
    );
    assert!(!text.contains("38;5;") && !text.contains("48;5;"));
}

#[test]
fn no_terminal_is_too_small() {
    for (width, height) in [(0, 0), (1, 1), (20, 5)] {
        let mut hand = Hand::new(width, height);
        hand.show(postgres());
        let mut painter = Painter::new(hand.app.terminal.size).expect("memory");
        for theme in [UTF8, ASCII] {
            let drawn = painter.frame(|frame| screen::draw(&hand.app, &theme, frame));
            assert!(drawn.is_ok());
        }
    }
}

#[test]
fn a_screen_at_rest_writes_nothing() {
    let mut hand = Hand::new(80, 24);
    let mut screen = Screen::new(80, 24, UTF8);
    hand.show(postgres());
    assert!(screen.draw(&hand) > 1_000);
    screen.draw(&hand);
    for _ in 0..20 {
        hand.wait(250);
        assert_eq!(screen.draw(&hand), 0);
    }
    hand.keys("j");
    assert!(screen.draw(&hand) > 0);
    // A move of the cursor alone is a change as well.
    hand.keys("/");
    screen.draw(&hand);
    hand.keys("x");
    assert!(screen.draw(&hand) > 0);
}
