//! Tests of scope, window and filter: what they count, what the screen says about them, and the way
//! back.

use super::Hand;
use crate::action::Action;
use crate::app::Event;
use crate::app::mode::Detail;
use crate::fixture::{postgres, tree_of_even_samples, tree_step};
use crate::knobs::{Knobs, Window};
use crate::screen::rules;
use crate::view_id::ViewId;
use crossterm::event::KeyCode;
use engine::snapshot::{Lacks, Metered, Recording, Snapshot, Span, TargetState};
use proptest::prelude::*;
use std::time::Duration;

const SIZES: [(u16, u16); 3] = [(60, 16), (80, 24), (120, 40)];

fn hand(width: u16, height: u16) -> Hand {
    let mut hand = Hand::new(width, height);
    hand.show(tree_step(0)).wait(2_000);
    hand
}

/// Returns the body, the detail line and the lines between.
fn body(hand: &Hand) -> Vec<String> {
    let frame = hand.frame();
    let lines = frame.lines().skip(4).take(18);
    lines.map(str::to_owned).collect()
}

pub fn line(hand: &Hand, number: usize) -> String {
    let frame = hand.frame();
    frame.lines().nth(number).unwrap_or_default().to_owned()
}

#[test]
fn narrowed_and_filtered_at_every_size() {
    for (width, height) in SIZES {
        let mut hand = hand(width, height);
        hand.keys("4\n");
        hand.keys("/LWLock\nx").code(KeyCode::Esc);
        hand.looks_like(&format!("knobs-{width}x{height}"));
        hand.looks_like_in_ascii(&format!("knobs-{width}x{height}-ascii"));
    }
}

#[test]
fn escape_closes_what_is_said_before_it_undoes() {
    let mut hand = hand(80, 24);
    hand.keys("x");
    let (knobs, explained) = (hand.app.knobs.clone(), |hand: &Hand| {
        hand.app.lines.detail == Detail::Explain
    });
    hand.keys("i");
    assert!(explained(&hand));
    hand.code(KeyCode::Esc);
    assert!(!explained(&hand) && hand.app.knobs == knobs);
    hand.code(KeyCode::Esc);
    assert!(hand.app.knobs.filter.is_empty());
    assert!(hand.frame().contains("undone: filter !"));
    // A notice about a step that was just undone does not block the next step.
    hand.keys("xx").code(KeyCode::Esc).code(KeyCode::Esc);
    assert!(hand.app.knobs.filter.is_empty());
}

#[test]
fn enter_narrows_to_a_process_and_backspace_leads_back() {
    let mut hand = hand(80, 24);
    hand.keys("4");
    let before = body(&hand);
    hand.keys("\n");
    assert_eq!(hand.app.view, ViewId::Functions);
    assert!(
        line(&hand, 1).starts_with("… › postgres[4121]")
            || line(&hand, 1).contains("› postgres[4121] › postgres[4121]")
    );
    hand.keys("\u{8}");
    assert!(hand.frame().contains("undone: only postgres[4121]"));
    assert_eq!(body(&hand), before);
    hand.keys("]");
    assert_eq!(hand.app.view, ViewId::Functions);
    hand.keys("[");
    assert_eq!(body(&hand), before);
}

/// Clicks on a step of the path in the header.
fn click_crumb(hand: &mut Hand, number: usize) {
    let line = line(hand, 1);
    let before: Vec<&str> = line.split(" › ").take(number).collect();
    let x = before
        .iter()
        .map(|words| words.chars().count() + 3)
        .sum::<usize>() as u16;
    let crumb = crate::screen::crumb_at(&hand.app, x, 1).expect("a crumb");
    hand.event(Event::Crumb(crumb));
}

