//! Tests of the views beside others on wide terminals.

use super::*;
use crate::app::Head;
use crate::fixture::{tree_of_even_samples, tree_step};
use crate::views::PaneId;
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use proptest::prelude::*;

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

/// Returns the threads that are shown, and which of them is selected.
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
        assert_eq!(
            threads(&hand),
            (vec![2_231, 2_232, 2_214, 2_210], Some(2_231))
        );
        hand.looks_like(&format!("processes-{width}x{height}"));
        hand.control('w');
        hand.keys("j");
        hand.looks_like(&format!("processes-threads-{width}x{height}"));
        hand.looks_like_in_ascii(&format!("processes-{width}x{height}-ascii"));
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
        hand.app
            .views
            .processes
            .selected(report)
            .map(|line| line.row.pid)
    };
    hand.control('w');
    hand.keys("jj");
    assert_eq!(
        (process(&hand), threads(&hand).1),
        (Some(2_210), Some(2_214))
    );
    // Sorting and searching go there, too.
    hand.keys("/match\n");
    assert_eq!(threads(&hand).1, Some(2_231));
    let found = hand.app.find().map(|found| (found.rows, found.of));
    assert_eq!(found, Some((2, 4)));
    hand.keys("\u{8}").keys("I");
    assert_eq!(threads(&hand).0, [2_210, 2_214, 2_232, 2_231]);
    // Going back first leaves the pane; the selection in it stays.
    hand.keys("\u{8}");
    assert_eq!(hand.app.in_pane(), None);
    hand.keys("k").keys("j");
    assert_eq!(process(&hand), Some(2_210));
    hand.control('w');
    hand.keys("\n");
    assert_eq!(hand.app.view, ViewId::Functions);
    assert_eq!(&*hand.app.knobs.scope[0].words, "thread java[2210]");
    // There is no view beside the threads.
    hand.keys("5");
    hand.control('w');
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
    assert_eq!(hand.app.in_pane(), Some(PaneId::OwnThreads));
    mouse(&mut hand, left, 4, body + 1);
    assert_eq!(hand.app.in_pane(), None);
    let head = crate::screen::head_at(&hand.app, &UTF8, part.x + 4, part.heads);
    let by_number = Head {
        column: 0,
        in_pane: true,
    };
    assert_eq!(head, Some(by_number));
    hand.event(Event::Head(by_number));
    assert_eq!(threads(&hand).0, [2_210, 2_214, 2_231, 2_232]);
    // Neither the rule between both nor the strip can be clicked on.
    let before = hand.frame();
    mouse(&mut hand, left, part.x - 1, body + 2);
    mouse(
        &mut hand,
        left,
        4,
        body + parts.expect("parts").view.height + 1,
    );
    assert_eq!(hand.frame(), before);
}

#[test]
fn what_stands_beside_is_as_calm_as_the_view() {
    let mut hand = processes(160, 45);
    hand.keys("j");
    hand.control('w');
    hand.keys("jj").wait(2_000);
    let mut changed = postgres();
    let report = Arc::make_mut(&mut changed.report);
    report.threads[3].samples = 900;
    let before = threads(&hand);
    hand.keys("k").keys("j").show(changed.clone());
    assert_eq!(threads(&hand), before, "a key was pressed just now");
    hand.wait(2_000);
    assert_eq!(
        threads(&hand),
        (vec![2_210, 2_231, 2_232, 2_214], Some(2_214))
    );
    // The selection survives a narrow terminal, and the end of the thread.
    resize(&mut hand, 80, 24);
    resize(&mut hand, 160, 45);
    assert_eq!(threads(&hand).1, Some(2_214));
    assert_eq!(hand.app.in_pane(), Some(PaneId::OwnThreads));
    Arc::make_mut(&mut changed.report).threads.remove(2);
    hand.show(changed).wait(2_000);
    assert_eq!(threads(&hand).1, Some(2_214));
    assert!(hand.frame().contains("gone"), "{}", hand.frame());
}

