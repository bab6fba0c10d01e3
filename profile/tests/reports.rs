//! Reports of small, hand-made histories.

use profile::{
    Ending, Frame, FrameKind, Limits, ModuleId, NameState, NewSample, NoName, ProcessId, Report,
    RowName, SourceFrame, Store,
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
        weight: 1,
    });
    assert!(kept);
}

/// Answers for all frames: the hundreds of an address give the name.
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
    store.set_name(id, NameState::Unnamed(NoName::Stripped));
    let unnamed = store.report(Duration::from_secs(1), 1);
    assert_eq!(&*unnamed.functions[0].name, "libc.so.6+0x1c2");
    assert_eq!(
        unnamed.functions[0].name_state,
        RowName::Unnamed(NoName::Stripped)
    );
    assert_eq!(unnamed.completeness.unnamed, [(NoName::Stripped, 1)]);
}

/// Sets the source of `address`: line `line` of `own`, into whose code `inlined` are inlined.
fn set_source(store: &mut Store, address: u64, inlined: &[&str], own: &str, line: u32) {
    let link = |function, line| SourceFrame {
        function,
        file: "heapam.c",
        line,
    };
    let mut chain: Vec<_> = (1..).zip(inlined).map(|(n, name)| link(*name, n)).collect();
    chain.push(link(own, line));
    let report = store.report(Duration::from_secs(1), 1);
    let frame = (0..report.owners.len() as u32)
        .map(profile::FrameId)
        .find(|id| store.frame(*id) == Some(user(address)));
    store.set_source(frame.expect("a sample has it"), &chain);
}

#[test]
fn inlined_functions_are_rows_of_their_own() {
    let mut store = store();
    add(&mut store, 0, 1, &[user(101), user(200)]);
    add(&mut store, 0, 1, &[user(101), user(200)]);
    add(&mut store, 0, 1, &[user(300), user(200)]);
    name_all(&mut store);
    let before = store.report(Duration::from_secs(1), 1);
    set_source(&mut store, 101, &["copy", "f3"], "not its name", 1705);
    set_source(&mut store, 101, &["too late"], "too late", 9);
    let after = store.report(Duration::from_secs(1), 1);

    assert_eq!(self_and_total(&after, "copy"), (2, 2), "innermost");
    assert_eq!(self_and_total(&after, "f3"), (1, 3), "inlined and called");
    assert_eq!(self_and_total(&after, "f1"), (0, 2));
    assert_eq!(after.functions.len(), 4);
    let row = |name: &str| after.functions.iter().find(|f| &*f.name == name).unwrap();
    let place = |name: &str| (row(name).file.as_deref(), row(name).line, row(name).inlined);
    assert_eq!(place("copy"), (Some("heapam.c"), 1, true));
    assert_eq!(place("f1"), (Some("heapam.c"), 1705, false));
    assert_eq!(place("f3"), (None, 0, false), "as its own samples hit it");
    assert_eq!(row("copy").module, row("f1").module);
    for selected in before.functions.iter().map(|f| f.id) {
        assert!(after.find_function(selected).is_some());
    }
}

#[test]
fn a_chain_names_a_frame_that_waits_for_its_name() {
    let mut store = store();
    add(&mut store, 0, 1, &[user(101)]);
    set_source(&mut store, 101, &[""], "main", 7);
    let report = store.report(Duration::from_secs(1), 1);
    assert_eq!(report.functions.len(), 1, "a link without a name is none");
    assert_eq!(&*report.functions[0].name, "main");
    assert_eq!(
        (report.functions[0].line, report.completeness.named),
        (7, 1)
    );
}

#[test]
fn frames_of_one_stripped_function_are_one_row() {
    let mut store = store();
    add(&mut store, 0, 1, &[user(0x1c2)]);
    add(&mut store, 0, 1, &[user(0x1d0)]);
    for id in store.frames_to_name(2) {
        let (reason, start) = (NoName::Stripped, 0x180);
        store.set_name(id, NameState::UnnamedIn { reason, start });
        assert_eq!(store.name(id), NameState::Unnamed(NoName::Stripped));
    }
    let report = store.report(Duration::from_secs(1), 1);
    assert_eq!(report.functions.len(), 1);
    let row = &report.functions[0];
    assert_eq!(&*row.name, "libc.so.6+0x180");
    assert_eq!(row.name_state, RowName::Unnamed(NoName::Stripped));
    assert_eq!(row.self_samples, 2);
    assert_eq!(report.completeness.unnamed, [(NoName::Stripped, 2)]);
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

/// The code of a runtime has hundreds of addresses; they are one row until they have names.
#[test]
fn code_without_a_map_is_one_function_of_its_process() {
    let mut store = Store::new(Limits::default());
    for process in 0..2 {
        store.add_module(ModuleId(process), "[JIT]", "[JIT]");
        store.add_process(ProcessId(process), process + 100, "node");
        for address in 0..5 {
            assert!(store.add_sample(NewSample {
                time_ns: 1_000_000_000 + address,
                cpu: 0,
                process: ProcessId(process),
                tid: process + 100,
                comm: "node",
                frames: &[Frame {
                    module: ModuleId(process),
                    address: 0x1000 * address,
                    kind: FrameKind::Jit,
                }],
                kernel_frames: 0,
                ending: Ending::Root,
                weight: 1,
            }));
        }
    }
    let frames = store.frames_to_name(usize::MAX);
    for frame in &frames {
        store.set_name(*frame, NameState::Unnamed(NoName::Jit));
    }
    let rows = |store: &mut Store| {
        let report = store.report(Duration::from_secs(10), 2_000_000_000);
        let rows = report
            .functions
            .iter()
            .map(|row| (row.name.to_string(), row.self_samples));
        let mut rows: Vec<_> = rows.collect();
        rows.sort();
        (rows, report.completeness.unnamed)
    };
    let unmapped = |samples| ("[JIT, no map]".to_owned(), samples);
    let (found, unnamed) = rows(&mut store);
    assert_eq!(found, [unmapped(5), unmapped(5)]);
    assert_eq!(unnamed, [(NoName::Jit, 10)]);
    let addresses = |store: &mut Store| {
        let report = store.report(Duration::from_secs(10), 2_000_000_000);
        let rows = report.functions.iter();
        let mut addresses: Vec<u32> = rows.map(|row| row.addresses).collect();
        addresses.sort_unstable();
        addresses
    };
    assert_eq!(addresses(&mut store), [5, 5]);
    // A map that is written later gives a name to the address that it contains, and to no other.
    store.set_name(frames[0], NameState::Named("fibonacci".into()));
    let (found, unnamed) = rows(&mut store);
    assert_eq!(found, [unmapped(4), unmapped(5), ("fibonacci".into(), 1)]);
    assert_eq!(addresses(&mut store), [0, 4, 5]);
    assert_eq!(unnamed, [(NoName::Jit, 9)]);
    assert_eq!(store.frames_without_name().len(), 9);
}
