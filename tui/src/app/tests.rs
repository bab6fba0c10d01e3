//! Tests that give orders to the app, and check its effects and replies. Nothing is drawn.

use super::{App, Effect, Event};
use crate::app::mode::{Detail, Mode};
use crate::choices::Theme;
use crate::code::Syntax;
use crate::fixture::{postgres, tree_step};
use crate::geometry::Size;
use crate::knobs::{CountedAlone, Narrowing, Unit, Window};
use crate::notice::Notice;
use crate::order::Order;
use crate::view_id::ViewId;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use engine::snapshot::{Span, TargetState};
use profile::{Filter, ProcessId};
use std::sync::Arc;
use std::time::Duration;

fn app() -> App {
    let size = Size {
        width: 80,
        height: 24,
    };
    let mut app = App::new(size, Span::default(), 1, false);
    app.update(Event::Snapshot(Arc::new(postgres())), Duration::ZERO);
    app
}

/// Gives an order, and returns its result.
fn order(app: &mut App, order: Order) -> (Result<Option<Notice>, Notice>, Vec<Effect>) {
    let effects = app.update(Event::Order(order), Duration::from_secs(1));
    (app.take_reply(), effects)
}

#[test]
fn a_window_is_asked_of_the_engine_and_can_be_undone() {
    let mut app = app();
    let before = app.knobs.window;
    let minute = Window::Last(Span::Seconds(60));
    let (reply, effects) = order(&mut app, Order::Window(minute));
    assert_eq!(reply, Ok(Some(Notice::WindowSet)));
    assert!(effects.contains(&Effect::SetWindow(Span::Seconds(60))));
    assert_eq!(app.knobs.window, minute);
    let (reply, effects) = order(&mut app, Order::Back);
    assert_eq!(reply, Ok(Some(Notice::Undone("win 60s".into()))));
    assert_eq!(app.knobs.window, before);
    assert!(effects.iter().any(|e| matches!(e, Effect::SetWindow(_))));
    let (reply, _) = order(&mut app, Order::Back);
    assert_eq!(reply, Err(Notice::NoBack));
}

#[test]
fn a_process_without_samples_is_refused_and_nothing_changes() {
    let mut app = app();
    let knobs = app.knobs.clone();
    let (reply, effects) = order(&mut app, Order::Process(999_999));
    assert!(matches!(reply, Err(Notice::Refused(why)) if why.contains("999999")));
    assert_eq!((app.knobs == knobs, effects), (true, Vec::new()));
    let pid = app.shown.report.processes[0].pid;
    let (reply, _) = order(&mut app, Order::Process(pid));
    assert!(matches!(reply, Ok(Some(Notice::Only(who))) if who.contains(&pid.to_string())));
    assert_eq!(app.knobs.scope.len(), 1);
}

#[test]
fn what_needs_a_baseline_says_so() {
    let mut app = app();
    let (reply, _) = order(&mut app, Order::Difference(true));
    assert_eq!(reply, Err(Notice::NoBaseline));
    assert!(!app.knobs.shows_difference);
    // A made-up snapshot does not come from a store, so there is nothing to compare with.
    let (reply, _) = order(&mut app, Order::Baseline);
    assert_eq!(reply, Err(Notice::NothingToWrite));
}

/// Goes one step back, and returns what was undone.
fn undone(app: &mut App) -> String {
    match order(app, Order::Back) {
        (Ok(Some(Notice::Undone(what))), _) => what,
        (reply, _) => panic!("{reply:?}"),
    }
}

#[test]
fn a_baseline_that_replaced_another_can_be_undone() {
    let mut app = app();
    app.update(Event::Snapshot(Arc::new(tree_step(0))), Duration::ZERO);
    let is_another = |reply: Result<Option<Notice>, Notice>| match reply {
        Ok(Some(Notice::Baseline { is_another, .. })) => is_another,
        reply => panic!("{reply:?}"),
    };
    assert!(!is_another(order(&mut app, Order::Baseline).0));
    let first = app.knobs.baseline.clone();
    _ = order(&mut app, Order::Difference(true));
    assert!(is_another(order(&mut app, Order::Baseline).0));
    assert!(app.knobs.baseline != first);
    let what = undone(&mut app);
    assert!(what.contains("A is the one before"), "{what}");
    assert!(app.knobs.baseline == first);
    // The first baseline stays when what was done with it is undone.
    assert_eq!(undone(&mut app), "showing what differs");
    assert!(app.knobs.baseline == first);
}

