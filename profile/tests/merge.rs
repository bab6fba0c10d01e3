//! Recordings put together: whatever the order and the number of steps, every
//! question gets one answer, and nothing is lost or doubled.

use crate::common::{self, Given, given, limits, select, store};
use profile::formats::pft;
use profile::merge::{MergeError, merge};
use profile::query::HeatRows;
use profile::{
    Busy, Cancel, Ending, Host, Info, Limits, NameState, NewSample, ProcessId, Query, Rates, Store,
    TimeRange, View,
};
use proptest::prelude::*;

/// The recording of one machine, begun at its own time.
fn recording(samples: &[Given], host: &str, epoch_s: i64) -> View {
    let mut store = store(samples);
    let info = Info {
        host: Host {
            name: host.into(),
            ..Host::default()
        },
        epoch_unix_ms: epoch_s * 1000,
        ..Info::clone(store.view().info())
    };
    store.set_info(info);
    store.view()
}

fn merged(views: &[&View]) -> View {
    let views: Vec<View> = views.iter().copied().cloned().collect();
    merge(&views, limits()).unwrap().view()
}

/// Returns the answers to all queries, as text.
fn answers(view: &View) -> Vec<String> {
    let mut all = vec![format!("{:?} {:?}", view.info(), view.begin_ns())];
    for filter in ["", "kind:kernel", "!f3", "hide:mod:libc.so.6"] {
        let query = Query {
            filter: filter.parse().unwrap(),
            ..Query::default()
        };
        let selection = view.select(&query, &Cancel::new()).unwrap();
        let heat = selection.heat(&HeatRows::parts(10), None);
        let told: Vec<_> = (0..).zip(&heat.cells).filter(|(_, n)| **n > 0).collect();
        all.push(format!(
            "{} {told:?} {:?}",
            heat.first_second,
            selection.completeness()
        ));
        all.push(common::stacks(&selection));
        let mut rows: Vec<String> = selection
            .functions()
            .into_iter()
            .map(|row| {
                format!(
                    "{} {} {} {}",
                    row.name, row.module_path, row.self_samples, row.total_samples
                )
            })
            .collect();
        let (processes, threads) = selection.processes_and_threads();
        rows.extend(
            processes
                .iter()
                .map(|p| format!("{} {} {}", p.pid, p.comm, p.samples)),
        );
        rows.extend(
            threads
                .iter()
                .map(|t| format!("{} {} {}", t.tid, t.comm, t.samples)),
        );
        rows.sort();
        all.extend(rows);
    }
    all
}

fn samples() -> impl Strategy<Value = Vec<Given>> {
    prop::collection::vec(given(), 0..25)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_steps_and_the_order_do_not_matter(a in samples(), b in samples(), c in samples(), at in 0..9i64) {
        let a = recording(&a, "db-01", 1_700_000_000);
        let b = recording(&b, "db-02", 1_700_000_003);
        let c = recording(&c, "db-01", 1_700_000_000 + at);
        let left = merged(&[&merged(&[&a, &b]), &c]);
        let right = merged(&[&a, &merged(&[&b, &c])]);
        let at_once = merged(&[&a, &b, &c]);
        let backwards = merged(&[&c, &b, &a]);
        prop_assert!(answers(&left) == answers(&right));
        prop_assert!(answers(&left) == answers(&at_once));
        prop_assert_eq!(answers(&left), answers(&backwards));
        prop_assert_eq!(at_once.samples(), a.samples() + b.samples() + c.samples());
    }

    #[test]
    fn one_recording_stays_what_it_is(a in samples()) {
        let a = recording(&a, "db-01", 1_700_000_000);
        prop_assert_eq!(answers(&merged(&[&a])), answers(&a));
    }

    /// Every sample is in one of two adjacent windows, and in the window of all.
    #[test]
    fn windows_part_what_was_put_together(a in samples(), b in samples(), cut in 0..9_000u64) {
        let a = recording(&a, "db-01", 1_700_000_000);
        let b = recording(&b, "db-02", 1_700_000_002);
        let view = merged(&[&a, &b]);
        let cut = cut * 1_000_000;
        let count = |window| {
            let query = Query { window, ..Query::default() };
            view.select(&query, &Cancel::new()).unwrap().samples()
        };
        let parts = count(TimeRange::between(0, cut)) + count(TimeRange::between(cut, u64::MAX));
        prop_assert_eq!(parts, count(TimeRange::ALL));
    }
}

#[test]
fn what_counts_other_things_is_refused() {
    let a = recording(&[(vec![1], 1, 0, 1)], "a", 1);
    let mut other = Store::new(limits());
    let mut info = Info::default();
    info.metric.unit = "bytes".into();
    other.set_info(info);
    let error = merge(&[a, other.view()], limits()).unwrap_err();
    assert!(matches!(error, MergeError::Metrics(..)), "{error}");
    assert!(error.to_string().contains("cpu in bytes"), "{error}");
}

