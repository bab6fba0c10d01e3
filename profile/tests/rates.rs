//! A rate that is changed while samples are taken: CPU time stays right.

use profile::formats::{pft, pprof};
use profile::merge::merge;
use profile::query::{Direction, GroupBy, HeatRows};
use profile::{
    Cancel, Ending, Frame, FrameKind, Info, Limits, ModuleId, NameState, NewSample, ProcessId,
    Query, Rates, Selection, Store, TimeRange, View,
};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

fn empty(rates: &[(u64, u32)]) -> Store {
    let mut store = Store::new(Limits {
        keep: std::time::Duration::MAX,
        memory_bytes: 1 << 30,
    });
    store.begin(0);
    store.add_module(ModuleId(1), "a.out", "/a.out");
    let mut info = Info {
        rates: Rates::always(rates[0].1),
        ..Info::default()
    };
    for (from_ns, hz) in &rates[1..] {
        info.rates.change(*from_ns, *hz);
    }
    store.set_info(info);
    store
}

fn add(store: &mut Store, time_ns: u64, function: u64) {
    let frames = [function, 0].map(|address| Frame {
        module: ModuleId(1),
        address,
        kind: FrameKind::User,
    });
    assert!(store.add_sample(NewSample {
        time_ns,
        cpu: (function % 3) as u16,
        process: ProcessId(1),
        tid: function as u32,
        comm: "worker",
        frames: &frames,
        kernel_frames: 0,
        ending: Ending::Root,
        weight: 1,
    }));
}

/// One CPU at these rates, a second each, which runs another function in each second.
fn busy(rates: &[u32]) -> View {
    let changes: Vec<(u64, u32)> = (0..)
        .map(|second| second * SECOND)
        .zip(rates.iter().copied())
        .collect();
    let mut store = empty(&changes);
    for (second, hz) in (0..).zip(rates) {
        for tick in 0..u64::from(*hz) {
            // The first sample after a change comes when one period has passed.
            let time_ns = second * SECOND + (tick + 1) * SECOND / u64::from(*hz) - 1;
            add(&mut store, time_ns, second + 1);
        }
    }
    name_all(&mut store);
    store.end(rates.len() as u64 * SECOND);
    store.view()
}

fn name_all(store: &mut Store) {
    for id in store.frames_to_name(usize::MAX) {
        let address = store.frame(id).expect("asked for").address;
        store.set_name(id, NameState::Named(format!("f{address}").into()));
    }
}

fn of_second(second: u64) -> TimeRange {
    // From the start of the second up to its end.
    let start = (second * SECOND).saturating_sub(1);
    TimeRange::between(start, (second + 1) * SECOND - 1)
}

fn select(view: &View, window: TimeRange) -> Selection {
    let query = Query {
        window,
        ..Query::default()
    };
    view.select(&query, &Cancel::new()).expect("not cancelled")
}

fn is_near(count: u64, expected: u64) -> bool {
    // Each part at another rate may differ by what one of its samples stands for.
    count.abs_diff(expected) <= expected / 9
}

#[test]
fn a_busy_second_is_a_second_of_cpu_at_any_rate() {
    let view = busy(&[99, 999, 19, 499]);
    let selection = select(&view, TimeRange::ALL);
    let report = selection.report();
    assert_eq!((report.rate_hz, selection.rate_hz()), (999, 999));
    for row in report.functions.iter().filter(|row| &*row.name != "f0") {
        let name = &row.name;
        assert!(
            is_near(row.self_samples, 999),
            "{name} {}",
            row.self_samples
        );
    }
    let told = report.reweighed.expect("the rate changed");
    assert_eq!(told.taken, 99 + 999 + 19 + 499);
    // The samples are worth as much as 1 / (sum of the squares of shares / samples) equal ones.
    let shares = [99.0, 999.0, 19.0, 499.0].map(|n: f64| 1.0 / 16.0 / n);
    let as_good_as = 1.0 / shares.iter().sum::<f64>();
    let found = report.samples as f64 * told.evidence;
    assert!(
        (found / as_good_as - 1.0).abs() < 0.1,
        "{found} {as_good_as}"
    );
}