#[test]
fn a_notice_that_confirms_a_key_does_not_stay_for_ever() {
    let mut app = app();
    app.update(Event::Snapshot(Arc::new(tree_step(0))), Duration::ZERO);
    let key = |app: &mut App, code| {
        let key = Event::Key(KeyEvent::new(code, KeyModifiers::NONE));
        app.update(key, Duration::from_secs(5));
    };
    key(&mut app, KeyCode::Char('.'));
    key(&mut app, KeyCode::Backspace);
    assert!(
        matches!(app.lines.detail, Detail::Notice(Notice::Undone(_))),
        "{:?}",
        app.lines.detail
    );
    app.update(Event::Tick, Duration::from_secs(12));
    assert!(matches!(app.lines.detail, Detail::Notice(_)));
    app.update(Event::Tick, Duration::from_secs(13));
    assert_eq!(app.lines.detail, Detail::Row);
    // A refusal stays until the next key.
    key(&mut app, KeyCode::Backspace);
    assert!(
        matches!(app.lines.detail, Detail::Notice(Notice::NoBack)),
        "{:?}",
        app.lines.detail
    );
    app.update(Event::Tick, Duration::from_secs(60));
    assert!(matches!(app.lines.detail, Detail::Notice(Notice::NoBack)));
}

#[test]
fn keys_wait_for_the_rows_that_they_need() {
    let press = |app: &mut App, code, ms| {
        let key = KeyEvent::new(code, KeyModifiers::NONE);
        app.update(Event::Key(key), Duration::from_millis(ms))
    };
    let opened = || {
        let mut app = app();
        app.update(Event::Snapshot(Arc::new(tree_step(0))), Duration::ZERO);
        let asked = press(&mut app, KeyCode::Char('2'), 5_000);
        let question = asked.into_iter().find_map(|effect| match effect {
            Effect::Ask(question) => Some(question),
            _ => None,
        });
        (app, question.expect("for the tree"))
    };
    // Both keys arrive together, as on a slow connection: the path is opened when the tree is
    // there.
    let (mut app, question) = opened();
    assert_eq!(press(&mut app, KeyCode::Char('*'), 5_001), []);
    assert_eq!(press(&mut app, KeyCode::Char('w'), 5_002), []);
    assert_eq!(app.lines.detail, Detail::Row);
    assert!(matches!(app.mode, Mode::Browse));
    let mut library = crate::fixture::MadeUp;
    let answer = question.answer(&mut library, &profile::Cancel::new());
    let answer = Event::Answer(answer.expect("nobody cancels it"));
    app.update(answer, Duration::from_millis(5_003));
    assert!(
        matches!(app.mode, Mode::Write(_)),
        "the key behind it was pressed, too"
    );
    // Without an answer the key is handled late, and a notice says why nothing happens; Esc drops
    // the key.
    let (mut app, _) = opened();
    press(&mut app, KeyCode::Char('f'), 5_001);
    app.update(Event::Tick, Duration::from_millis(6_900));
    assert_eq!(app.lines.detail, Detail::Row);
    app.update(Event::Tick, Duration::from_millis(7_001));
    assert_eq!(app.lines.detail, Detail::Notice(Notice::NothingSelected));
    let (mut app, _) = opened();
    press(&mut app, KeyCode::Char('f'), 5_001);
    press(&mut app, KeyCode::Esc, 5_002);
    app.update(Event::Tick, Duration::from_millis(9_000));
    assert_eq!(app.lines.detail, Detail::Notice(Notice::NoBack));
}

#[test]
fn a_baseline_waits_for_the_report_of_what_was_chosen_before() {
    let mut app = app();
    app.update(Event::Snapshot(Arc::new(tree_step(0))), Duration::ZERO);
    let filter: Filter = "comm:postgres".parse().expect("a filter");
    let (_, asked) = order(&mut app, Order::Filter(filter.clone()));
    // Still the report without a filter is shown.
    assert!(app.shown.report.samples > 0 && app.is_catching_up());
    let key = KeyEvent::new(KeyCode::Char('b'), KeyModifiers::NONE);
    app.update(Event::Key(key), Duration::from_millis(1_001));
    assert!(app.knobs.baseline.is_none());
    let questions = asked.into_iter().filter_map(|effect| match effect {
        Effect::Ask(question) => Some(question),
        _ => None,
    });
    for question in questions {
        let answer = question.answer(&mut crate::fixture::MadeUp, &profile::Cancel::new());
        let answer = Event::Answer(answer.expect("nobody cancels it"));
        app.update(answer, Duration::from_millis(1_002));
    }
    assert_eq!(app.shown.asked.query.filter, filter);
    let samples = app.shown.report.samples;
    assert_eq!(
        app.lines.detail,
        Detail::Notice(Notice::Baseline {
            samples,
            is_another: false
        })
    );
}

#[test]
fn nothing_is_no_baseline() {
    let mut app = app();
    let mut empty = tree_step(0);
    Arc::make_mut(&mut empty.report).samples = 0;
    app.update(Event::Snapshot(Arc::new(empty)), Duration::ZERO);
    let (reply, _) = order(&mut app, Order::Baseline);
    assert_eq!(reply, Err(Notice::NothingToCompare));
}

