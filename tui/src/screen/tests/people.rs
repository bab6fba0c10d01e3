//! Processes below those that started them, and what the key line offers.

use super::*;
use crate::action::{Key, Keymap, Scope};
use crate::fixture::{postgres, tree_step};
use crate::views::tree::Fold;
use crate::words::text;

/// The processes, each started by the one that its pid is given.
fn started_by(parents: &[(u32, u32)]) -> Snapshot {
    let mut snapshot = postgres();
    let report = Arc::make_mut(&mut snapshot.report);
    for process in &mut report.processes {
        let found = parents.iter().find(|(pid, _)| *pid == process.pid);
        process.details.parent = Some(found.map_or(1, |(_, parent)| *parent));
    }
    snapshot
}

/// The pids on the screen from top to bottom, each with the lines before its command.
fn rows(hand: &Hand) -> Vec<(u32, String)> {
    let (table, report) = (&hand.app.views.processes, &hand.app.shown.report);
    let lines = table.lines(report);
    lines
        .map(|line| (line.row.pid, line.guides.to_owned()))
        .collect()
}

#[test]
fn processes_stand_below_those_that_started_them() {
    let mut hand = Hand::new(80, 24);
    hand.show(postgres()).keys("4").wait(2_000);
    let pids: Vec<u32> = rows(&hand).into_iter().map(|(pid, _)| pid).collect();
    let (first, second, third) = (pids[0], pids[1], pids[2]);
    let family = started_by(&[(first, third), (second, third)]);
    hand.show(family.clone()).keys("t").wait(2_000);
    let mut wanted = vec![
        (third, String::new()),
        (first, "├─ ".into()),
        (second, "└─ ".into()),
    ];
    let shown = rows(&hand);
    let at = shown
        .iter()
        .position(|(pid, _)| *pid == third)
        .expect("it is there");
    assert_eq!(shown[at..at + 3], wanted[..], "{}", hand.frame());
    assert!(hand.frame().contains("├─ "), "{}", hand.frame());
    assert_eq!(shown.len(), pids.len(), "each once");
    // The selected row stays selected, and so it is as a list again.
    let selected = |hand: &Hand| {
        let (table, report) = (&hand.app.views.processes, &hand.app.shown.report);
        table.selected(report).map(|line| line.row.pid)
    };
    hand.keys("jj");
    let before = selected(&hand);
    hand.code(KeyCode::F(5));
    assert_eq!(selected(&hand), before);
    assert_eq!(
        rows(&hand)
            .into_iter()
            .map(|(pid, _)| pid)
            .collect::<Vec<_>>(),
        pids
    );
    // Of a parent that has no samples only the number is known.
    hand.show(started_by(&[(first, 77_000), (second, 77_000)]))
        .keys("t")
        .wait(2_000);
    wanted = vec![(first, "┌─ ".into()), (second, "└─ ".into())];
    assert_eq!(rows(&hand)[..2], wanted[..], "{}", hand.frame());
    hand.looks_like("processes-family-80x24");
    hand.looks_like_in_ascii("processes-family-80x24-ascii");
}

#[test]
fn a_key_with_several_meanings_tells_all_views() {
    for (view, key, said) in [
        (
            '4',
            'a',
            "a works in Func, Tree, Flame, Code, Probes, page: its source",
        ),
        (
            '8',
            'l',
            "l works in Func, Code, page: count and time its calls; also in Tree, Fla",
        ),
        (
            '1',
            'p',
            "p works in Tree, Flame, Code: the function's page",
        ),
        (
            '1',
            'v',
            "v works in Proc, Thread: mark, to narrow to several; also in Time, Prob",
        ),
        ('1', 'z', "this key does nothing"),
    ] {
        let mut hand = Hand::new(80, 24);
        hand.show(tree_step(0))
            .wait(2_000)
            .code(KeyCode::Char(view));
        hand.code(KeyCode::Char(key));
        let frame = hand.frame();
        assert!(frame.contains(said), "{view} {key}: {frame}");
    }
}

#[test]
fn a_key_that_does_nothing_here_says_where_it_works_on_a_narrow_screen() {
    let keymap = Keymap::default();
    let mut told = 0;
    for view in '1'..='8' {
        for binding in keymap.all().iter().filter(|b| b.scope != Scope::Everywhere) {
            let mut hand = Hand::new(80, 24);
            hand.show(tree_step(0))
                .wait(2_000)
                .code(KeyCode::Char(view));
            let Some(Key::Char(letter)) = binding.keys.first() else {
                continue;
            };
            if binding.scope.holds(hand.app.focus()) {
                continue;
            }
            hand.code(KeyCode::Char(*letter));
            let frame = hand.frame();
            let line = frame.lines().nth(22).unwrap_or_default();
            if let Some((_, rest)) = line.split_once(" works in ") {
                let (views, _) = rest.split_once(':').unwrap_or_else(|| panic!("{line}"));
                let names = views.split(", ").map(str::trim);
                assert!(
                    names
                        .clone()
                        .all(|name| !name.is_empty() && !name.contains('…')),
                    "{line}"
                );
                assert!(text::width(line) <= 80);
                told += 1;
            }
        }
    }
    assert!(told > 100, "{told}");
}

#[test]
fn a_leaf_of_the_tree_is_not_offered_to_be_opened() {
    let mut hand = Hand::new(80, 24);
    hand.show(tree_step(0)).keys("2EG");
    let selected = hand.app.views.tree.selected().expect("a row");
    assert_eq!(selected.fold, Fold::Leaf, "{}", hand.frame());
    let keys = |hand: &Hand| hand.frame().lines().last().map(str::to_owned);
    let leaf = keys(&hand).expect("the key line");
    assert!(
        !leaf.contains("open") && !leaf.contains("hot path"),
        "{leaf}"
    );
    assert!(
        leaf.contains("close"),
        "that leads to the row above: {leaf}"
    );
    hand.keys("g");
    let root = keys(&hand).expect("the key line");
    assert!(root.contains("open") && root.contains("hot path"), "{root}");
}