#[test]
fn a_click_on_a_crumb_leads_there() {
    let mut hand = hand(120, 40);
    hand.keys("4\n5\n");
    assert_eq!(hand.app.knobs.scope.len(), 2);
    let (view, inner) = (hand.app.view, hand.app.knobs.clone());
    click_crumb(&mut hand, 3);
    assert_eq!(hand.app.knobs, inner, "one is there already");
    click_crumb(&mut hand, 2);
    assert_eq!((hand.app.knobs.scope.len(), hand.app.view), (1, view));
    hand.keys("\u{8}");
    assert_eq!(hand.app.knobs, inner, "it is a step that can be undone");
    click_crumb(&mut hand, 0);
    assert!(hand.app.knobs.scope.is_empty());
    let frame = hand.frame();
    assert!(frame.contains("only postgres[4121] is sampled"), "{frame}");
    assert_eq!(hand.app.shown.report.samples, 3_277);
    // There is no step between them, nor on other lines.
    assert_eq!(crate::screen::crumb_at(&hand.app, 7, 1), None);
    assert_eq!(crate::screen::crumb_at(&hand.app, 1, 2), None);
    hand.keys("?");
    assert_eq!(crate::screen::crumb_at(&hand.app, 1, 1), None);
}

#[test]
fn a_function_is_a_crumb_of_its_page_and_of_its_code() {
    for keys in ["\n", "a"] {
        let mut hand = hand(160, 45);
        hand.keys("/heap_hot\n\u{1b}").keys(keys);
        assert!(
            line(&hand, 1).starts_with("system › postgres[4121] › heap_hot_search_buffer "),
            "{}",
            line(&hand, 1)
        );
        let place = hand.app.view;
        click_crumb(&mut hand, 2);
        assert_eq!(hand.app.view, place);
        click_crumb(&mut hand, 1);
        assert_eq!(hand.app.view, ViewId::Functions);
        hand.keys("\u{8}");
        assert_eq!(hand.app.view, place);
    }
}

#[test]
fn every_zoom_and_turn_of_the_flame_graph_is_a_step_of_its_own() {
    let mut hand = hand(80, 24);
    hand.keys("3").wait(2_000);
    // Moving to a frame is not a step, so the selection may differ.
    let rows = |hand: &Hand| body(hand).join("\n").replace('>', "|");
    let mut before = vec![rows(&hand)];
    for step in ["jjjj\n", "U", "I", "/e\n\u{1b}jj\n", "o", "jj\n"] {
        hand.keys(step).wait(2_000);
        assert_ne!(rows(&hand), before[before.len() - 1], "{step}");
        before.push(rows(&hand));
    }
    before.pop();
    while let Some(frame) = before.pop() {
        hand.keys("\u{8}").wait(2_000);
        assert_eq!(rows(&hand), frame, "{} steps left", before.len());
    }
}

#[test]
fn what_was_opened_behind_a_knob_is_closed_on_the_way_back() {
    let mut hand = hand(80, 24);
    hand.keys("2").wait(2_000);
    let before = body(&hand);
    hand.keys("K").keys("E");
    assert_ne!(body(&hand), before);
    hand.keys("\u{8}");
    assert_eq!(body(&hand), before, "the folds of then");
    hand.keys("]");
    assert_ne!(body(&hand), before);
    // A zoom that was made before a knob was turned is undone after the knob.
    hand.keys("[3jjjj\n").wait(2_000);
    let zoomed = body(&hand);
    hand.keys("U\u{8}");
    assert_eq!(body(&hand), zoomed, "the knob first");
    hand.keys("\u{8}");
    assert_ne!(body(&hand), zoomed, "then the zoom");
    // Going to a function by its name can be undone, too.
    hand.keys("1b=:goto IndexNext\n");
    assert!(!hand.app.knobs.shows_difference);
    hand.keys("\u{8}");
    assert!(hand.app.knobs.shows_difference);
}

#[test]
fn an_excluded_function_takes_its_stacks_along() {
    let mut hand = hand(120, 40);
    assert_eq!(hand.app.shown.report.samples, 3_277);
    hand.keys("/LWLock\n\u{1b}x");
    assert_eq!(hand.app.shown.report.samples, 3_277 - 321);
    assert_eq!(hand.app.shown.offered, 3_277);
    assert!(
        line(&hand, 1).contains("filter !fn:LWLockAcquire keeps 90.2%"),
        "{}",
        line(&hand, 1)
    );
    // Exclude another one, then undo both, one by one.
    hand.keys("/PinBuf\n\u{1b}x");
    assert_eq!(hand.app.shown.report.samples, 3_277 - 321 - 144);
    hand.keys("\u{8}");
    assert_eq!(hand.app.shown.report.samples, 3_277 - 321);
    hand.keys("\u{8}");
    assert_eq!(hand.app.shown.report.samples, 3_277);
    assert!(line(&hand, 1).contains("filter none"));
}