#[test]
fn a_page_beside_can_be_moved_in() {
    let mut hand = Hand::new(160, 45);
    hand.show(tree_step(0)).wait(2_000).keys("jjjjjj");
    hand.control('w');
    hand.keys("k");
    let page = &hand.app.views.page_beside;
    let caller = page.selected_function().map(|function| &*function.name);
    assert_eq!(caller, Some("IndexNext"));
    hand.looks_like("beside-keys-160x45");
    hand.keys("\n");
    assert_eq!(hand.app.view, ViewId::Page);
    assert!(
        hand.frame().contains("IndexNext   total"),
        "{}",
        hand.frame()
    );
    hand.keys("\u{8}");
    assert_eq!(hand.app.view, ViewId::Functions);
    assert_eq!(hand.selected(), hand.app.views.page_beside.function());
}

fn tree(width: u16, height: u16) -> Hand {
    let mut hand = Hand::new(width, height);
    hand.show(tree_step(0)).keys("2").wait(2_000);
    hand
}

/// Returns the selected row of the tree beside the open one.
fn other(hand: &Hand) -> Option<(String, u32)> {
    let tree = &hand.app.views.other_tree;
    let row = tree.selected()?;
    Some((tree.name(row)?.to_string(), row.depth))
}

#[test]
fn the_other_tree_stands_beside_the_tree() {
    let mut hand = tree(160, 45);
    hand.keys("E/PinBuffer\n\u{1b}");
    assert_eq!(other(&hand), Some(("PinBuffer".into(), 1)));
    hand.looks_like("tree-160x45");
    // A function that was never on top of a stack is found below a function that it called last, in
    // the tree that is already there.
    let trees = |hand: &Hand| hand.app.views.other_tree.trees().map(std::ptr::from_ref);
    let first = trees(&hand);
    hand.keys("/^PortalRun\n\u{1b}");
    let (name, depth) = other(&hand).expect("a row");
    assert!(name == "PortalRun" && depth > 1, "{name} {depth}");
    assert_eq!(trees(&hand), first);
    hand.control('w');
    hand.keys("gj");
    hand.looks_like("tree-keys-160x45");
    hand.looks_like_in_ascii("tree-160x45-ascii");
    // A selection in this pane stays while samples come.
    let before = other(&hand);
    hand.wait(2_000).show(tree_step(0)).wait(2_000);
    assert_eq!(other(&hand), before);
    let name = before.map(|(name, _)| name);
    hand.keys("p");
    let page = hand.app.views.page.answer();
    assert_eq!(page.map(|page| page.function.name.to_string()), name);
}

#[test]
fn both_trees_turn_over_together() {
    let mut hand = tree(160, 45);
    hand.keys("E/PinBuffer\n\u{1b}");
    let directions = |hand: &Hand| {
        let views = &hand.app.views;
        (views.tree.direction(), views.other_tree.direction())
    };
    let before = directions(&hand);
    assert_ne!(before.0, before.1);
    hand.keys("I");
    assert_eq!(directions(&hand), (before.1, before.0));
    assert_eq!(
        other(&hand).map(|(name, _)| name).as_deref(),
        Some("PinBuffer")
    );
    hand.control('w');
    hand.keys("Io");
    assert_eq!(directions(&hand), before);
    let views = &hand.app.views;
    assert_eq!(views.tree.groups(), views.other_tree.groups());
    let hand = tree(149, 45);
    assert_eq!(hand.app.pane(), None);
}

fn time(width: u16, height: u16) -> Hand {
    let mut hand = Hand::new(width, height);
    hand.show(tree_step(0)).keys("6").wait(2_000);
    hand
}

