//! Pictures of the screen, compared with the ones in `snapshots/`. To accept new ones, run the
//! tests with `PROFTOP_UPDATE_SNAPSHOTS=1`.

use super::rules;
use crate::app::{App, Effect, Event};
use crate::fixture::{FIRST, MadeUp, first_samples, postgres, step, tree_of_stripped_libc};
use crate::geometry::Size;
use crate::lists::table::Item;
use crate::view_id::ViewId;
use crate::widgets::theme::{Charset, Ground, Palette, Theme};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use engine::snapshot::{FetchState, Recording, Snapshot, Span, TargetState};
use profile::{Cancel, FrameId};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Views beside the open one.
mod beside;
/// The bytes that are sent to the terminal.
mod bytes;
/// The code of a function.
mod code;
/// All views at once.
mod everywhere;
/// The flame graph.
mod flame;
/// The keys that sentences name.
mod keys;
/// What is counted, and recordings.
mod knobs;
/// Languages beside native code.
mod languages;
/// Places that can be clicked on.
mod links;
/// The page of a function.
mod page;
/// The palette, and keys that a user has assigned.
mod palette;
/// Processes and threads.
mod people;
/// Probes of functions.
mod probes;
/// Many random events, and a check of every frame.
mod random;
/// How samples are taken.
mod sampling;
/// The map of time.
mod time;
/// The call tree.
mod tree;
/// Waiting time.
mod waiting;
/// Writing files.
mod write;

const UTF8: Theme = Theme {
    palette: Palette::Indexed,
    charset: Charset::Utf8,
    ground: Ground::Unknown,
    links: false,
    aside: false,
};
const ASCII: Theme = Theme {
    palette: Palette::Mono,
    charset: Charset::Ascii,
    ground: Ground::Unknown,
    links: false,
    aside: false,
};

/// An app with a clock that only the test advances, and methods that press its keys.
struct Hand {
    app: App,
    now: Duration,
    effects: Vec<Effect>,
}

impl Hand {
    fn new(width: u16, height: u16) -> Self {
        Self::with_window(width, height, Span::Seconds(10))
    }

    fn with_window(width: u16, height: u16, window: Span) -> Self {
        Hand {
            app: App::new(Size { width, height }, window, 9_012, true),
            now: Duration::ZERO,
            effects: Vec::new(),
        }
    }

    fn event(&mut self, event: Event) -> &mut Self {
        self.effects = self.app.update(event, self.now);
        // The next frame may be drawn before the answers arrive.
        if self.effects.iter().any(is_question) {
            rules::frame(&self.app, &UTF8);
        }
        // Answers the questions at once, as the worker would do later.
        while let Some(at) = self.effects.iter().position(is_question) {
            let (Effect::Ask(question) | Effect::AskBeside(question)) = self.effects.remove(at)
            else {
                unreachable!("it is one");
            };
            let answer = question
                .answer(&mut MadeUp, &Cancel::new())
                .expect("nobody cancels it");
            let more = self.app.update(Event::Answer(answer), self.now);
            self.effects.extend(more);
        }
        self
    }

    fn show(&mut self, snapshot: Snapshot) -> &mut Self {
        self.event(Event::Snapshot(Arc::new(snapshot)))
    }

    fn wait(&mut self, milliseconds: u64) -> &mut Self {
        self.now += Duration::from_millis(milliseconds);
        self.event(Event::Tick)
    }