#[test]
fn a_filter_is_typed_and_says_where_it_is_wrong() {
    let mut hand = hand(80, 24);
    hand.keys("\\").looks_like("filter-empty");
    hand.keys("main comn:x").looks_like("filter-wrong");
    hand.keys("\n");
    assert!(
        hand.app.knobs.filter.is_empty(),
        "a wrong one is not applied"
    );
    hand.code(KeyCode::Esc);
    assert!(hand.app.knobs.filter.is_empty());
    hand.keys("\\fn:nothing_like_it\n");
    assert_eq!(
        line(&hand, 3),
        r" ■ NO MATCH filter focus:fn:n…ke_it keeps 0 of 3,277.  Bksp: undo, \: edit"
    );
    hand.keys("\u{8}");
    assert_eq!(hand.app.shown.report.samples, 3_277);
}

#[test]
fn the_kernel_is_hidden_then_alone_then_there_again() {
    let mut hand = hand(80, 24);
    let filter = |hand: &Hand| hand.app.knobs.filter.to_string();
    for expected in ["hide:kind:kernel", "only:kind:kernel", ""] {
        hand.keys("K");
        assert_eq!(filter(&hand), expected);
    }
    hand.keys("RU");
    assert_eq!(filter(&hand), "fold:recursion hide:kind:user");
    hand.keys("R");
    assert_eq!(filter(&hand), "hide:kind:user");
}

#[test]
fn a_mark_begins_a_window_and_the_window_keys_leave_it() {
    let mut hand = hand(80, 24);
    hand.keys("m");
    assert!(
        line(&hand, 1).contains("since mark (0s)"),
        "{}",
        line(&hand, 1)
    );
    assert_eq!(hand.app.shown.report.samples, 0);
    hand.keys("\u{8}");
    assert_eq!(hand.app.shown.report.samples, 3_277);
    hand.keys("m,");
    assert_eq!(hand.app.knobs.window, Window::Last(Span::Seconds(10)));
}

#[test]
fn steps_of_the_window_are_one_step_back() {
    let mut hand = hand(80, 24);
    hand.keys("f..");
    assert_eq!(hand.app.knobs.window, Window::Last(Span::All));
    hand.keys("\u{8}");
    assert_eq!(hand.app.knobs.window, Window::Last(Span::Seconds(10)));
    assert!(!hand.app.knobs.filter.is_empty(), "the other knob stays");
}