/// Returns the samples of the graph below the map, those of the rest, and the number of frames that
/// differ significantly.
fn stretch(hand: &Hand) -> (u64, u64, usize) {
    let flame = &hand.app.views.stretch_flame;
    let sides = flame.sides().expect("something to compare with");
    let bars = flame.shown().flat_map(|(_, row)| row);
    let sure = bars.filter(|bar| flame.is_sure(bar, None)).count();
    (sides.b.samples, sides.a.samples, sure)
}

#[test]
fn what_is_marked_has_a_flame_graph_below_the_map() {
    for (width, height) in [(120, 40), (160, 45)] {
        let mut hand = time(width, height);
        // Until a stretch is chosen, the graph is that of the window.
        let (here, rest, _) = stretch(&hand);
        assert_eq!((here, rest), (3_277, 21));
        hand.keys("hhhh");
        let (here, rest, _) = stretch(&hand);
        assert_eq!(here + rest, 3_277 + 21);
        hand.keys("vll");
        let (here, rest, sure) = stretch(&hand);
        assert_eq!(here + rest, 3_277 + 21);
        assert!(sure > 0 && here > 0);
        hand.looks_like(&format!("time-marked-{width}x{height}"));
        hand.control('w');
        hand.keys("jjj");
        hand.looks_like(&format!("time-flame-{width}x{height}"));
        hand.keys("i");
        assert!(hand.frame().contains("in all the rest"), "{}", hand.frame());
        hand.looks_like_in_ascii(&format!("time-flame-{width}x{height}-ascii"));
    }
}

#[test]
fn before_is_the_rest_of_the_time() {
    let mut hand = time(160, 45);
    hand.keys("hhhhvll");
    let flame = &hand.app.views.stretch_flame;
    let sides = flame.sides().expect("two sides");
    let (root, bars): (Vec<_>, Vec<_>) = flame
        .shown()
        .flat_map(|(_, row)| row)
        .filter(|bar| bar.node.is_some())
        .partition(|bar| bar.node.is_some_and(|node| node.depth == 0));
    assert_eq!(root[0].samples, sides.b.samples);
    assert_eq!(root[0].before, Some(sides.a.samples));
    // The expected number: all samples that are kept, minus those that are marked.
    let whole = tree_step(0);
    let view = whole.view.expect("a store");
    let query = profile::Query::default();
    let all = view.select(&query, &Cancel::new()).expect("not cancelled");
    let tree = all
        .tree(
            profile::query::Direction::TopDown,
            profile::query::GroupBy::None,
            &Cancel::new(),
        )
        .expect("not cancelled");
    let first = bars[0];
    let kind = first.node.expect("one frame").kind;
    let run = first.run.iter().map(|frame| frame.kind);
    let way: Vec<_> = run.chain([kind]).collect();
    let node = tree.find(&way).expect("it is there");
    assert_eq!(Some(node.samples - first.samples), first.before);
}

#[test]
fn the_map_and_its_flame_graph_follow_each_other() {
    let mut hand = time(160, 45);
    hand.keys("hhhhvll");
    hand.control('w');
    hand.keys("/SeqNext\n\u{1b}");
    assert!(hand.frame().contains("# half: SeqNext"), "{}", hand.frame());
    let flame = |hand: &Hand| hand.app.views.stretch_flame.is_zoomed();
    hand.keys("\n");
    assert!(flame(&hand));
    hand.keys("\u{8}");
    assert!(!flame(&hand) && hand.app.in_pane().is_some());
    hand.keys("\u{8}");
    assert_eq!(hand.app.in_pane(), None);
    hand.keys("\u{8}");
    assert!(hand.app.views.time.marked().is_none());
    // A drag works only on the map.
    let (_, part) = hand
        .app
        .parts()
        .and_then(|parts| parts.pane)
        .expect("a pane");
    let left = MouseButton::Left;
    mouse(&mut hand, MouseEventKind::Down(left), 150, part.heads - 5);
    mouse(&mut hand, MouseEventKind::Drag(left), 155, part.body() + 3);
    assert!(hand.app.views.time.marked().is_none());
    mouse(&mut hand, MouseEventKind::Drag(left), 155, part.heads - 6);
    assert!(hand.app.views.time.marked().is_some());
    hand.keys("\n");
    assert!(
        hand.frame().contains("FLAME GRAPH of the window"),
        "{}",
        hand.frame()
    );
}

