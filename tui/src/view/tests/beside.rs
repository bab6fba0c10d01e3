//! What stands beside views on wide terminals.

use super::*;
use crate::app::Head;
use crate::screen::beside::Beside;
use crate::view::fixture::tree_step;
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

fn control(hand: &mut Hand, key: char) {
    hand.event(Event::Key(KeyEvent::new(
        KeyCode::Char(key),
        KeyModifiers::CONTROL,
    )));
}

fn mouse(hand: &mut Hand, kind: MouseEventKind, column: u16, row: u16) {
    hand.event(Event::Mouse(MouseEvent {
        kind,
        column,
        row,
        modifiers: KeyModifiers::NONE,
    }));
}

fn resize(hand: &mut Hand, width: u16, height: u16) {
    hand.event(Event::Resize(Size { width, height }));
}

fn processes(width: u16, height: u16) -> Hand {
    let mut hand = Hand::new(width, height);
    hand.show(postgres()).keys("4").wait(2_000);
    hand
}

/// Whose threads are shown, and which of them is selected.
fn threads(hand: &Hand) -> (Vec<u32>, Option<u32>) {
    let (threads, report) = (&hand.app.views.own_threads, &hand.app.shown.report);
    let tids = threads.lines(report).map(|line| line.row.tid).collect();
    (tids, threads.selected(report).map(|line| line.row.tid))
}

#[test]
fn threads_stand_beside_the_processes() {
    for (width, height) in [(120, 40), (160, 45)] {
        let mut hand = processes(width, height);
        assert_eq!(threads(&hand).0, [] as [u32; 0], "of the first process");
        hand.keys("j");
        assert_eq!(threads(&hand), (vec![2_231, 2_232, 2_214, 2_210], Some(2_231)));
        hand.looks_like(&format!("processes-{width}x{height}"));
        control(&mut hand, 'w');
        hand.keys("j");
        hand.looks_like(&format!("processes-threads-{width}x{height}"));
        let ascii = rules::frame(&hand.app, &ASCII);
        compare(&format!("processes-{width}x{height}-ascii"), &ascii);
    }
    let hand = processes(119, 45);
    assert!(!hand.frame().contains(" TID "));
}

#[test]
fn the_keys_go_where_the_focus_is() {
    let mut hand = processes(160, 45);
    hand.keys("j");
    let process = |hand: &Hand| {
        let report = &hand.app.shown.report;
        hand.app.views.processes.selected(report).map(|line| line.row.pid)
    };
    control(&mut hand, 'w');
    hand.keys("jj");
    assert_eq!((process(&hand), threads(&hand).1), (Some(2_210), Some(2_214)));
    // Sorting and finding, too.
    hand.keys("/match\n");
    assert_eq!(threads(&hand).1, Some(2_231));
    let found = hand.app.find().map(|(_, (rows, _), all)| (rows, all));
    assert_eq!(found, Some((2, 4)));
    hand.keys("\u{8}").keys("I");
    assert_eq!(threads(&hand).0, [2_210, 2_214, 2_232, 2_231]);
    // Back: first out of the pane, and the selection there stays.
    hand.keys("\u{8}");
    assert_eq!(hand.app.in_pane(), None);
    hand.keys("k").keys("j");
    assert_eq!(process(&hand), Some(2_210));
    control(&mut hand, 'w');
    hand.keys("\n");
    assert_eq!(hand.app.view, View::Functions);
    assert_eq!(&*hand.app.knobs.scope[0].words, "java[2210]");
    // Nothing stands beside threads.
    hand.keys("5");
    control(&mut hand, 'w');
    assert!(hand.frame().contains("nothing stands beside"));
}

#[test]
fn the_mouse_reaches_what_stands_beside() {
    let mut hand = processes(160, 45);
    hand.keys("j");
    let (geometry, parts) = (hand.app.geometry(), hand.app.parts());
    let (_, part) = parts.and_then(|parts| parts.pane).expect("threads");
    let body = geometry.expect("a screen").body;
    mouse(&mut hand, MouseEventKind::ScrollDown, part.x + 4, body + 9);
    assert_eq!(threads(&hand).1, Some(2_210), "the wheel: what is below it");
    assert_eq!(hand.app.in_pane(), None);
    let left = MouseEventKind::Down(MouseButton::Left);
    mouse(&mut hand, left, part.x + 4, body + 1);
    assert_eq!(threads(&hand).1, Some(2_232));
    assert_eq!(hand.app.in_pane(), Some(Beside::Threads));
    mouse(&mut hand, left, 4, body + 1);
    assert_eq!(hand.app.in_pane(), None);
    let head = crate::view::head_at(&hand.app, &UTF8, part.x + 4, part.heads);
    let by_number = Head {
        column: 0,
        in_pane: true,
    };
    assert_eq!(head, Some(by_number));
    hand.event(Event::Head(by_number));
    assert_eq!(threads(&hand).0, [2_210, 2_214, 2_231, 2_232]);
    // Neither the line between both nor the strip is anybody's.
    let before = hand.frame();
    mouse(&mut hand, left, part.x - 1, body + 2);
    mouse(&mut hand, left, 4, body + parts.expect("parts").view.height + 1);
    assert_eq!(hand.frame(), before);
}

#[test]
fn what_stands_beside_is_as_calm_as_the_view() {
    let mut hand = processes(160, 45);
    hand.keys("j");
    control(&mut hand, 'w');
    hand.keys("jj").wait(2_000);
    let mut changed = postgres();
    let report = Arc::make_mut(&mut changed.report);
    report.threads[3].samples = 900;
    let before = threads(&hand);
    hand.keys("k").keys("j").show(changed.clone());
    assert_eq!(threads(&hand), before, "a key was pressed just now");
    hand.wait(2_000);
    assert_eq!(threads(&hand), (vec![2_210, 2_231, 2_232, 2_214], Some(2_214)));
    // What is selected outlives a narrow terminal, and its end.
    resize(&mut hand, 80, 24);
    resize(&mut hand, 160, 45);
    assert_eq!(threads(&hand).1, Some(2_214));
    assert_eq!(hand.app.in_pane(), Some(Beside::Threads));
    Arc::make_mut(&mut changed.report).threads.remove(2);
    hand.show(changed).wait(2_000);
    assert_eq!(threads(&hand).1, Some(2_214));
    assert!(hand.frame().contains("gone"), "{}", hand.frame());
}

#[test]
fn a_page_beside_can_be_moved_in() {
    let mut hand = Hand::new(160, 45);
    hand.show(tree_step(0)).wait(2_000).keys("jjjjjj");
    control(&mut hand, 'w');
    hand.keys("k");
    let page = &hand.app.views.beside;
    let caller = page.selected_function().map(|function| &*function.name);
    assert_eq!(caller, Some("IndexNext"));
    hand.looks_like("beside-keys-160x45");
    hand.keys("\n");
    assert_eq!(hand.app.view, View::Page);
    assert!(hand.frame().contains("IndexNext   total"), "{}", hand.frame());
    hand.keys("\u{8}");
    assert_eq!(hand.app.view, View::Functions);
    assert_eq!(hand.selected(), hand.app.views.beside.function());
}