#[test]
fn units_go_round_and_change_nothing_else() {
    let mut hand = hand(80, 24);
    let row = |hand: &Hand| {
        let frame = hand.frame();
        let row = frame.lines().find(|line| line.contains("hash_search"));
        let words = row
            .expect("a row")
            .trim_start_matches('>')
            .split_whitespace();
        words.take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let shares = row(&hand);
    // 465 samples at 99 Hz in 10 s are 0.47 of 16 CPUs.
    for (unit, own) in [
        ("unit % of machine", "2.9"),
        ("unit samples", "465"),
        ("unit CPU-ms/s", "470"),
        ("unit CPU", "0.47"),
        ("unit %", "14.2"),
    ] {
        let before = hand.app.knobs.clone();
        hand.keys("%");
        assert!(line(&hand, 1).contains(unit), "{}", line(&hand, 1));
        assert_eq!(row(&hand)[0], own, "{unit}");
        assert!(hand.app.knobs.asks_the_same(&before));
    }
    assert_eq!(row(&hand), shares);
    hand.keys("%%%").looks_like("unit-80x24");
    hand.keys("2").looks_like("unit-tree-80x24");
    hand.keys("4").looks_like("unit-processes-80x24");
    hand.keys("\u{8}\u{8}\u{8}");
    assert!(line(&hand, 1).contains("unit %"));
}

#[test]
fn the_difference_at_every_size() {
    for (width, height) in SIZES {
        let mut hand = hand(width, height);
        differ_by(&mut hand, "!_bt_");
        assert!(hand.frame().contains("DIFF"));
        hand.keys("jj");
        hand.looks_like(&format!("difference-{width}x{height}"));
        hand.looks_like_in_ascii(&format!("difference-{width}x{height}-ascii"));
    }
}

#[test]
fn the_difference_of_trees_at_every_size() {
    for (width, height) in SIZES {
        for (key, view) in [
            ("2E", "tree"),
            ("3", "flame"),
            ("4", "processes"),
            ("5", "threads"),
            ("6", "time"),
            ("8", "health"),
            ("/heap_hot\n\u{1b}\n", "page"),
        ] {
            let mut hand = hand(width, height);
            differ_by(&mut hand, "!_bt_ !PinBuffer");
            // The keys for a page select a function in the list, which is not possible in the
            // difference.
            if view == "page" {
                hand.keys("=").keys(key).keys("=");
            } else {
                hand.keys(key);
            }
            hand.keys("jj");
            let is_told = hand.frame().contains("gone in B") || key > "3";
            assert!(is_told || height < 40, "{}", hand.frame());
            hand.looks_like(&format!("difference-{view}-{width}x{height}"));
            hand.looks_like_in_ascii(&format!("difference-{view}-{width}x{height}-ascii"));
        }
    }
}

#[test]
fn enter_leads_from_the_difference_to_the_page() {
    let mut hand = hand(100, 30);
    hand.keys("b=").keys("\\!PinBuffer\n").keys("gjj");
    let name = {
        let diff = hand.app.difference().expect("it is shown");
        let selected = hand.app.views.functions.difference.selected(diff);
        selected.expect("a row").name.clone()
    };
    hand.keys("\n");
    assert_eq!(hand.app.view, ViewId::Page);
    let page = &hand.app.views.page;
    let answer = page.answer().expect("it was asked");
    assert_eq!(answer.function.name, name);
    assert!(answer.before.is_some() && hand.frame().contains("Δ MS/S"));
    hand.keys("=");
    assert!(!hand.frame().contains("Δ MS/S"), "{}", hand.frame());
}

#[test]
fn trees_of_the_same_samples_do_not_differ() {
    let mut hand = hand(120, 40);
    hand.keys("b2=E");
    assert_eq!(hand.app.view, ViewId::Tree, "the view stays");
    let rows = hand.app.views.tree.side().rows();
    assert!(rows.len() > 20);
    assert!(rows.iter().all(|row| row.before == Some(row.samples)));
    let frame = hand.frame();
    assert!(
        !frame.contains('▲') && !frame.contains("new in B"),
        "{frame}"
    );
    hand.keys("i");
    assert!(hand.frame().contains("could be chance"), "{}", hand.frame());
    hand.keys("3");
    let frame = hand.frame();
    assert!(
        !frame.contains("gone in B") && !frame.contains("| ▲"),
        "{frame}"
    );
    hand.keys("=");
    assert!(hand.frame().contains("100.0%"), "shares again");
}

#[test]
fn all_numbers_beside_a_difference_are_in_its_unit() {
    let mut hand = hand(100, 30);
    hand.keys("%%b=");
    for view in ["1", "2", "4", "5"] {
        hand.keys(view);
        assert!(line(&hand, 1).contains("unit CPU-ms/s"), "{}", hand.frame());
        // Another unit would not fit the numbers on the screen.
        hand.keys("%");
        let frame = hand.frame();
        assert!(frame.contains("a difference is in CPU-ms/s"), "{frame}");
        assert!(!frame.contains("SMP") && !frame.contains("CPUS"), "{frame}");
    }
    hand.keys("=1");
    assert!(line(&hand, 1).contains("unit samples"), "{}", hand.frame());
}

#[test]
fn the_same_samples_do_not_differ() {
    let mut hand = hand(80, 24);
    hand.keys("=");
    assert!(hand.frame().contains("nothing to compare with yet"));
    hand.keys("b");
    assert!(hand.frame().contains("3,277 samples are the baseline, A"));
    hand.keys("=");
    let diff = hand.app.difference().expect("it is shown");
    assert!(
        diff.rows
            .iter()
            .all(|row| row.a_self == row.b_self && !row.sure)
    );
    // A function that is excluded now is excluded on both sides.
    hand.keys("\\!LWLock\n");
    let diff = hand.app.difference().expect("it is shown");
    assert!(diff.a.samples < 3_277 && diff.a.samples == diff.b.samples);
    assert!(diff.rows.iter().all(|row| &*row.name != "LWLockAcquire"));
    hand.keys("=");
    assert!(hand.app.difference().is_none());
    assert!(!hand.app.knobs.filter.is_empty(), "the other knobs stay");
    hand.keys("\u{8}\u{8}\u{8}\u{8}");
    assert!(hand.app.knobs.filter.is_empty());
    assert!(hand.app.knobs.baseline.is_some(), "no step back drops it");
}

#[test]
fn words_of_a_find_that_is_refused_are_no_orders() {
    let mut hand = hand(80, 24);
    hand.keys("b=").keys("/work_fn\n");
    assert!(
        hand.frame().contains("not in the difference"),
        "{}",
        hand.frame()
    );
    assert!(hand.app.difference().is_some(), "w did not open a dialog");
    hand.keys("8").keys("/q2");
    assert_eq!(hand.app.view, ViewId::Health);
    assert!(hand.effects.is_empty(), "q did not quit");
    // After a pause, keys are actions again.
    hand.wait(1_000).keys("2");
    assert_eq!(hand.app.view, ViewId::Tree);
}

#[test]
fn each_side_is_counted_by_its_own_filter_where_neither_has_the_other() {
    let mut hand = hand(80, 24);
    differ_by(&mut hand, "!LWLock");
    let diff = hand.app.difference().expect("it is shown");
    let gone = diff.rows.iter().find(|row| &*row.name == "LWLockAcquire");
    assert!(gone.is_some_and(|row| row.is_gone() && row.sure));
    assert!(line(&hand, 1).contains("other filter"), "{}", hand.frame());
    hand.keys("i").looks_like("difference-explained");
}

/// Compares the samples with themselves as another filter counts them.
fn differ_by(hand: &mut Hand, filter: &str) {
    hand.show(tree_of_even_samples());
    hand.keys("\\comm:postgres\n").keys("b=").keys("\\");
    hand.control('u');
    hand.keys(filter).keys("\n");
}

#[test]
fn a_selection_in_the_difference_stays_on_its_function() {
    let mut hand = hand(80, 24);
    hand.keys("b=").wait(2_000).show(tree_step(9)).keys("jjj");
    let name = |hand: &Hand| {
        let diff = hand.app.difference().expect("it is shown");
        hand.app
            .views
            .functions
            .difference
            .selected(diff)
            .expect("a row")
            .name
            .clone()
    };
    let before = name(&hand);
    for step in [10, 11, 12] {
        hand.wait(2_000).show(tree_step(step));
        assert_eq!(name(&hand), before);
    }
    hand.keys("x");
    assert!(hand.app.knobs.filter.to_string().contains(&*before));
}

/// Returns the snapshot that `proftop open` shows.
pub fn recorded(change: impl FnOnce(&mut Recording)) -> Snapshot {
    let mut recording = Recording {
        name: "before.pft".into(),
        taken: Some((1_795_269_792_000, Duration::from_secs(3 * 86_400))),
        ..Recording::default()
    };
    change(&mut recording);
    let mut snapshot = tree_step(0);
    snapshot.asked.window = Span::All;
    snapshot.run.target = TargetState::Recorded;
    snapshot.run.busy_cpus = 0.0;
    snapshot.run.elapsed = Duration::from_secs(60);
    snapshot.source.recording = Some(recording);
    snapshot
}

fn file(width: u16, height: u16, change: impl FnOnce(&mut Recording)) -> Hand {
    let mut hand = Hand::with_window(width, height, Span::All);
    hand.show(recorded(change));
    hand
}

#[test]
fn a_file_at_every_size() {
    for (width, height) in SIZES {
        let hand = file(width, height, |_| {});
        hand.looks_like(&format!("file-{width}x{height}"));
        hand.looks_like_in_ascii(&format!("file-{width}x{height}-ascii"));
    }
}

#[test]
fn a_file_has_other_windows() {
    let mut hand = file(80, 24, |_| {});
    hand.keys(",");
    assert_eq!(hand.app.knobs.window, Window::Last(Span::Seconds(60)));
    assert!(
        hand.effects.is_empty(),
        "there is no engine: {:?}",
        hand.effects
    );
    assert!(!line(&hand, 1).contains('⟳'));
    hand.keys("m");
    assert!(hand.frame().contains("no new samples come in"));
}

#[test]
fn files_say_what_they_lack() {
    let broken = file(80, 24, |recording| {
        recording.broken =
            Some("the recording was cut off inside a block: the rest is whole".into());
    });
    assert_eq!(
        line(&broken, 3),
        " ■ CUT    the recording was cut off inside a block: the rest is whole"
    );
    let mut folded = file(80, 24, |recording| {
        recording.taken = None;
        recording.lacks = Lacks {
            time: true,
            people: true,
            unnamed: true,
        };
    });
    assert!(line(&folded, 3).contains("It has no times and no numbers of processes"));
    folded.keys(",");
    assert!(folded.frame().contains("it has one window"));
    folded.keys("5").looks_like("file-without-threads");
    let mut reading = recorded(|_| {});
    reading.run.target = TargetState::Running;
    let mut hand = Hand::with_window(80, 24, Span::All);
    hand.show(reading);
    assert!(line(&hand, 0).contains("READING before.pft 00:01:00"));
}

#[test]
fn a_snapshot_without_a_store_cannot_be_asked() {
    let mut hand = Hand::new(80, 24);
    hand.show(postgres()).keys("x\\main\n4v\n5\n");
    hand.keys(&"\u{8}".repeat(9));
    assert!(hand.app.knobs.filter.is_empty() && hand.app.knobs.scope.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_support::cases(200)))]

    /// After any keys, as many steps back lead to the start: view, query, order and selection.
    #[test]
    fn the_way_back_leads_there(
        start in prop::sample::select(vec!["", "jjj", "sjj", "4", "5", "Ij"]),
        keys in prop::collection::vec(prop::sample::select(vec![
            "f", "x", "H", "D", "K", "U", "R", "4\n", "5\n", ",", ".", "j", "1", "2", "s", "%", "b", "=",
        ]), 1..12),
    ) {
        let mut hand = hand(80, 24);
        hand.keys(start);
        let (place, frame) = (hand.app.knobs.clone(), hand.frame());
        let view = hand.app.view;
        for keys in &keys {
            hand.keys(keys);
            rules::frame(&hand.app, &super::UTF8);
        }
        hand.keys(&"\u{8}".repeat(24));
        prop_assert_eq!(&hand.app.knobs, &with_the_baseline_of(&hand, place));
        // Switching to a view is not a step.
        let key = hand.app.input.keymap.label(Action::View(view.tab()), view);
        hand.keys(&key.expect("views have keys"));
        let moved = keys.iter().any(|keys| matches!(*keys, "j" | "s"));
        if !moved {
            hand.keys("i\u{1b}");
            let detail = |frame: &str| frame.lines().skip(3).take(18).map(String::from).collect::<Vec<_>>();
            prop_assert_eq!(detail(&hand.frame()), detail(&frame));
        }
    }

    /// Adding a condition never adds a sample, and turning one knob leaves the others unchanged.
    #[test]
    fn filters_only_take_away(
        keys in prop::collection::vec(prop::sample::select(vec!["f", "x", "jx", "jjf", "jH"]), 1..8),
    ) {
        let mut hand = hand(80, 24);
        let mut last = hand.app.shown.report.samples;
        for keys in keys {
            let before = hand.app.knobs.clone();
            hand.keys(keys);
            let samples = hand.app.shown.report.samples;
            prop_assert!(samples <= last, "{samples} after {last}");
            prop_assert_eq!(&hand.app.knobs.scope, &before.scope);
            prop_assert_eq!(&hand.app.knobs.window, &before.window);
            last = samples;
        }
    }
}