#[test]
fn time_and_difference_keep_their_own_zoom() {
    let mut hand = time(160, 45);
    hand.keys("hhhhvll");
    hand.control('w');
    hand.keys("/IndexNext\n\u{1b}\n");
    let zoomed = |hand: &Hand| {
        let views = &hand.app.views;
        [&views.stretch_flame, &views.difference_flame].map(|flame| flame.is_zoomed())
    };
    assert_eq!(zoomed(&hand), [true, false]);
    let before = hand.frame();
    hand.keys("1b=").wait(2_000);
    assert_eq!(hand.app.pane(), Some(PaneId::DifferenceFlame));
    hand.control('w');
    hand.keys("/ExecScan\n\u{1b}\n");
    assert_eq!(zoomed(&hand), [true, true]);
    hand.keys("=6");
    hand.control('w');
    assert_eq!(zoomed(&hand), [true, true]);
    let below = |frame: &str| {
        let lines = frame.lines().skip(20).take(20);
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(below(&hand.frame()), below(&before));
    hand.keys("\u{8}");
    assert_eq!(zoomed(&hand), [false, true]);
}

#[test]
fn beside_what_differs_stands_its_flame_graph() {
    let mut hand = Hand::new(160, 45);
    hand.show(tree_of_even_samples()).wait(2_000);
    hand.keys("\\comm:postgres\n").keys("b=").keys("\\");
    hand.control('u');
    hand.keys("!_bt_\n").keys("jjjj");
    assert_eq!(hand.app.pane(), Some(PaneId::DifferenceFlame));
    hand.looks_like("difference-160x45");
    hand.looks_like_in_ascii("difference-160x45-ascii");
    let name = |hand: &Hand| {
        let bar = hand.app.views.difference_flame.selected()?;
        Some(bar.name.to_string())
    };
    let row = |hand: &Hand| {
        let diff = hand.app.difference()?;
        Some(
            hand.app
                .views
                .functions
                .difference
                .selected(diff)?
                .name
                .to_string(),
        )
    };
    assert_eq!(name(&hand), row(&hand));
    hand.control('w');
    let before = row(&hand);
    hand.keys("k");
    assert_eq!(row(&hand), before, "the keys are the flame graph's");
    assert_ne!(name(&hand), before);
    hand.looks_like("difference-flame-keys-160x45");
    hand.keys("=");
    assert_eq!(hand.app.pane(), Some(PaneId::PageBeside));
}

#[test]
fn above_the_zoom_stands_what_leads_there() {
    let mut hand = Hand::new(160, 45);
    hand.show(tree_step(0)).keys("3/^IndexNext\n\u{1b}\n");
    let frame = hand.frame();
    let lines: Vec<&str> = frame.lines().collect();
    let body = usize::from(hand.app.parts().expect("a screen").view.body());
    assert!(lines[body - 1].starts_with(" map |"), "{frame}");
    assert!(
        lines[body].starts_with(" postgres[4121] › _start"),
        "{frame}"
    );
    let x = lines[body]
        .split("PortalRun")
        .next()
        .expect("before")
        .chars()
        .count() as u16;
    let at = |x, y| crate::screen::ancestor_at(&hand.app, x, y);
    assert_eq!(
        (at(x - 2, body as u16), at(x, body as u16 + 1)),
        (None, None)
    );
    let number = at(x, body as u16).expect("a name");
    hand.event(Event::Ancestor(number));
    let top = |hand: &Hand| {
        let first = hand
            .app
            .views
            .flame
            .shown()
            .next()
            .map(|(_, row)| row[0].name.to_string());
        first.expect("a frame")
    };
    assert_eq!(top(&hand), "PortalRun");
    hand.keys("\u{8}");
    assert_eq!(top(&hand), "IndexNext");
    // A click on a frame is one line further down.
    let left = MouseEventKind::Down(MouseButton::Left);
    mouse(&mut hand, left, 4, body as u16 + 2);
    assert!(hand.app.views.flame.selected_spot().row == 1);
    hand.event(Event::Ancestor(0));
    assert!(!hand.app.views.flame.is_zoomed());
}

fn code(width: u16, height: u16) -> Hand {
    let mut hand = Hand::new(width, height);
    hand.show(tree_step(0))
        .keys("/heap_hot\n\u{1b}a")
        .wait(2_000);
    hand
}

/// Returns the lines that are selected in the source text and in the instructions.
fn lines(hand: &Hand) -> (Option<u32>, Option<u32>) {
    let views = &hand.app.views;
    (views.code.line_here(), views.assembly.line_here())
}

#[test]
fn instructions_stand_beside_the_source_text() {
    let mut hand = code(160, 45);
    assert_eq!(hand.app.pane(), Some(PaneId::Assembly));
    assert_eq!(lines(&hand), (Some(8), Some(8)));
    hand.keys("jjjjjj");
    assert_eq!(lines(&hand), (Some(11), Some(11)));
    assert!(hand.frame().contains('▌'), "{}", hand.frame());
    // On a line without instructions, the previous instructions stay selected.
    hand.keys("k");
    assert_eq!(lines(&hand), (Some(10), Some(11)));
    hand.control('w');
    hand.keys("g");
    let (source, assembly) = lines(&hand);
    assert!(source.is_some() && source == assembly);
    hand.keys("j");
    hand.looks_like("code-assembly-160x45");
    // The selected instruction is kept on the way back.
    let instruction = |hand: &Hand| hand.app.views.assembly.selected().cloned();
    let before = instruction(&hand);
    hand.control('w');
    hand.wait(1_000);
    assert_eq!(instruction(&hand), before);
    // First both in one list, then only one of them.
    hand.keys("|");
    assert!(hand.app.pane().is_none());
    hand.keys("|o");
    assert!(hand.app.pane().is_none());
    assert_eq!(
        hand.app.views.code.layout(),
        crate::views::code::Layout::Source
    );
}

#[test]
fn both_sides_of_code_add_up() {
    let hand = code(160, 45);
    let sum = |code: &crate::views::code::Code| {
        let rows = code.rows().iter().filter(|row| !row.is_part());
        rows.map(|row| row.samples()).sum::<u64>()
    };
    let views = &hand.app.views;
    assert_eq!(sum(&views.code), 233);
    assert_eq!(sum(&views.assembly), 233);
}

/// `W` moves the focus to the view beside; `S` and `R` are snapshots and sizes.
const KEYS: &str = "12345678jkhlGgWW|W\n\n\u{8}\u{8}/iIoav}#EC*b=fxSSRR";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any keys, snapshots and sizes in any order.
    #[test]
    fn nothing_breaks_side_by_side(
        deeds in prop::collection::vec(
            (prop::sample::select(KEYS.chars().collect::<Vec<_>>()), 0u64..40),
            1..40,
        ),
    ) {
        let mut hand = Hand::new(160, 45);
        hand.show(tree_step(0)).wait(2_000);
        for (key, step) in deeds {
            match key {
                'W' => drop(hand.control('w')),
                'S' => drop(hand.wait(step * 60).show(tree_step(step))),
                'R' => match step % 4 {
                    0 => resize(&mut hand, 80, 24),
                    1 => resize(&mut hand, 120, 40),
                    2 => resize(&mut hand, 300, 80),
                    _ => resize(&mut hand, 160, 45),
                },
                '/' => drop(hand.keys("/e\n")),
                key => drop(hand.keys(&key.to_string())),
            }
            rules::frame(&hand.app, &UTF8);
            rules::frame(&hand.app, &ASCII);
        }
    }
}
