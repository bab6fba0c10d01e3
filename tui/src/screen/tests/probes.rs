//! Tests of the view of probes, and of the effects of its keys.

use super::knobs::recorded;
use super::*;
use crate::fixture::{probed, tree_step};
use engine::probes::{ProbeOrder, ProbedFunction, Which, Whose, Word};

#[test]
fn probes_at_every_size() {
    for (width, height) in [(60, 16), (80, 24), (120, 40), (300, 80)] {
        let mut hand = Hand::new(width, height);
        hand.show(probed()).keys("9");
        hand.looks_like(&format!("probes-{width}x{height}"));
        hand.looks_like_in_ascii(&format!("probes-{width}x{height}-ascii"));
    }
}

#[test]
fn without_probes_it_says_how_to_place_one() {
    let mut hand = Hand::new(80, 24);
    hand.show(tree_step(0)).keys("9");
    hand.looks_like("probes-none-80x24");
    hand.keys("d");
    assert!(hand.frame().contains("there are no probes"));
    assert!(hand.effects.is_empty());
}

fn order(hand: &Hand) -> &ProbeOrder {
    match &hand.effects[..] {
        [Effect::Probe(order)] => order,
        other => panic!("{other:?}"),
    }
}

/// Selects the first function that is not in the kernel, and returns its name.
fn on_a_function(hand: &mut Hand) -> String {
    hand.keys("1/IndexNext\n");
    let report = &hand.app.shown.report;
    let line = hand.app.views.functions.table.selected(report);
    line.expect("it is selected").row.name.to_string()
}

#[test]
fn a_key_places_one_from_every_view_with_functions() {
    for (view, key) in [
        ("1", "l"),
        ("1\n", "l"),
        ("1a", "l"),
        ("2", "L"),
        ("3", "L"),
    ] {
        let mut hand = Hand::new(120, 40);
        hand.show(tree_step(0)).wait(2_000);
        let name = on_a_function(&mut hand);
        hand.keys(view).wait(2_000).keys(key);
        let ProbeOrder::Place { place, whose } = order(&hand) else {
            panic!("{:?}", hand.effects);
        };
        let ProbedFunction::Sampled(sampled) = place else {
            panic!("{place:?}");
        };
        assert_eq!((&*sampled.shown, whose), (&*name, &Whose::Target), "{view}");
        assert_eq!(hand.app.view, ViewId::Probes, "{view}");
    }
}

#[test]
fn in_a_process_only_that_one_is_probed() {
    let mut hand = Hand::new(120, 40);
    hand.show(tree_step(0)).keys("4\n");
    on_a_function(&mut hand);
    hand.keys("l");
    let ProbeOrder::Place { whose, .. } = order(&hand) else {
        panic!("{:?}", hand.effects);
    };
    assert!(
        matches!(whose, Whose::Processes { pids, .. } if pids.len() == 1),
        "{whose:?}"
    );
}

#[test]
fn what_cannot_be_probed_is_refused_before_anything_is_attached() {
    let refused = |snapshot: Snapshot, find: &str, why: &str| {
        let mut hand = Hand::new(80, 24);
        hand.show(snapshot).keys("1").keys(find).keys("l");
        assert!(hand.effects.is_empty(), "{:?}", hand.effects);
        let frame = hand.frame();
        assert!(frame.contains(why), "{why}\n{frame}");
        assert_eq!(hand.app.view, ViewId::Functions);
    };
    refused(tree_step(0), "/copy_user\n", "it is in the kernel");
    refused(recorded(|_| {}), "j", "this is a recording");
    let mut by_perf = tree_step(0);
    by_perf.source.engine = Some(probe::EngineKind::Perf);
    refused(by_perf, "j", "samples are taken by perf");
    let mut ended = tree_step(0);
    ended.run.target = TargetState::Exited {
        words: "postgres[4121] ended".into(),
        at_ns: 0,
    };
    refused(ended, "j", "nothing is sampled any more");
}

#[test]
fn keys_are_about_the_selected_one() {
    let mut hand = Hand::new(80, 24);
    hand.show(probed()).keys("9");
    hand.keys("r");
    assert_eq!(order(&hand), &ProbeOrder::Renew(Which::One(1)));
    hand.keys("jd");
    assert_eq!(order(&hand), &ProbeOrder::Remove(Which::One(2)));
    hand.keys("D");
    assert_eq!(order(&hand), &ProbeOrder::Remove(Which::All));
    hand.keys("kvarg2\n");
    let ProbeOrder::Values { number: 1, values } = order(&hand) else {
        panic!("{:?}", hand.effects);
    };
    // A value that was already read is still read.
    let texts: Vec<&str> = values.iter().map(|value| value.text.as_str()).collect();
    assert_eq!(texts, ["arg1", "arg2"]);
    hand.keys("varg0\n");
    assert!(hand.effects.is_empty());
    hand.looks_like("probes-value-80x24");
    hand.keys("\u{1b}:unprobe all\n");
    assert_eq!(order(&hand), &ProbeOrder::Remove(Which::All));
}

