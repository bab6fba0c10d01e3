//! Recordings without names of people and machines: none of these names is in any file, and every
//! number is unchanged.

use profile::formats::{self, Format};
use profile::{
    Cancel, Ending, Frame, FrameKind, Host, Info, Limits, ModuleId, NameState, NewSample,
    ProcessDetails, ProcessId, Query, Rates, Selection, SourceFrame, Store,
};
use std::path::Path;

/// All names that must not occur in the output.
const SECRETS: [&str; 10] = [
    "ledgerd",
    "matcher",
    "annabell",
    "swordfish",
    "tenant-7",
    "acme",
    "vault-01",
    "payroll",
    "quarterly",
    "backup.slice",
];

fn frame(module: u32, address: u64) -> Frame {
    Frame {
        module: ModuleId(module),
        address,
        kind: FrameKind::User,
    }
}

/// A profile of two processes of one command and one of another, whose threads have names of their
/// own.
fn store() -> Store {
    let mut store = Store::new(Limits {
        keep: std::time::Duration::MAX,
        ..Limits::default()
    });
    store.set_info(Info {
        host: Host {
            name: "vault-01".into(),
            kernel: "6.18.1".into(),
            cpus: 4,
            ..Host::default()
        },
        rates: Rates::always(99),
        scope: "payroll[7]".into(),
        epoch_unix_ms: 1_700_000_000_000,
        lost: 3,
        notes: vec!["cannot read /home/annabell/quarterly".into()],
        ..Info::default()
    });
    store.add_module(ModuleId(1), "engine.so", "/srv/acme/engine.so");
    store.add_module(ModuleId(2), "libc.so.6", "/usr/lib/libc.so.6");
    store.set_build_id(ModuleId(1), &[0xcd; 20]);
    for (process, comm, user) in [
        (1, "ledgerd", "annabell"),
        (2, "ledgerd", "annabell"),
        (3, "payroll", "root"),
    ] {
        store.add_process(ProcessId(process), 100 + process, comm);
        let details = ProcessDetails {
            cgroup: Some("/backup.slice/tenant-7".into()),
            user: Some(user.into()),
            command_line: Some("ledgerd --password=swordfish".into()),
            ..ProcessDetails::default()
        };
        store.set_process_details(ProcessId(process), details);
    }
    for (process, tid, comm, address) in [
        (1, 101, "ledgerd", 0x10),
        (1, 110, "matcher-0", 0x20),
        (1, 111, "matcher-0", 0x20),
        (2, 102, "ledgerd", 0x10),
        (3, 103, "payroll", 0x30),
    ] {
        assert!(store.add_sample(NewSample {
            time_ns: 3_000_000_000,
            cpu: 1,
            process: ProcessId(process),
            tid,
            comm,
            frames: &[frame(1, address), frame(2, 0x900)],
            kernel_frames: 0,
            ending: Ending::Root,
            weight: 1,
        }));
    }
    for id in store.frames_to_name(usize::MAX) {
        let address = store.frame(id).expect("asked for").address;
        store.set_name(id, NameState::Named(format!("work_{address:x}").into()));
        let link = |function, line| SourceFrame {
            function,
            file: "/home/annabell/src/engine.c",
            line,
        };
        store.set_source(id, &[link("", 9)]);
    }
    store
}

fn all(view: &profile::View) -> Selection {
    let selected = view.select(&Query::default(), &Cancel::new());
    selected.expect("nobody cancels it")
}

fn written(format: Format, by_thread: bool, selection: &Selection) -> Vec<u8> {
    let mut file = Vec::new();
    let name = Path::new("x");
    let written = format.write_as(name, by_thread, selection, &mut file);
    written.expect("memory takes everything");
    file
}

/// Returns all that a reader can find in a file: its bytes as text, and for packed formats their
/// contents.
fn unpacked(format: Format, file: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(file).into_owned();
    if matches!(format, Format::Pft | Format::Pprof | Format::Folded) {
        let opened = formats::read(file, Limits::default()).expect("we wrote it");
        text += &format!("{:?}", opened.store.view());
    }
    text
}

#[test]
fn no_format_has_a_name_of_anybody() {
    let view = store().view();
    for format in Format::ALL {
        for by_thread in [false, true] {
            let open = unpacked(format, &written(format, by_thread, &all(&view)));
            let told = SECRETS.iter().filter(|secret| open.contains(**secret));
            assert!(told.count() > 0, "{format:?} has names to hide");
            let hidden = unpacked(format, &written(format, by_thread, &all(&view.anonymous())));
            for secret in SECRETS {
                assert!(!hidden.contains(secret), "{format:?} tells {secret}");
            }
            assert!(hidden.contains("work_10"), "{format:?} has no functions");
        }
    }
}

#[test]
fn numbers_are_as_they_were() {
    let view = store().view();
    let (before, after) = (all(&view).report(), all(&view.anonymous()).report());
    assert_eq!(after.samples, before.samples);
    let counts = |report: &profile::Report| {
        let rows = report.functions.iter();
        rows.map(|row| (row.name.clone(), row.self_samples, row.total_samples))
            .collect::<Vec<_>>()
    };
    assert_eq!(counts(&after), counts(&before));
    let people = |report: &profile::Report| {
        let rows = report.processes.iter();
        rows.map(|row| (row.pid, row.samples)).collect::<Vec<_>>()
    };
    assert_eq!(people(&after), people(&before));
    let command = |pid: u32| {
        let row = after.processes.iter().find(|row| row.pid == pid);
        row.expect("it has samples").comm.clone()
    };
    assert_eq!(command(101), command(102), "they were of one command");
    assert_ne!(command(101), command(103));
    let info = view.anonymous();
    let info = info.info();
    assert_eq!((info.host.cpus, info.rates.first_hz, info.lost), (4, 99, 3));
    assert!(info.notes.iter().any(|note| note.contains("a note of")));
}

#[test]
fn what_was_chosen_by_a_name_stays_chosen() {
    let query = Query {
        filter: "comm:matcher-0".parse().expect("a filter"),
        ..Query::default()
    };
    let chosen = store()
        .view()
        .select(&query, &Cancel::new())
        .expect("nobody cancels it")
        .anonymous();
    let file = written(Format::Folded, false, &chosen);
    let lines = String::from_utf8(file).expect("text");
    let (command, rest) = lines.split_once(';').expect("a stack");
    assert!(command.starts_with("command-"), "{lines}");
    assert_eq!(rest, "work_900;work_20 2\n");
}

#[test]
fn stacks_are_told_apart_by_thread() {
    let view = store().view();
    let lines = |by_thread| {
        let file = written(Format::Folded, by_thread, &all(&view));
        String::from_utf8(file).expect("text")
    };
    assert_eq!(
        lines(false),
        "ledgerd;work_900;work_10 2\n\
         matcher-0;work_900;work_20 2\n\
         payroll;work_900;work_30 1\n"
    );
    assert_eq!(
        lines(true),
        "ledgerd/101;work_900;work_10 1\n\
         ledgerd/102;work_900;work_10 1\n\
         matcher-0/110;work_900;work_20 1\n\
         matcher-0/111;work_900;work_20 1\n\
         payroll/103;work_900;work_30 1\n"
    );
    for format in Format::ALL {
        let is_other = written(format, true, &all(&view)) != written(format, false, &all(&view));
        assert_eq!(is_other, !format.has_threads(), "{format:?}");
    }
}