#[test]
fn code_of_a_process_is_that_of_its_hottest_function() {
    let mut app = app();
    _ = order(&mut app, Order::View(ViewId::Processes));
    let top = app.shown.report.processes[0].top_function.clone();
    let functions = &app.shown.report.functions;
    let id = functions.iter().find(|row| Some(&row.name) == top.as_ref());
    let id = id.map(|row| row.id).expect("it is a row of the functions");
    _ = order(&mut app, Order::View(ViewId::Code));
    assert_eq!(app.views.code.function(), Some(id));
}

#[test]
fn narrowing_to_the_same_again_is_no_step() {
    let mut app = app();
    let narrowing = |pid: u32, words: &str| Narrowing {
        part: CountedAlone::Processes(vec![ProcessId(pid)]),
        words: words.into(),
    };
    let (reply, _) = order(&mut app, Order::Narrow(narrowing(1, "writer[7]")));
    assert!(matches!(reply, Ok(Some(Notice::Only(_)))), "{reply:?}");
    let (reply, _) = order(&mut app, Order::Narrow(narrowing(1, "writer[7]")));
    assert!(matches!(reply, Err(Notice::OnlyThis(_))), "{reply:?}");
    assert_eq!(app.knobs.scope.len(), 1);
}

#[test]
fn each_step_back_names_what_it_undoes() {
    let mut app = app();
    for text in ["focus:fn:aa", "focus:fn:aa !fn:bb", "focus:fn:aa"] {
        _ = order(&mut app, Order::Filter(text.parse().unwrap()));
    }
    _ = order(&mut app, Order::Unit(Some(Unit::Samples)));
    _ = order(&mut app, Order::View(ViewId::Tree));
    assert_eq!(undone(&mut app), "unit, and back in Functions");
    assert_eq!(undone(&mut app), "taking !fn:bb out of the filter");
    assert_eq!(undone(&mut app), "filter !fn:bb");
    assert_eq!(undone(&mut app), "filter focus:fn:aa");
}

#[test]
fn a_mark_needs_samples_that_come() {
    let mut app = app();
    let mut ended = postgres();
    ended.run.target = TargetState::Exited {
        words: "postgres ended".into(),
        at_ns: 0,
    };
    app.update(Event::Snapshot(Arc::new(ended)), Duration::ZERO);
    let (reply, _) = order(&mut app, Order::Mark);
    assert_eq!(reply, Err(Notice::NoNow));
}

#[test]
fn looks_are_effects_or_state_of_a_view() {
    let mut app = app();
    let (reply, effects) = order(&mut app, Order::Theme(Theme::Light));
    assert_eq!(reply, Ok(None));
    assert!(effects.contains(&Effect::SetTheme(Theme::Light)));
    let (reply, _) = order(&mut app, Order::Syntax(Syntax::Intel));
    assert!(matches!(reply, Ok(Some(Notice::Syntax(_)))));
    assert_eq!(app.views.code.syntax(), Syntax::Intel);
    let (_, _) = order(&mut app, Order::View(ViewId::Health));
    assert_eq!(app.view, ViewId::Health);
    let (reply, _) = order(&mut app, Order::Sort("nothing".into()));
    assert!(matches!(reply, Err(Notice::Refused(why)) if why.contains("self")));
}

#[test]
fn a_unit_that_needs_time_is_refused_without_it() {
    let mut app = app();
    let (reply, _) = order(&mut app, Order::Unit(Some(Unit::CpuMs)));
    assert_eq!(reply, Ok(Some(Notice::UnitSet)));
    let mut timeless = postgres();
    Arc::make_mut(&mut timeless.report).rate_hz = 0;
    app.update(Event::Snapshot(Arc::new(timeless)), Duration::ZERO);
    let (reply, _) = order(&mut app, Order::Unit(Some(Unit::Cpus)));
    assert!(matches!(reply, Err(Notice::Refused(_))));
}

#[test]
fn a_filter_is_one_step_and_frozen_samples_stay() {
    let mut app = app();
    let filter: Filter = "comm:postgres".parse().expect("a filter");
    let (reply, _) = order(&mut app, Order::Filter(filter.clone()));
    assert_eq!(reply, Ok(Some(Notice::FilterSet)));
    assert_eq!(app.knobs.filter, filter);
    let (reply, _) = order(&mut app, Order::Freeze(true));
    assert_eq!(reply, Ok(Some(Notice::Frozen(true))));
    let generation = app.shown.generation;
    let newer = engine::snapshot::Snapshot {
        generation: generation + 1,
        ..postgres()
    };
    app.update(Event::Snapshot(Arc::new(newer)), Duration::ZERO);
    assert_eq!(app.shown.generation, generation);
    let (reply, _) = order(&mut app, Order::Freeze(true));
    assert_eq!(reply, Ok(Some(Notice::Frozen(true))));
    assert!(app.feed.freezing.frozen.is_some());
}

#[test]
fn a_name_that_tells_no_format_is_refused() {
    let mut app = app();
    let (reply, _) = order(&mut app, Order::Write("profile".into()));
    assert!(matches!(reply, Err(Notice::Refused(why)) if why.contains(".pft")));
}