proptest! {
    // Each case draws many frames.
    #![proptest_config(ProptestConfig::with_cases(test_support::cases(40)))]

    /// After a knob was turned, everything that was opened, zoomed, selected or sorted before is
    /// restored by as many steps back: the frame is identical.
    #[test]
    fn the_way_back_undoes_what_was_opened(
        start in prop::sample::select(vec![
            "2", "2jl", "2jjllE", "2*", "2oI", "3", "3jjjj\n", "3jI", "4j", "5j", "jj\n", "ja",
        ]),
        knob in prop::sample::select(vec!["K", "U", "R", "."]),
        keys in prop::collection::vec(prop::sample::select(vec![
            "2", "3", "1", "j", "jj", "l", "E", "C", "*", "I", "\n", "jjj\n", "x", "H", "K", "s", "/PostgresMain\n\u{1b}",
            "a", "p", "4\n", ":goto IndexNext\n", "b", "=", ",",
        ]), 1..14),
    ) {
        let mut hand = hand(80, 24);
        hand.keys(start).wait(2_000);
        let (before, knobs, view) = (body(&hand), hand.app.knobs.clone(), hand.app.view);
        hand.keys(knob);
        for keys in &keys {
            hand.keys(keys);
            if *keys == "b" {
                // It waits for a report of another window, which no engine makes here.
                hand.wait(2_000);
            }
            rules::frame(&hand.app, &super::UTF8);
        }
        // One step at a time: how many there are depends on which keys had an effect.
        for _ in 0..80 {
            let knobs = with_the_baseline_of(&hand, knobs.clone());
            if hand.app.knobs == knobs && hand.app.view == view && body(&hand) == before {
                break;
            }
            hand.keys("\u{8}");
        }
        prop_assert_eq!(&hand.app.knobs, &with_the_baseline_of(&hand, knobs));
        prop_assert_eq!(hand.app.view, view);
        prop_assert_eq!(body(&hand), before);
    }
}

