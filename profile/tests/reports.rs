//! What a report says about small, hand-made histories.

use profile::{
    Ending, Frame, FrameKind, Limits, ModuleId, NameState, NewSample, ProcessId, Report, RowName,
    Store,
};
use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;
const LIBC: ModuleId = ModuleId(1);
const KERNEL: ModuleId = ModuleId(2);

fn user(address: u64) -> Frame {
    Frame {
        module: LIBC,
        address,
        kind: FrameKind::User,
    }
}

fn kernel(address: u64) -> Frame {
    Frame {
        module: KERNEL,
        address,
        kind: FrameKind::Kernel,
    }
}

fn store() -> Store {
    let mut store = Store::new(Limits::default());
    store.add_module(LIBC, "libc.so.6", "/usr/lib/libc.so.6");
    store.add_module(KERNEL, "[kernel]", "[kernel]");
    store.add_process(ProcessId(1), 100, "postgres");
    store
}

fn add(store: &mut Store, time_ns: u64, tid: u32, frames: &[Frame]) {
    let kept = store.add_sample(NewSample {
        time_ns,
        cpu: 0,
        process: ProcessId(1),
        tid,
        comm: "worker",
        frames,
        kernel_frames: frames.iter().filter(|f| f.module == KERNEL).count(),
        ending: Ending::Root,
    });
    assert!(kept);
}

/// Answers for all frames: the name is by the address's hundreds.
fn name_all(store: &mut Store) {
    for id in store.frames_to_name(usize::MAX) {
        let address = store.frame(id).expect("asked for").address;
        let name = format!("f{}", address / 100);
        store.set_name(id, NameState::Named(name.into()));
    }
}

fn self_and_total(report: &Report, name: &str) -> (u64, u64) {
    let row = report.functions.iter().find(|f| &*f.name == name);
    row.map_or((0, 0), |f| (f.self_samples, f.total_samples))
}

#[test]
fn recursion_counts_once() {
    let mut store = store();
    add(
        &mut store,
        0,
        1,
        &[user(101), user(102), user(101), user(200)],
    );
    name_all(&mut store);
    let report = store.report(Duration::from_secs(1), 1);
    assert_eq!(self_and_total(&report, "f1"), (1, 1));
    assert_eq!(self_and_total(&report, "f2"), (0, 1));
    assert_eq!(report.completeness.named, 4, "each occurrence");
}

#[test]
fn a_tick_in_the_kernel_is_charged_to_the_kernel_function() {
    let mut store = store();
    add(&mut store, 0, 1, &[kernel(100), user(200)]);
    add(&mut store, 0, 1, &[user(200)]);
    name_all(&mut store);
    let report = store.report(Duration::from_secs(1), 1);
    assert_eq!(self_and_total(&report, "f1"), (1, 1));
    assert_eq!(self_and_total(&report, "f2"), (1, 2));
    let row = &report.functions[report.functions.len() - 1];
    assert_eq!((row.kind, &*row.module), (FrameKind::Kernel, "[kernel]"));
    assert_eq!(report.processes[0].kernel_samples, 1);
    assert_eq!(report.threads[0].kernel_samples, 1);
}

#[test]
fn equal_names_in_two_modules_are_two_functions() {
    let mut store = store();
    add(&mut store, 0, 1, &[kernel(100), user(100)]);
    name_all(&mut store);
    let report = store.report(Duration::from_secs(1), 1);
    assert_eq!(report.functions.len(), 2);
}

#[test]
fn a_frame_without_a_name_is_shown_by_its_place() {
    let mut store = store();
    add(&mut store, 0, 1, &[user(0x1c2)]);
    let pending = store.report(Duration::from_secs(1), 1);
    assert_eq!(&*pending.functions[0].name, "libc.so.6+0x1c2");
    assert_eq!(pending.functions[0].name_state, RowName::Pending);
    assert_eq!(pending.completeness.pending, 1);

    let id = store.frames_to_name(1)[0];
    store.set_name(id, NameState::Unnamed("stripped"));
    let unnamed = store.report(Duration::from_secs(1), 1);
    assert_eq!(&*unnamed.functions[0].name, "libc.so.6+0x1c2");
    assert_eq!(
        unnamed.functions[0].name_state,
        RowName::Unnamed("stripped")
    );
    assert_eq!(unnamed.completeness.unnamed, [("stripped", 1)]);
}

#[test]
fn a_selection_made_before_the_name_came_finds_the_function() {
    let mut store = store();
    add(&mut store, 0, 1, &[user(101)]);
    add(&mut store, 0, 1, &[user(102)]);
    let before = store.report(Duration::from_secs(1), 1);
    let selected: Vec<_> = before.functions.iter().map(|f| f.id).collect();
    assert_eq!(selected.len(), 2);
    name_all(&mut store);
    let after = store.report(Duration::from_secs(1), 1);
    for id in selected {
        assert_eq!(after.find_function(id), Some(0));
    }
    assert_eq!(before.functions.len(), 2, "a report never changes");
}

#[test]
fn trends_are_by_second_oldest_first() {
    let mut store = store();
    for second in 0..12 {
        (0..second).for_each(|_| add(&mut store, second * SECOND_NS + 1, 1, &[user(1)]));
    }
    let end = 12 * SECOND_NS - 1;
    let report = store.report(Duration::from_secs(20), end);
    let expected = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
    assert_eq!(report.functions[0].trend, expected);
    assert_eq!(report.processes[0].trend, expected);
    assert_eq!(report.threads[0].trend, expected);
    let short = store.report(Duration::from_secs(1), end);
    assert_eq!(short.functions[0].trend, expected, "as far back as always");
    assert_eq!(short.samples, 11);
}

#[test]
fn each_thread_and_process_has_its_top_function() {
    let mut store = store();
    (0..3).for_each(|_| add(&mut store, 0, 1, &[user(100)]));
    (0..2).for_each(|_| add(&mut store, 0, 1, &[user(200)]));
    (0..2).for_each(|_| add(&mut store, 0, 2, &[user(200)]));
    name_all(&mut store);
    let report = store.report(Duration::from_secs(1), 1);
    let tops: Vec<_> = report
        .threads
        .iter()
        .map(|t| (t.tid, t.samples, t.top_function.as_deref()))
        .collect();
    assert_eq!(tops, [(1, 5, Some("f1")), (2, 2, Some("f2"))]);
    assert_eq!(report.processes[0].top_function.as_deref(), Some("f2"));
    assert_eq!(&*report.processes[0].comm, "postgres");
    assert_eq!(report.processes[0].threads, 2);
}

#[test]
fn an_empty_store_has_an_empty_report() {
    let report = store().report(Duration::from_secs(10), 5 * SECOND_NS);
    assert_eq!(report.samples, 0);
    assert!(report.functions.is_empty() && report.processes.is_empty());
    assert_eq!(report.window.seconds(), 0.0);
}