#[test]
fn reasons_can_be_kept_for_another_look() {
    let mut before = store(&[(vec![1, 5, 10], 1, 0, 1)]);
    let unnamed = before.frames_without_name();
    assert!(!unnamed.is_empty());
    let mut file = Vec::new();
    pft::write(&before.view(), &mut file).unwrap();
    let mut reader = pft::Reader::new(&file[..]).unwrap();
    reader.keep_reasons();
    let mut after = Store::new(limits());
    while reader.read_block(&mut after).unwrap() {}
    let again = after.frames_without_name();
    assert_eq!(again.len(), unnamed.len());
    after.set_name(again[0], NameState::Named("found".into()));
    for (frame, state) in reader.reasons() {
        let id = after.find_frame(&frame).unwrap();
        after.set_name(id, state);
    }
    assert_eq!(after.frames_without_name().len(), unnamed.len() - 1);
    assert_eq!(after.name(again[1]), before.name(unnamed[1]));
    before.set_name(unnamed[0], NameState::Named("found".into()));
    let text = |store: &Store| common::stacks(&select(store, ""));
    assert_eq!(text(&after), text(&before));
}

#[test]
fn different_rates_are_said() {
    let of_rate = |hz: u32| {
        let mut store = Store::new(Limits::default());
        store.set_info(Info {
            rates: Rates::always(hz),
            ..Info::default()
        });
        store.view()
    };
    let merged = |rates: &[u32]| {
        let views: Vec<View> = rates.iter().map(|hz| of_rate(*hz)).collect();
        let store = merge(&views, Limits::default()).unwrap();
        let info = store.view().info().clone();
        (info.rates.first_hz, info.notes.len())
    };
    assert_eq!(merged(&[99, 99]), (99, 0));
    assert_eq!(merged(&[0, 0]), (0, 0), "nothing is known");
    assert_eq!(merged(&[99, 499, 99]), (0, 1));
    assert_eq!(merged(&[99, 0]), (0, 1));
}

#[test]
fn how_busy_cpus_were_is_known_if_all_recordings_know_it() {
    let busy = |busy_ms, of_ms| Busy { busy_ms, of_ms };
    let merged = |sides: [Busy; 2]| {
        let views = sides.map(|busy| {
            let mut store = Store::new(limits());
            store.set_busy(busy);
            store.view()
        });
        merge(&views, limits()).unwrap().view().busy()
    };
    assert_eq!(merged([busy(3, 4), busy(0, 2)]), busy(3, 6));
    assert_eq!(merged([busy(3, 4), Busy::default()]), Busy::default());
}

#[test]
fn time_between_recordings_is_no_sampled_time() {
    let recorded = |host: &str, epoch_s: i64, seconds: u64| {
        let mut store = Store::new(limits());
        store.set_info(Info {
            epoch_unix_ms: epoch_s * 1000,
            host: Host {
                name: host.into(),
                ..Host::default()
            },
            rates: Rates::always(100),
            ..Info::default()
        });
        store.begin(1_000_000_000);
        assert!(store.add_sample(NewSample {
            time_ns: 500_000_000 + seconds * 1_000_000_000,
            cpu: 0,
            process: ProcessId(1),
            tid: 1,
            comm: "worker",
            frames: &[],
            kernel_frames: 0,
            ending: Ending::ALL[0],
            weight: 1,
        }));
        store.end(1_000_000_000 + seconds * 1_000_000_000);
        store.view()
    };
    // Recordings of 4 s, of 6 s that begin four minutes later, and of 2 s at the same time as the
    // first.
    let (a, b) = (recorded("a", 1000, 4), recorded("b", 1240, 6));
    let c = recorded("c", 1001, 2);
    for views in [[&a, &b, &c], [&c, &b, &a]] {
        let merged = merged(&views);
        assert_eq!(merged.window(TimeRange::ALL).seconds(), 10.0);
        assert_eq!(merged.info().pauses.len(), 1);
        // A part of the time: 2 s of the first recording, and some of the pause.
        let begin = merged.begin_ns().unwrap();
        let part = TimeRange::between(begin + 2_000_000_000, begin + 100_000_000_000);
        assert_eq!(merged.window(part).seconds(), 2.0);
        // The file stores the pause as well.
        let mut bytes = Vec::new();
        pft::write(&merged, &mut bytes).unwrap();
        let (read, _) = pft::read(&bytes[..], limits()).unwrap();
        assert_eq!(read.view().info().pauses, merged.info().pauses);
        assert_eq!(read.view().window(TimeRange::ALL).seconds(), 10.0);
    }
    let steps = merged(&[&merged(&[&a, &b]), &c]);
    assert_eq!(steps.info().pauses, merged(&[&a, &b, &c]).info().pauses);
}