/// Returns the expected knobs after steps back: a baseline that was chosen since then stays.
fn with_the_baseline_of(hand: &Hand, knobs: Knobs) -> Knobs {
    Knobs {
        baseline: hand.app.knobs.baseline.clone(),
        ..knobs
    }
}

/// Returns the view of the fixture as a file that counts two metrics.
fn counting_twice() -> Snapshot {
    let snapshot = tree_step(0);
    let view = snapshot.view.clone().expect("it has one");
    let own = Metered {
        name: "cpu".into(),
        view: Some(view.clone()),
    };
    let mut file = Vec::new();
    profile::formats::pft::write(&view, &mut file).expect("there is room");
    let limits = profile::Limits {
        keep: std::time::Duration::MAX,
        ..profile::Limits::default()
    };
    let (mut store, _) = profile::formats::pft::read(&file[..], limits).expect("it is ours");
    store.set_info(profile::Info {
        metric: profile::Metric {
            name: "page-faults".into(),
            unit: "events".into(),
        },
        ..profile::Info::clone(view.info())
    });
    let other = Metered {
        name: "page-faults".into(),
        view: Some(store.view()),
    };
    let coming = Metered {
        name: "cycles".into(),
        view: None,
    };
    Snapshot {
        metrics: [own, other, coming].into(),
        ..snapshot
    }
}

