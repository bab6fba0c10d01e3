//! Draws every view in every state, at every size and in every theme. The rules hold, the screen
//! names the state, and colors add nothing that words do not say.

use super::knobs::recorded;
use super::*;
use crate::fixture::{probed, tree_of_rates, tree_step, waiting};
use crate::widgets::theme::ThemeChoice;
use crate::words::text;
use engine::snapshot::{Lacks, Loading};
use profile::Host;

/// A state, how to get there, and what the screen says about it at 80 columns.
#[derive(Debug, Clone, Copy)]
struct ScreenCase {
    name: &'static str,
    /// The snapshot that is shown. If `None`, nothing has come yet.
    snapshot: Option<fn() -> Snapshot>,
    keys: &'static str,
    then: fn(&mut Hand),
    says: &'static str,
}

/// Returns a state that depends only on a snapshot and keys.
fn state(
    name: &'static str,
    snapshot: fn() -> Snapshot,
    keys: &'static str,
    says: &'static str,
) -> ScreenCase {
    ScreenCase {
        name,
        snapshot: Some(snapshot),
        keys,
        then: |_| {},
        says,
    }
}

fn states() -> Vec<ScreenCase> {
    let running = state("running", plain, "", "LIVE");
    vec![
        running,
        ScreenCase {
            snapshot: None,
            ..state("starting", plain, "", "STARTING")
        },
        state("first samples", first_samples, "", "52 s"),
        state("loading", loading, "", " net"),
        state("empty", empty, "", "IDLE   "),
        state("no rights", no_rights, "", "FAILED cannot sample"),
        ScreenCase {
            then: thaw_later,
            ..state("frozen", plain, " ", "FROZEN 00:00:41")
        },
        state("lost", lost, "", "LOST   1,126"),
        state("cut", cut, "", "CUT "),
        state("ended", ended, "", "EXITED postgres[4121]"),
        ScreenCase {
            then: behind,
            ..state("behind", plain, "", "BEHIND")
        },
        state("filtered", plain, "\\!_bt_\n", "filter"),
        state("keeps nothing", plain, "\\nosuch\n", "NO MATCH"),
        state("narrowed", plain, "4\n", "› postgres[4121]"),
        state("since a mark", plain, "m", "since mark"),
        state("against A", plain, "b=", "DIFF"),
        state("of two rates", two_rates, "", " taken)  lost 0"),
        state("a file", file, "", "FILE "),
        state("a file without times", without_times, "", "FILE "),
        state("a broken file", broken, "", "CUT    it ends"),
        state("hostile", hostile, "", "LIVE"),
        state("probed", probed, "", "LIVE"),
        state("waiting", waiting, "", "off-cpu"),
        state("waiting without idle", waiting, "W", "filter"),
    ]
}

fn plain() -> Snapshot {
    tree_step(0)
}

fn loading() -> Snapshot {
    let of = |module: &str, percent, what, is_remote| Loading {
        module: module.into(),
        percent,
        what,
        is_remote,
    };
    let mut snapshot = plain();
    snapshot.names.loading = vec![
        of("postgres", Some(51), "DWARF", false),
        of("libjitx.so", None, "asking a server", true),
    ];
    snapshot
}

fn empty() -> Snapshot {
    let mut snapshot = plain();
    let report = Arc::make_mut(&mut snapshot.report);
    report.samples = 0;
    report.functions.clear();
    report.processes.clear();
    report.threads.clear();
    snapshot
}

fn no_rights() -> Snapshot {
    let mut snapshot = Snapshot::default();
    let why = "cannot sample: perf_event_open: Permission denied";
    snapshot.run.target = TargetState::Failed(why.into());
    snapshot
}

fn lost() -> Snapshot {
    let mut snapshot = plain();
    snapshot.health.lost = 1_126;
    snapshot
}

fn cut() -> Snapshot {
    let mut snapshot = plain();
    let completeness = &mut Arc::make_mut(&mut snapshot.report).completeness;
    completeness.whole = completeness.user_stacks * 9 / 10;
    snapshot
}

fn ended() -> Snapshot {
    let mut snapshot = plain();
    snapshot.run.target = TargetState::Exited {
        words: "postgres[4121] was killed by SIGSEGV".into(),
        at_ns: 0,
    };
    snapshot
}

fn two_rates() -> Snapshot {
    tree_of_rates(&[(186, 499)])
}

fn thaw_later(hand: &mut Hand) {
    hand.wait(41_000).show(tree_step(2));
}

fn behind(hand: &mut Hand) {
    hand.event(Event::Behind(Some(Duration::from_millis(900))));
}

fn file() -> Snapshot {
    recorded(|_| {})
}

fn without_times() -> Snapshot {
    recorded(|recording| {
        recording.lacks = Lacks {
            time: true,
            people: true,
            unnamed: true,
        };
    })
}

fn broken() -> Snapshot {
    recorded(|recording| recording.broken = Some("it ends in a block".into()))
}

