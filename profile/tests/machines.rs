//! Recordings of several machines that arrive at the same time, in one profile.

use crate::common::{frame, limits};
use profile::formats::pft::{self, Machine, Reader};
use profile::machines::Machines;
use profile::merge::merge;
use profile::{
    Cancel, Ending, Host, Info, Limits, ModuleId, NameState, NewSample, ProcessDetails, ProcessId,
    Query, Rates, Store, View,
};
use std::sync::Arc;

/// Unix times in ms: when the profile of all machines began, and when each machine was started.
const BEGAN_MS: i64 = 1_700_000_000_000;
const BOOTED_MS: i64 = BEGAN_MS - 500_000_000;

/// The recording of a machine of that name: `samples` in one process, one each second from `at_s`
/// on, on a clock that was 0 when the machine was started and is `ahead_ms` ahead of the true time.
fn recording(host: &str, ahead_ms: i64, at_s: u64, samples: u64) -> Store {
    let mut store = Store::new(limits());
    store.set_info(Info {
        rates: Rates::always(99),
        epoch_unix_ms: BOOTED_MS + ahead_ms,
        host: Host {
            name: host.into(),
            cpus: 4,
            ..Host::default()
        },
        ..Info::default()
    });
    store.begin(at_s * 1_000_000_000);
    store.add_module(ModuleId(0), "app", "/opt/app");
    store.set_build_id(ModuleId(0), &[7; 20]);
    store.add_process(ProcessId(0), 100, "app");
    let details = ProcessDetails {
        user: Some("www-data".into()),
        ..ProcessDetails::default()
    };
    store.set_process_details(ProcessId(0), details);
    let place = profile::Frame {
        module: ModuleId(0),
        ..frame(1)
    };
    for second in at_s..at_s + samples {
        assert!(store.add_sample(NewSample {
            time_ns: second * 1_000_000_000,
            cpu: 1,
            process: ProcessId(0),
            tid: 100,
            comm: "app",
            frames: &[place],
            kernel_frames: 0,
            ending: Ending::Root,
            weight: 1,
        }));
    }
    let id = store.frames_to_name(1)[0];
    store.set_name(id, NameState::Named("work".into()));
    store
}

fn bytes(store: &Store) -> Vec<u8> {
    let mut bytes = Vec::new();
    pft::write(&store.view(), &mut bytes).unwrap();
    bytes
}

fn machine(number: u32, host: &str, ahead_ms: i64) -> Machine {
    Machine {
        host: host.into(),
        number,
        ahead_ms,
    }
}

/// Reads whole recordings, a block of each in turn, and returns what was left out.
fn read(machines: &mut Machines, recordings: &[(Machine, Vec<u8>)], now_ns: u64) -> Vec<String> {
    let readers = recordings.iter().map(|(machine, bytes)| {
        let reader = Reader::new_beside(&bytes[..], machine.clone()).unwrap();
        (machine.number as usize, reader)
    });
    let mut readers: Vec<_> = readers.collect();
    let mut notes = Vec::new();
    while !readers.is_empty() {
        readers.retain_mut(|(number, reader)| {
            let goes_on = reader.wait_for_block().unwrap()
                && machines.add_block(*number, reader, now_ns).unwrap();
            if !goes_on {
                notes.extend(reader.notes());
            }
            goes_on
        });
    }
    notes
}

/// A process: its machine, its pid, and its number of samples.
type Process = (Option<Arc<str>>, u32, u64);

/// Returns the functions and how often each was on top, and the processes with their machines.
fn told(view: &View) -> (Vec<(String, u64)>, Vec<Process>) {
    let selection = view.select(&Query::default(), &Cancel::new()).unwrap();
    let report = selection.report();
    let functions = report.functions.iter();
    let processes = report.processes.iter();
    let mut processes: Vec<_> = processes
        .map(|row| (row.details.host.clone(), row.pid, row.samples))
        .collect();
    processes.sort();
    (
        functions
            .map(|row| (row.name.to_string(), row.self_samples))
            .collect(),
        processes,
    )
}

