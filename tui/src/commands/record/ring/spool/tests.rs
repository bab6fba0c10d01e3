use super::*;
use profile::{
    Cancel, Ending, Frame, FrameKind, Host, Info, Limits, ModuleId, NewSample, ProcessId, Query,
    Rates, Store,
};
use std::path::{Path, PathBuf};

fn info(host: &str, lost: u64) -> Info {
    Info {
        rates: Rates::always(19),
        epoch_unix_ms: 1_795_269_792_123,
        host: Host {
            name: host.into(),
            ..Host::default()
        },
        lost,
        ..Info::default()
    }
}

fn store(host: &str) -> Store {
    let mut store = Store::new(Limits {
        keep: Duration::from_secs(120),
        ..Limits::default()
    });
    store.set_info(info(host, 0));
    store.begin(500_000_000);
    store
}

/// Adds three samples of one second, the last one in its last hundredth.
fn add_second(store: &mut Store, second: u64) {
    for at_ns in [0, 400_000_000, 999_000_000] {
        store.add_sample(NewSample {
            time_ns: second * SECOND_NS + at_ns,
            cpu: 0,
            process: ProcessId(1),
            tid: 7,
            comm: "worker",
            frames: &[Frame {
                module: ModuleId(1),
                address: 0x1000 + second,
                kind: FrameKind::User,
            }],
            kernel_frames: 0,
            ending: Ending::Root,
            weight: 1,
        });
    }
}

fn spool(folder: &Path, seconds: u64) -> Spool {
    let config = SpoolConfig {
        folder: folder.into(),
        window: Duration::from_secs(seconds),
        bytes_max: 1 << 20,
    };
    Spool::open(&config).unwrap()
}

fn windows(folder: &Path) -> Vec<PathBuf> {
    let list = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = list.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "pft"));
    paths.sort_unstable();
    paths
}

/// Returns the begin and end of a window in seconds, and its numbers of samples and lost samples.
fn read(path: &Path) -> (u64, u64, u64, u64) {
    let bytes = std::fs::read(path).unwrap();
    let (store, notes) = pft::read(&*bytes, Limits::default()).unwrap();
    assert_eq!(notes, Vec::<String>::new());
    let view = store.view();
    let selection = view.select(&Query::default(), &Cancel::new()).unwrap();
    let samples = selection.report().samples;
    let (begin, end) = (store.begin_ns().unwrap(), store.told_end_ns().unwrap());
    (begin, end, samples, view.info().lost)
}

#[test]
fn windows_follow_each_other_and_have_each_sample_once() {
    let scratch = tempfile::tempdir().unwrap();
    let mut spool = spool(scratch.path(), 10);
    let mut store = store("db-01");
    for second in 1..60 {
        add_second(&mut store, second);
        store.set_info(info("db-01", second / 10));
        spool.append(&store.view(), (second + 1) * SECOND_NS);
    }
    let ends = read(windows(scratch.path()).last().unwrap()).1;
    // The last windows are not written yet, because their names may be missing.
    assert!((45..=56).contains(&(ends / SECOND_NS)), "{ends}");
    assert_eq!(spool.status().windows, windows(scratch.path()).len());
    let mut report = profile::Report::default();
    report.window.end_ns = 60 * SECOND_NS - 1;
    let snapshot = Snapshot {
        view: Some(store.view()),
        report: report.into(),
        ..Snapshot::default()
    };
    spool.finish(&snapshot);
    let read: Vec<_> = windows(scratch.path()).iter().map(|it| read(it)).collect();
    for (before, after) in read.iter().zip(&read[1..]) {
        assert_eq!((before.1 + 1) / SECOND_NS, after.0 / SECOND_NS);
        assert!(
            before.1.abs_diff(after.0) < SECOND_NS,
            "{before:?} {after:?}"
        );
    }
    let lengths = read.iter().skip(1).map(|it| (it.1 + 1 - it.0) / SECOND_NS);
    let lengths: Vec<u64> = lengths.collect();
    assert!(
        lengths[..lengths.len() - 1].iter().all(|it| *it == 10),
        "{read:?}"
    );
    assert_eq!(read.iter().map(|it| it.2).sum::<u64>(), 59 * 3);
    assert_eq!(read.iter().map(|it| it.3).sum::<u64>(), 5, "{read:?}");
}

#[test]
fn hosts_begin_their_windows_at_different_times_and_each_always_at_the_same() {
    let scratch = tempfile::tempdir().unwrap();
    let mut ends = Vec::new();
    for host in ["db-01", "db-02", "web-01", "web-02", "db-01"] {
        let mut spool = spool(&scratch.path().join(format!("{}", ends.len())), 3600);
        let window = spool.begin(&store(host).view(), 0, 0);
        assert!((1..=3600).contains(&(window.until_ns / SECOND_NS)));
        ends.push(window.until_ns);
    }
    assert_eq!(ends[0], ends[4]);
    ends.sort_unstable();
    ends.dedup();
    assert_eq!(ends.len(), 4, "{ends:?}");
}

#[test]
fn what_cannot_be_written_is_written_later_and_counted_when_memory_has_it_no_more() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("spool");
    let mut spool = spool(&path, 10);
    let mut store = store("db-01");
    std::fs::remove_dir_all(&path).unwrap();
    for second in 1..40 {
        add_second(&mut store, second);
        spool.append(&store.view(), (second + 1) * SECOND_NS);
    }
    assert!(spool.status().error.is_some());
    std::fs::create_dir(&path).unwrap();
    spool.retry_at = None;
    spool.append(&store.view(), 40 * SECOND_NS);
    assert!(spool.status().error.is_none());
    let samples: u64 = windows(&path).iter().map(|it| read(it).2).sum();
    assert!(samples >= 20 * 3, "{samples}");
    std::fs::remove_dir_all(&path).unwrap();
    for second in 40..300 {
        add_second(&mut store, second);
        spool.retry_at = None;
        spool.append(&store.view(), (second + 1) * SECOND_NS);
    }
    let unwritten = spool.status().unwritten;
    // The store has the last 120 of 260 seconds.
    assert!((13..=16).contains(&unwritten), "{unwritten}");
}