#[test]
fn the_metric_is_a_knob_like_any_other() {
    let mut hand = Hand::new(80, 24);
    hand.show(counting_twice()).keys("jj");
    let before = hand.app.knobs.clone();
    assert!(line(&hand, 1).contains("on-CPU"));
    hand.keys("c");
    assert!(line(&hand, 1).contains("page-faults"), "{}", hand.frame());
    assert!(line(&hand, 2).contains("page faults"), "{}", hand.frame());
    let metric = hand.app.knobs.metric;
    assert_eq!(
        hand.app.knobs,
        Knobs {
            metric,
            ..before.clone()
        }
    );
    hand.keys("c");
    assert!(hand.frame().contains("cycles is still being read"));
    assert_eq!(hand.app.knobs.metric, metric);
    hand.keys("\u{8}");
    assert_eq!(hand.app.knobs, before);
    assert!(line(&hand, 1).contains("on-CPU") && line(&hand, 2).contains("samples"));
    hand.keys(":metric page-faults\n");
    assert!(line(&hand, 1).contains("page-faults"));
    hand.keys(":metric bytes\n");
    assert!(hand.frame().contains("it counts cpu, page-faults, cycles"));
}

#[test]
fn what_counts_one_thing_says_so() {
    let mut hand = Hand::new(80, 24);
    hand.show(recorded(|_| {})).keys("c");
    assert!(hand.frame().contains("this file counts nothing else"));
    assert_eq!(hand.effects, []);
}