#[test]
fn what_happens_to_a_probe_is_said_once() {
    let mut hand = Hand::new(80, 24);
    let mut snapshot = probed();
    let sentence = "the probe on palloc was taken away: it cost 12% of a CPU";
    Arc::make_mut(&mut snapshot.probes).word = Some(Word {
        number: 1,
        sentence: sentence.into(),
    });
    hand.show(snapshot.clone());
    assert!(hand.frame().contains(sentence), "{}", hand.frame());
    hand.keys("j").show(snapshot);
    assert!(!hand.frame().contains(sentence));
}

#[test]
fn what_was_ordered_last_is_selected() {
    let mut hand = Hand::new(80, 24);
    hand.show(probed()).keys("9jj");
    let mut snapshot = probed();
    let probes = Arc::make_mut(&mut snapshot.probes);
    (probes.touched, probes.turn) = (2, 5);
    hand.show(snapshot);
    let selected = hand.app.views.probes.selected(&hand.app.shown);
    assert_eq!(selected.map(|probe| probe.number), Some(2));
}

/// Returns a recording with a probe that counted in two seconds, and without samples.
fn recording() -> profile::View {
    use profile::probes::{CallTally, ProbeAbout, ProbeEnd, ProbeFrame, ValueAbout, ValueTally};
    let mut store = profile::Store::new(profile::Limits::default());
    store.begin(10_000_000_000);
    let log = store.probes_mut();
    let about = ProbeAbout {
        name: "open_account".into(),
        module: "bank".into(),
        address: 0x1240,
        language: "c++".into(),
        copies: 1,
        breakpoints: 1,
        is_timed: true,
        hit_ns: 1_080,
        floor_ns: 290,
        placed_ns: 10_000_000_000,
        values: vec![ValueAbout {
            text: "arg1".into(),
            register: "rdi".into(),
        }],
        ..ProbeAbout::default()
    };
    let probe = log.add_probe(about).unwrap();
    let frame = ProbeFrame {
        module: "bank".into(),
        address: 0x99,
        name: Some("serve".into()),
    };
    let frame = log.add_frame(frame).unwrap();
    log.add_stack(probe, &[frame]).unwrap();
    log.add_text(probe, "\"ann\"".into()).unwrap();
    for (second, calls) in [(10, 40), (12, 200)] {
        let tally = CallTally {
            calls,
            returns: calls,
            sum_ns: calls * 2_000_000,
            max_ns: 3_000_000,
            cpu_samples: calls / 10,
            cpu_ns: calls * 100_000,
            buckets: [((1_835_008, 2_097_152), calls)].into(),
            values: vec![ValueTally {
                unreadable: 0,
                texts: [(0, calls)].into(),
            }],
            callers: [(0, calls / 4)].into(),
            ..CallTally::default()
        };
        log.count(probe, second, tally);
    }
    let (at_ns, why) = (13_000_000_000, "its time was over".into());
    log.set_end(probe, ProbeEnd { at_ns, why });
    store.view()
}

#[test]
fn probes_of_a_recording_are_shown_and_stay_as_they_are() {
    let view = recording();
    let mut snapshot = recorded(|_| {});
    let all = view.select(&profile::Query::default(), &profile::Cancel::new());
    snapshot.report = Arc::new(all.unwrap().report());
    snapshot.view = Some(view.clone());
    snapshot.probes = Arc::new(engine::probes::recorded(&view, profile::TimeRange::ALL));
    let mut hand = Hand::new(80, 24);
    hand.show(snapshot.clone()).keys("9");
    hand.looks_like("probes-recorded-80x24");
    for (key, why) in [
        ("r", "this is a recording"),
        ("d", "are of a recording"),
        ("D", "are of a recording"),
        ("v", "are of a recording"),
    ] {
        hand.keys(key);
        assert!(hand.effects.is_empty(), "{key}: {:?}", hand.effects);
        assert!(hand.frame().contains(why), "{key}:\n{}", hand.frame());
    }
    // A window of two seconds has only the counts of these seconds.
    let window = profile::TimeRange::between(11_000_000_000, 13_000_000_000);
    let probes = engine::probes::recorded(&view, window);
    let seen = probes.list[0].seen.as_ref().unwrap();
    assert_eq!((seen.calls, seen.time), (200, Duration::from_secs(2)));
    assert_eq!(seen.trend, [0, 200]);
    assert_eq!(seen.calls_per_second, 100.0);
    // Before the probe was placed there are no counts.
    let window = profile::TimeRange::between(0, 9_000_000_000);
    assert_eq!(engine::probes::recorded(&view, window).list[0].seen, None);
    let mut hand = Hand::new(80, 24);
    hand.show(recorded(|_| {})).keys("9");
    assert!(hand.frame().contains("this recording has no probes"));
}