    fn code(&mut self, code: KeyCode) -> &mut Self {
        self.event(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    fn control(&mut self, key: char) -> &mut Self {
        let code = KeyCode::Char(key);
        self.event(Event::Key(KeyEvent::new(code, KeyModifiers::CONTROL)))
    }

    fn keys(&mut self, keys: &str) -> &mut Self {
        for key in keys.chars() {
            match key {
                '\n' => self.code(KeyCode::Enter),
                '\u{8}' => self.code(KeyCode::Backspace),
                '\u{1b}' => self.code(KeyCode::Esc),
                key => self.code(KeyCode::Char(key)),
            };
        }
        self
    }

    fn frame(&self) -> String {
        rules::frame(&self.app, &UTF8)
    }

    #[track_caller]
    fn looks_like(&self, name: &str) {
        compare(name, &self.frame());
    }

    fn looks_like_in_ascii(&self, name: &str) {
        compare(name, &rules::frame(&self.app, &ASCII));
    }

    fn selected(&self) -> Option<FrameId> {
        let line = self
            .app
            .views
            .functions
            .table
            .selected(&self.app.shown.report);
        line.map(|line| line.row.id)
    }
}

fn is_question(effect: &Effect) -> bool {
    matches!(effect, Effect::Ask(_) | Effect::AskBeside(_))
}

#[track_caller]
fn compare(name: &str, frame: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/screen/snapshots");
    let path = folder.join(format!("{name}.txt"));
    if std::env::var_os("PROFTOP_UPDATE_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(&folder).expect("the snapshots' folder");
        std::fs::write(&path, frame).expect("the snapshot");
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        expected == frame,
        "{name} looks different.\n--- expected\n{expected}--- now\n{frame}"
    );
}

#[test]
fn functions_at_every_size() {
    for (width, height) in [(60, 16), (80, 24), (120, 40), (160, 45), (300, 80)] {
        let mut hand = Hand::new(width, height);
        hand.show(postgres()).keys("jj");
        hand.looks_like(&format!("functions-{width}x{height}"));
        hand.looks_like_in_ascii(&format!("functions-{width}x{height}-ascii"));
    }
}

#[test]
fn other_views() {
    let mut hand = Hand::new(80, 24);
    hand.show(postgres());
    hand.keys("4").looks_like("processes-80x24");
    hand.keys("5j").looks_like("threads-80x24");
    hand.keys("8jj").looks_like("health-80x24");
    let mut hand = Hand::new(60, 16);
    hand.show(postgres());
    hand.keys("4").looks_like("processes-60x16");
    hand.keys("5j").looks_like("threads-60x16");
    hand.keys("8jj").looks_like("health-60x16");
}

#[test]
fn health_uses_the_room_there_is() {
    for (width, height) in [(149, 45), (160, 45)] {
        let mut hand = Hand::new(width, height);
        let mut snapshot = postgres();
        let mut losses = engine::losses::Losses::default();
        losses.note(181_000_000_000, 611, &[(3, 611)]);
        losses.note(183_500_000_000, 1_126, &[(3, 611), (7, 515)]);
        snapshot.run.losses = Some(Arc::new(losses));
        hand.show(snapshot).keys("8jj");
        hand.looks_like(&format!("health-{width}x{height}"));
        hand.looks_like_in_ascii(&format!("health-{width}x{height}-ascii"));
        let has_modules = hand.frame().contains("OR WHY");
        assert_eq!(has_modules, width >= 150);
    }
}

#[test]
fn a_cause_for_missing_names_opens() {
    let mut hand = Hand::new(80, 24);
    hand.show(tree_of_stripped_libc()).wait(2_000);
    hand.keys("8");
    // From any selected line.
    hand.keys("\n").wait(2_000);
    hand.keys("j").looks_like("health-cause-80x24");
    hand.keys("y");
    let copied = Effect::Copy("sudo apt install libc6-dbg".into());
    assert!(hand.effects.contains(&copied), "{:?}", hand.effects);
    // Another snapshot has come since the modules were counted, so the line says when that was.
    let mut later = tree_of_stripped_libc();
    later.generation += 1;
    later.run.elapsed += Duration::from_secs(2);
    hand.show(later);
    let frame = hand.frame();
    assert!(
        frame.contains("00:03:14") && frame.contains("at 00:03:12: "),
        "{frame}"
    );
    hand.code(KeyCode::Esc).code(KeyCode::Esc);
    assert!(!hand.frame().contains("apt install"), "{}", hand.frame());
    assert_eq!(hand.app.view, ViewId::Health);
}

#[test]
fn names_of_a_recording_are_looked_up_where_it_was_opened() {
    let recorded = |path: &str| {
        let mut snapshot = tree_of_stripped_libc();
        snapshot.source.recording = Some(Recording {
            name: "all.pft".into(),
            path: path.into(),
            ..Recording::default()
        });
        let mut hand = Hand::new(120, 24);
        hand.show(snapshot).wait(2_000).keys("8\n").wait(2_000);
        hand.frame()
    };
    let frame = recorded("/srv/a b/all.pft");
    let command = "proftop resolve '/srv/a b/all.pft' --debug-dir DIR";
    assert!(frame.contains(command), "{frame}");
    // A recording that came through a pipe has no path.
    let frame = recorded("");
    assert!(frame.contains("proftop resolve FILE"), "{frame}");
}

#[test]
fn the_first_debug_file_is_asked_for() {
    let asking = || {
        let mut snapshot = postgres();
        snapshot.names.fetching = Some(FetchState {
            servers: "https://debuginfod.debian.net".into(),
            asks_for: Some("libc.so.6".into()),
        });
        snapshot
    };
    let mut hand = Hand::new(80, 24);
    hand.show(asking());
    let frame = hand.frame();
    // At 80 columns, the question names everything that is sent to the servers.
    let words = frame
        .lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join(" ");
    let line = "fetch names of libc.so.6 from debuginfod.debian.net? It learns what runs here. \
                F: fetch, X: never, Esc: not now";
    assert!(words.contains(line), "{frame}");
    // A key with another meaning does not answer the question, and the question comes back when
    // what the key opened is closed.
    for keys in ["8y", "ny", "i", "?", "4"] {
        hand.keys(keys).code(KeyCode::Esc).show(asking());
        assert_eq!(hand.app.fetching.answer, None, "{keys}");
        hand.keys("1").show(asking());
        assert!(
            hand.frame().contains("F: fetch"),
            "{keys}: {}",
            hand.frame()
        );
    }
    hand.keys("F");
    assert!(
        hand.effects.contains(&Effect::Fetch(true)),
        "{:?}",
        hand.effects
    );
    assert_eq!(hand.app.fetching.answer, Some(true));
    // After Esc the question is not asked again.
    let mut hand = Hand::new(80, 24);
    hand.show(asking()).code(KeyCode::Esc).show(asking());
    assert!(!hand.frame().contains("fetch names"), "{}", hand.frame());
    assert_eq!(hand.app.fetching.answer, None);
    hand.keys(":debuginfod off\n");
    assert!(
        hand.effects.contains(&Effect::Fetch(false)),
        "{:?}",
        hand.effects
    );
    // Without servers there is no question.
    let mut hand = Hand::new(80, 24);
    hand.show(postgres()).keys(":debuginfod on\n");
    assert!(hand.frame().contains("DEBUGINFOD_URLS"), "{}", hand.frame());
}

#[test]
fn a_stopped_target_says_so() {
    let mut snapshot = postgres();
    snapshot.run.is_stopped = true;
    let mut hand = Hand::new(80, 24);
    hand.show(snapshot);
    let frame = hand.frame();
    assert!(
        frame.contains("STOPPED postgres[4121] (SIGSTOP or a debugger)"),
        "{frame}"
    );
}

#[test]
fn the_first_seconds() {
    let hand = Hand::new(80, 24);
    hand.looks_like("starting");
    let mut hand = Hand::new(80, 24);
    hand.show(first_samples()).looks_like("first-samples");
}

#[test]
fn states() {
    let with = |change: fn(&mut Snapshot)| {
        let mut snapshot = postgres();
        change(&mut snapshot);
        let mut hand = Hand::new(80, 24);
        hand.show(snapshot);
        hand
    };
    let state = |hand: &Hand| hand.frame().lines().nth(3).unwrap_or_default().to_owned();

    let exited = with(|s| {
        s.run.target = TargetState::Exited {
            words: "postgres[4121] was killed by SIGSEGV".into(),
            at_ns: 0,
        };
    });
    exited.looks_like("exited");
    with(|s| s.health.lost = 1_126).looks_like("lost");
    let cut = with(|s| Arc::make_mut(&mut s.report).completeness.whole = 3_050);
    assert_eq!(
        state(&cut),
        " ■ CUT    4.1% of stacks end early (no frame pointer).  8 Health"
    );
    let idle = with(|s| {
        let report = Arc::make_mut(&mut s.report);
        report.samples = 0;
        report.functions.clear();
    });
    assert_eq!(
        state(&idle),
        " ■ IDLE   postgres[4121] used no CPU in 10s.  its waits: c  longer window: ."
    );
    let failed = with(|s| s.run.target = TargetState::Failed("cannot sample: no rights".into()));
    assert_eq!(state(&failed), " ■ FAILED cannot sample: no rights");
    let mut none = with(|_| {});
    none.keys("/nosuchname\n");
    assert!(state(&none).starts_with(" ■ NO MATCH /nosuchname/ finds nothing in 417 rows."));
}

#[test]
fn a_frozen_view_stands_still() {
    let mut hand = Hand::new(80, 24);
    hand.show(step(1)).wait(2_000).keys(" ");
    let before = hand.frame();
    hand.wait(41_000).show(step(9));
    let after = hand.frame();
    compare("frozen", &after);
    let body = |frame: &str| frame.lines().skip(4).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(body(&before), body(&after));
    hand.keys("Z");
    assert_eq!(hand.app.shown.generation, 9);
}

#[test]
fn a_vanished_row_stays_until_it_is_left() {
    let mut hand = Hand::new(80, 24);
    hand.show(postgres()).keys("jjjj").wait(2_000);
    let held = hand.selected();
    let line = hand.app.views.functions.table.selected_line();
    let mut without = postgres();
    Arc::make_mut(&mut without.report).functions.remove(4);
    hand.show(without.clone()).looks_like("gone");
    // The numbers of the row are not part of the present counts.
    hand.keys("i");
    let frame = hand.frame();
    assert!(
        frame.contains("has no samples in") && frame.contains("last seen it had"),
        "{frame}"
    );
    assert_eq!(hand.selected(), held);
    assert_eq!(hand.app.views.functions.table.selected_line(), line);
    hand.wait(2_000).show(without).keys("j");
    assert!(!hand.frame().contains("gone"));
    assert_ne!(hand.selected(), held);
}

#[test]
fn find_marks_and_counts() {
    let mut hand = Hand::new(80, 24);
    hand.show(postgres()).keys("/hash");
    hand.looks_like("find");
    hand.keys("(");
    let last = hand.frame().lines().last().unwrap_or_default().to_owned();
    assert!(last.ends_with("unclosed group at 5"), "{last}");
    hand.keys("\u{8}\n");
    assert_eq!(
        hand.selected(),
        Some(FrameId(FIRST)),
        "the row it is on counts"
    );
    hand.keys("n");
    hand.looks_like("found");
    let first = hand.selected();
    hand.keys("nN");
    assert_eq!(hand.selected(), first);
    hand.keys("\u{1b}");
    assert!(hand.app.find().is_none());
}

#[test]
fn help_shows_the_keys_of_the_view() {
    let mut hand = Hand::new(80, 24);
    hand.show(postgres()).keys("?").looks_like("help-80x24");
    hand.code(KeyCode::End).looks_like("help-80x24-end");
    hand.keys("q");
    assert!(hand.frame().contains("FUNCTION"));
    let mut hand = Hand::new(60, 16);
    hand.show(postgres()).keys("8?").looks_like("help-60x16");
}

#[test]
fn numbers_explain_themselves() {
    let mut hand = Hand::new(80, 24);
    hand.show(postgres()).keys("jjsi").looks_like("explain");
    hand.keys("j");
    assert!(!hand.frame().contains("samples with"));
}

#[test]
fn the_commands_output_is_shown_but_not_obeyed() {
    let mut hand = Hand::new(80, 24);
    hand.show(postgres()).keys("O");
    assert!(hand.frame().contains("no command was started"));
    let mut snapshot = postgres();
    let lines = (0..40).map(|line| format!("line {line}\tof \u{1b}[31mred"));
    snapshot.run.command_output = lines.collect();
    hand.show(snapshot).keys("O").looks_like("output");
    hand.keys("gO");
    assert!(hand.frame().contains("FUNCTION"));
}

#[test]
fn small_terminals_get_one_line() {
    let mut hand = Hand::new(41, 9);
    hand.show(postgres());
    let frame = hand.frame();
    assert!(frame.starts_with("proftop 41x9") || frame.contains("3,277 smp"));
    compare("tiny-41x9", &frame);
    for (width, height) in [(20, 5), (1, 1), (5, 1), (59, 24), (80, 15)] {
        hand.event(Event::Resize(Size { width, height }));
        let frame = hand.frame();
        if width == 20 {
            assert!(frame.starts_with("too small: need 40x8"), "{frame}");
        }
    }
}

#[test]
fn rows_move_only_when_nobody_is_looking() {
    let mut hand = Hand::new(80, 24);
    hand.show(postgres());
    let order = |hand: &Hand| {
        let report = &hand.app.shown.report;
        let lines = hand.app.views.functions.table.lines(report);
        lines.map(|line| line.row.id).collect::<Vec<_>>()
    };
    let before = order(&hand);
    let mut changed = postgres();
    Arc::make_mut(&mut changed.report).functions[..3].reverse();
    for (at, own) in [900, 800, 700].into_iter().enumerate() {
        Arc::make_mut(&mut changed.report).functions[at].self_samples = own;
    }
    // Before the first key the user has not selected a row.
    hand.wait(500).show(changed.clone());
    assert_ne!(order(&hand), before);
    hand.wait(2_000).show(postgres()).code(KeyCode::Right);
    assert_eq!(order(&hand), before);
    hand.wait(2_000).show(postgres());
    hand.wait(500).show(changed.clone());
    assert_eq!(order(&hand), before, "sorted half a second ago");
    assert!(hand.frame().contains("SELF%▽"), "{}", hand.frame());
    hand.wait(200).code(KeyCode::Right).wait(600);
    assert_eq!(order(&hand), before, "a key was pressed just now");
    hand.wait(100);
    assert_ne!(order(&hand), before);
    assert!(hand.frame().contains("SELF%▼"), "{}", hand.frame());
}

#[test]
fn effects_are_asked_for() {
    let mut hand = Hand::new(80, 24);
    hand.show(postgres());
    let mut asks = |keys: &str| {
        hand.keys(keys);
        hand.effects.clone()
    };
    assert_eq!(asks("."), [Effect::SetWindow(Span::Seconds(60))]);
    assert_eq!(asks("."), [Effect::SetWindow(Span::All)]);
    assert_eq!(asks("."), []);
    assert_eq!(asks(",,,"), [Effect::SetWindow(Span::Seconds(1))]);
    assert_eq!(asks("M"), [Effect::CaptureMouse(false)]);
    assert_eq!(asks("jy"), [Effect::Copy("LWLockAcquire".into())]);
    assert_eq!(asks("q"), [Effect::Quit]);
}

#[test]
fn late_names_keep_the_selection() {
    let mut hand = Hand::new(80, 24);
    hand.show(step(1)).keys("/libpq\n");
    assert_eq!(hand.selected(), Some(FrameId(FIRST + 12)));
    let line = hand.app.views.functions.table.selected_line();
    hand.wait(2_000).show(step(5));
    assert_eq!(
        hand.selected(),
        Some(FrameId(FIRST + 13)),
        "the function it joined"
    );
    assert_eq!(hand.app.views.functions.table.selected_line(), line);
}

#[test]
fn views_keep_their_own_state() {
    let mut hand = Hand::new(80, 24);
    hand.show(postgres()).keys("jjss");
    let before = hand.frame();
    hand.keys("4j58\t121");
    assert_eq!(hand.app.view, ViewId::Functions);
    assert_eq!(hand.frame(), before);
}

#[test]
fn hostile_names_stay_in_their_cells() {
    let mut snapshot = postgres();
    let report = Arc::make_mut(&mut snapshot.report);
    report.functions[0].name =
        "\u{1b}[2J\u{202e}evil\u{301}日本語日本語日本語日本語日本語日本語".into();
    report.functions[1].module = "\n\r\u{7}".into();
    snapshot.run.scope = "\u{1b}]0;title\u{7}".into();
    let mut hand = Hand::new(80, 24);
    hand.show(snapshot);
    for keys in ["", "i", "4", "5", "8", "1y"] {
        hand.keys(keys);
        rules::frame(&hand.app, &UTF8);
        rules::frame(&hand.app, &ASCII);
    }
}

#[test]
fn columns_add_up() {
    let hand = {
        let mut hand = Hand::new(80, 24);
        hand.show(postgres());
        hand
    };
    let frame = hand.frame();
    let shown: f64 = frame
        .lines()
        .skip(5)
        .filter_map(|line| line.get(1..7)?.trim().parse::<f64>().ok())
        .sum();
    let rest = frame
        .lines()
        .find(|line| line.contains(" more, "))
        .expect("a rest");
    let rest: f64 = rest
        .split_once("= ")
        .and_then(|(_, end)| end.split_once('%'))
        .and_then(|(number, _)| number.parse().ok())
        .expect("a sum");
    assert!((shown + rest - 100.0).abs() < 1.0, "{shown} + {rest}");
}

#[test]
fn a_click_on_a_head_sorts() {
    let mut hand = Hand::new(80, 24);
    hand.show(postgres());
    let theme = Theme {
        palette: Palette::Mono,
        charset: Charset::Utf8,
        ground: Ground::Unknown,
        links: false,
        aside: false,
    };
    let frame = hand.frame();
    let (y, heads) = frame
        .lines()
        .enumerate()
        .find(|(_, line)| line.contains("TOTAL%"))
        .expect("heads");
    let x = heads
        .split("TOTAL%")
        .next()
        .expect("before")
        .chars()
        .count();
    let head = crate::screen::head_at(&hand.app, &theme, x as u16, y as u16).expect("a head");
    hand.event(Event::Head(head));
    assert!(hand.frame().contains("TOTAL%▼"));
    hand.event(Event::Head(head));
    assert!(hand.frame().contains("TOTAL%▲"));
    assert_eq!(
        crate::screen::head_at(&hand.app, &theme, x as u16, y as u16 + 1),
        None
    );
}

#[test]
fn a_terminal_that_is_behind_is_said_to_be() {
    let mut hand = Hand::new(80, 24);
    let took = Duration::from_millis(900);
    hand.show(postgres()).event(Event::Behind(Some(took)));
    assert!(hand.frame().contains("BEHIND the terminal takes 0.9 s"));
    hand.event(Event::Behind(None));
    assert!(!hand.frame().contains("BEHIND"));
}

#[test]
fn sorting_by_each_column_is_total() {
    use crate::views::functions::FunctionColumn;
    let report = postgres().report;
    for column in profile::FunctionRow::COLUMNS {
        let mut rows = report.functions.clone();
        rows.sort_by(|a, b| profile::FunctionRow::compare(*column, a, b));
        if *column == FunctionColumn::SelfSamples {
            assert_eq!(rows[0].id, FrameId(FIRST));
        }
    }
}