#[test]
fn a_time_of_one_rate_is_counted_as_it_is() {
    let view = busy(&[99, 999, 19]);
    for (second, hz) in [(0, 99), (1, 999), (2, 19)] {
        let window = of_second(second);
        let report = select(&view, window).report();
        assert_eq!((report.samples, report.rate_hz), (u64::from(hz), hz));
        assert_eq!(report.reweighed, None);
    }
}

#[test]
fn a_part_is_counted_as_the_whole() {
    let view = busy(&[99, 999, 19]);
    let whole = select(&view, TimeRange::ALL);
    let query = |second: u64| Query {
        window: of_second(second),
        ..Query::default()
    };
    let part = |second| whole.part(&query(second), &Cancel::new()).unwrap();
    let parts = [0, 1, 2].map(|second| part(second).samples());
    assert_eq!(parts.iter().sum::<u64>(), whole.samples());
    assert!(
        parts.iter().all(|samples| is_near(*samples, 999)),
        "{parts:?}"
    );
}

#[test]
fn recordings_keep_their_rates_and_others_get_weights() {
    let view = busy(&[99, 999, 19]);
    let mut file = Vec::new();
    pft::write(&view, &mut file).unwrap();
    let (read, notes) = pft::read(&file[..], Limits::default()).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    let read = read.view();
    assert_eq!(read.info(), view.info());
    let (before, after) = (
        select(&view, TimeRange::ALL).report(),
        select(&read, TimeRange::ALL).report(),
    );
    assert_eq!(
        (before.samples, before.reweighed),
        (after.samples, after.reweighed)
    );

    let selection = select(&view, TimeRange::ALL);
    let mut file = Vec::new();
    pprof::write(&selection, &mut file).unwrap();
    let (store, _) = pprof::read(&file[..], Limits::default()).unwrap();
    let other = select(&store.view(), TimeRange::ALL);
    assert_eq!(
        (other.samples(), other.rate_hz()),
        (selection.samples(), 999)
    );

    let merged = merge(&[view.clone(), view], Limits::default()).unwrap();
    let merged = select(&merged.view(), TimeRange::ALL);
    assert_eq!(
        (merged.samples(), merged.rate_hz()),
        (2 * selection.samples(), 999)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the rates and the window are, the columns together count every sample once.
    #[test]
    fn every_column_adds_up(
        steps in prop::collection::vec((0..40u64, 0..5u64), 1..300),
        changes in prop::collection::vec((0..30u64, 1..2_000u32), 0..6),
        from in 0..20u64,
        length in 1..20u64,
    ) {
        let mut changes = changes;
        changes.sort();
        let mut rates = vec![(0, 99)];
        rates.extend(changes.into_iter().map(|(second, hz)| (second * SECOND + 123_456_789, hz)));
        let mut store = empty(&rates);
        let mut time_ns = 0;
        for (step, function) in steps {
            time_ns += step * 11_000_000;
            add(&mut store, time_ns, function + 1);
        }
        name_all(&mut store);
        let view = store.view();
        let window = TimeRange::between(from * SECOND, (from + length) * SECOND);
        let selection = select(&view, window);
        let report = selection.report();
        let all = report.samples;
        prop_assert_eq!(report.functions.iter().map(|row| row.self_samples).sum::<u64>(), all);
        prop_assert_eq!(report.threads.iter().map(|row| row.samples).sum::<u64>(), all);
        prop_assert_eq!(report.processes.iter().map(|row| row.samples).sum::<u64>(), all);
        prop_assert_eq!(report.cpus.iter().map(|row| row.samples).sum::<u64>(), all);
        let tree = selection.tree(Direction::TopDown, GroupBy::Process, &Cancel::new()).unwrap();
        prop_assert_eq!(tree.root().samples, all);
        let heat = selection.heat(&HeatRows::parts(10), None);
        prop_assert_eq!(heat.cells.iter().sum::<u64>(), all);
        let evidence = report.reweighed.map_or(1.0, |told| told.evidence);
        prop_assert!(evidence > 0.0 && evidence <= 1.0 + 1e-9, "{}", evidence);
    }
}