#[test]
fn machines_keep_their_processes_and_share_their_functions() {
    // The clock of the second machine is three minutes ahead; both began to sample at the same
    // time.
    let at_s = 500_000;
    let (a, b) = (
        recording("a", 0, at_s, 5),
        recording("b.example", 180_000, at_s, 3),
    );
    let mut machines = Machines::new(2, Limits::default(), BEGAN_MS);
    let notes = read(
        &mut machines,
        &[
            (machine(0, "a", 0), bytes(&a)),
            (machine(1, "b", 180_000), bytes(&b)),
        ],
        5_000_000_000,
    );
    assert_eq!(notes, Vec::<String>::new());
    let view = machines.view();
    let (functions, processes) = told(&view);
    assert_eq!(functions, [("work".into(), 8)]);
    let [host_a, host_b] = ["a", "b"].map(|host| Some(Arc::from(host)));
    assert_eq!(processes, [(host_a, 100, 5), (host_b, 100, 3)]);
    let info = view.info();
    assert_eq!((&*info.host.name, info.host.cpus), ("a, b.example", 8));
    assert_eq!(info.rates.first_hz, 99);
    assert_eq!(
        view.begin_ns(),
        Some(0),
        "both clocks are that of the profile"
    );
    assert_eq!(view.window(profile::TimeRange::ALL).seconds(), 5.0);
    // Each filter selects one machine, or excludes one.
    for (filter, samples) in [
        ("host:a", 5),
        ("!host:a", 3),
        ("host~^[ab]$", 8),
        ("host:c", 0),
    ] {
        let query = Query {
            filter: filter.parse().unwrap(),
            ..Query::default()
        };
        assert_eq!(query.filter.to_string(), filter);
        let selection = view.select(&query, &Cancel::new()).unwrap();
        assert_eq!(selection.samples(), samples, "{filter}");
    }
}

#[test]
fn a_file_keeps_the_machines_of_its_processes() {
    let (a, b) = (recording("a", 0, 10, 5), recording("b", 0, 10, 3));
    let merged = merge(&[a.view(), b.view()], limits()).unwrap();
    let (read, notes) = pft::read(&bytes(&merged)[..], limits()).unwrap();
    assert_eq!(notes, Vec::<String>::new());
    assert_eq!(told(&read.view()), told(&merged.view()));
    let hosts = told(&read.view()).1.into_iter().map(|(host, ..)| host);
    assert_eq!(
        hosts.collect::<Vec<_>>(),
        ["a", "b"].map(|host| Some(Arc::from(host)))
    );
    // Merging in two steps gives the same profile.
    let c = recording("c", 0, 10, 1);
    let steps = merge(&[read.view(), c.view()], limits()).unwrap();
    let whole = merge(&[a.view(), b.view(), c.view()], limits()).unwrap();
    assert_eq!(told(&steps.view()), told(&whole.view()));
    // The file of a single machine stores no machine for each process.
    let (alone, _) = pft::read(&bytes(&a)[..], limits()).unwrap();
    assert_eq!(told(&alone.view()).1, [(None, 100, 5)]);
}

#[test]
fn a_clock_that_is_wrong_changes_nothing_for_others() {
    let (a, b) = (recording("a", 0, 500_000, 5), recording("b", 0, 900_000, 3));
    let mut machines = Machines::new(2, Limits::default(), BEGAN_MS);
    let recordings = [
        (machine(0, "a", 0), bytes(&a)),
        (machine(1, "b", 0), bytes(&b)),
    ];
    let notes = read(&mut machines, &recordings, 5_000_000_000);
    assert_eq!(
        notes,
        ["3 samples of the future were left out: its clock was changed"]
    );
    assert_eq!(
        machines.view().window(profile::TimeRange::ALL).seconds(),
        5.0
    );
}

#[test]
fn machines_that_count_different_things_are_not_put_together() {
    let a = recording("a", 0, 500_000, 5);
    let mut b = recording("b", 0, 500_000, 5);
    let metric = profile::Metric::off_cpu();
    let info = Info {
        metric,
        ..Info::clone(b.view().info())
    };
    b.set_info(info);
    let mut machines = Machines::new(2, Limits::default(), BEGAN_MS);
    read(
        &mut machines,
        &[(machine(0, "a", 0), bytes(&a))],
        5_000_000_000,
    );
    let b = bytes(&b);
    let mut reader = Reader::new_beside(&b[..], machine(1, "b", 0)).unwrap();
    assert!(reader.wait_for_block().unwrap());
    let refused = machines.add_block(1, &mut reader, 5_000_000_000);
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(machines.view().samples(), 5);
}