fn hostile() -> Snapshot {
    let mut snapshot = plain();
    let report = Arc::make_mut(&mut snapshot.report);
    report.functions[0].name = "\u{1b}[2J\u{202e}evil\u{301}日本語日本語日本語日本語".into();
    report.functions[1].module = "\n\r\u{7}".into();
    snapshot.source.host = Arc::new(Host {
        name: "\u{1b}]0;title\u{7}".into(),
        ..(*snapshot.source.host).clone()
    });
    snapshot
}

/// Returns all combinations of what a terminal can do.
fn themes() -> Vec<Theme> {
    let mut themes = Vec::new();
    for palette in [Palette::Mono, Palette::Sixteen, Palette::Indexed] {
        for charset in [Charset::Utf8, Charset::Ascii] {
            for ground in [Ground::Unknown, Ground::Dark, Ground::Light] {
                if palette == Palette::Indexed || ground == Ground::Unknown {
                    themes.push(Theme {
                        palette,
                        charset,
                        ground,
                        ..UTF8
                    });
                }
            }
        }
    }
    let no_color = |name: &str| match name {
        "TERM" => Some("xterm-256color".to_owned()),
        "NO_COLOR" => Some("1".into()),
        "LANG" => Some("C.UTF-8".into()),
        _ => None,
    };
    themes.push(Theme::detect(ThemeChoice::default(), no_color));
    themes
}

const VIEWS: [ViewId; 10] = [
    ViewId::Functions,
    ViewId::Tree,
    ViewId::Flame,
    ViewId::Page,
    ViewId::Processes,
    ViewId::Threads,
    ViewId::Time,
    ViewId::Code,
    ViewId::Health,
    ViewId::Probes,
];

const SIZES: [((u16, u16), Theme); 6] = [
    ((60, 16), ASCII),
    ((79, 23), UTF8),
    ((80, 24), ASCII),
    ((120, 40), UTF8),
    ((160, 45), ASCII),
    ((300, 80), UTF8),
];

fn open(view: ViewId, state: &ScreenCase) -> Hand {
    let mut hand = Hand::new(80, 24);
    if let Some(snapshot) = state.snapshot {
        hand.show(snapshot()).wait(2_000);
    }
    hand.keys(state.keys);
    (state.then)(&mut hand);
    let keys = match view {
        ViewId::Functions => "1",
        ViewId::Tree => "2",
        ViewId::Flame => "3",
        ViewId::Page => "1j\n",
        ViewId::Processes => "4",
        ViewId::Threads => "5",
        ViewId::Time => "6",
        ViewId::Code => "1ja",
        ViewId::Health => "8",
        ViewId::Probes => "9",
    };
    hand.keys(keys);
    hand
}

#[test]
fn every_view_in_every_state_keeps_the_rules() {
    let themes = themes();
    for state in states() {
        for view in VIEWS {
            let mut hand = open(view, &state);
            let (frame, name) = (hand.frame(), state.name);
            assert!(frame.contains(state.says), "{name}, {view:?}:\n{frame}");
            for charset in [Charset::Utf8, Charset::Ascii] {
                let of_charset = themes.iter().filter(|theme| theme.charset == charset);
                let mut frames = of_charset.map(|theme| rules::frame(&hand.app, theme));
                let first = frames.next().expect("there are themes");
                // Colors do not change the words, except the legend of colors.
                let others = frames.filter(|frame| *frame != first).count();
                assert!(
                    others == 0 || view == ViewId::Flame,
                    "{name}, {view:?}\n{first}"
                );
            }
            for ((width, height), theme) in SIZES {
                hand.event(Event::Resize(Size { width, height }));
                rules::frame(&hand.app, &theme);
            }
        }
    }
}

#[test]
fn every_explanation_is_shown_whole() {
    for state in states() {
        for view in VIEWS {
            let mut hand = open(view, &state);
            for row in 0..12 {
                hand.keys("i");
                let pane = hand.app.pane_here();
                let cx = hand.app.context_of(pane);
                let explained = hand.app.views.get(pane).explain(&cx);
                let frame = hand.frame();
                for line in text::wrap(&explained.unwrap_or_default(), 80) {
                    let line = line.trim_end();
                    let name = state.name;
                    assert!(
                        frame.contains(line),
                        "{name}, {view:?}, {row}: {line}\n{frame}"
                    );
                }
                hand.keys("j");
            }
        }
    }
}

#[test]
fn what_is_open_over_a_view_keeps_the_rules() {
    for keys in [
        "?", ":", ":fo", "w", "w\t\t ", "/hash", "/(", "\\!x", "\\!!", "O", "i",
    ] {
        for view in [
            ViewId::Functions,
            ViewId::Flame,
            ViewId::Code,
            ViewId::Health,
        ] {
            let mut hand = open(view, &states()[0]);
            hand.keys(keys);
            for ((width, height), theme) in SIZES {
                hand.event(Event::Resize(Size { width, height }));
                rules::frame(&hand.app, &theme);
            }
        }
    }
}
