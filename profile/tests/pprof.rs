//! pprof: what goes in comes out but for what it cannot hold, other readers
//! agree, and files of strangers do no harm.

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use profile::formats::{FormatError, folded, pprof};
use profile::{
    Cancel, Ending, Frame, FrameKind, Info, Limits, ModuleId, NameState, NewSample, ProcessId,
    Query, Selection, SourceFrame, Store,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::process::Command;

const HOSTILE: &str = "<img src=x onerror=\"a()\">\u{2028}&'];";

fn limits() -> Limits {
    Limits {
        keep: std::time::Duration::MAX,
        memory_bytes: 1 << 30,
    }
}

fn frame(address: u64) -> Frame {
    Frame {
        module: ModuleId((address % 3) as u32),
        address: address << 12 | u64::from(address.is_multiple_of(3)) << 63,
        kind: [FrameKind::Kernel, FrameKind::User, FrameKind::Jit][address as usize % 3],
    }
}

/// Addresses, thread, ending, weight.
type Given = (Vec<u64>, u32, usize, u64);

fn given() -> impl Strategy<Value = Given> {
    let frames = prop::collection::vec(0..40u64, 0..9);
    (frames, 0..5u32, 0..Ending::ALL.len(), 1..1000u64)
}

fn store(samples: &[Given]) -> Store {
    let mut store = Store::new(limits());
    for (id, path) in [(0, "[kernel]"), (1, "/usr/lib/libc.so.6"), (2, "[anon]")] {
        let name = path.rsplit('/').next().unwrap();
        store.add_module(ModuleId(id), name, path);
    }
    store.set_build_id(ModuleId(1), &[0xab; 20]);
    for process in 0..2 {
        store.add_process(
            ProcessId(process),
            process + 100,
            &format!("{HOSTILE}{process}"),
        );
    }
    store.set_info(Info {
        rate_hz: 99,
        epoch_unix_ms: 1_700_000_000_000,
        host: "db-01".into(),
        lost: 7,
        notes: vec!["a note".into()],
        ..Info::default()
    });
    store.begin(0);
    for (addresses, tid, ending, weight) in samples {
        let frames: Vec<Frame> = addresses.iter().map(|address| frame(*address)).collect();
        let in_kernel = frames.first().is_some_and(|f| f.kind == FrameKind::Kernel);
        assert!(store.add_sample(NewSample {
            time_ns: 3_000_000_000,
            cpu: 1,
            process: ProcessId(tid % 2),
            tid: *tid,
            comm: "worker",
            frames: &frames,
            kernel_frames: usize::from(in_kernel),
            ending: Ending::ALL[*ending],
            weight: *weight,
        }));
    }
    for id in store.frames_to_name(usize::MAX) {
        let address = store.frame(id).expect("asked for").address >> 12 & 0xff;
        let name = match address % 7 {
            0 => HOSTILE.into(),
            _ => format!("f{}", address / 3),
        };
        match address % 5 {
            0 => store.set_name(id, NameState::Unnamed("not_told")),
            _ => store.set_name(id, NameState::Named(name.into())),
        }
        if !address.is_multiple_of(5) && address.is_multiple_of(4) {
            let link = |function, line| SourceFrame {
                function,
                file: "src/a.c",
                line,
            };
            store.set_source(id, &[link("inner", 7), link("middle", 8), link("", 9)]);
        }
    }
    store
}

fn select(store: &Store, filter: &str) -> Selection {
    let query = Query {
        filter: filter.parse().unwrap(),
        ..Query::default()
    };
    store.view().select(&query, &Cancel::new()).unwrap()
}

fn written(selection: &Selection) -> Vec<u8> {
    let mut file = Vec::new();
    pprof::write(selection, &mut file).unwrap();
    file
}

fn stacks(selection: &Selection) -> String {
    let mut text = Vec::new();
    folded::write(selection, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// All that pprof can hold, as text.
fn text(selection: &Selection) -> Vec<String> {
    let report = selection.report();
    let mut lines = vec![stacks(selection), format!("{:?}", report.completeness)];
    for row in report.functions {
        let counts = (row.self_samples, row.total_samples);
        lines.push(format!("{} {} {counts:?}", row.name, row.module));
    }
    for row in report.processes {
        lines.push(format!("{} {} {}", row.pid, row.comm, row.samples));
    }
    for row in report.threads {
        lines.push(format!("{} {} {}", row.tid, row.comm, row.samples));
    }
    lines[2..].sort();
    lines
}

/// Stacks without the marks of kinds: a function without a place has no kind.
fn unmarked(selection: &Selection) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in stacks(selection).lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let plain = ["_[i]", "_[j]", "_[k]"]
            .iter()
            .fold(stack.to_string(), |s, mark| s.replace(mark, ""));
        *counts.entry(plain).or_insert(0) += count.parse::<u64>().unwrap();
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_written_comes_back(samples in prop::collection::vec(given(), 1..60)) {
        let before = store(&samples);
        let selection = select(&before, "");
        let (after, notes) = pprof::read(&written(&selection)[..], limits()).unwrap();
        prop_assert!(notes.is_empty(), "{:?}", notes);
        prop_assert_eq!(text(&selection), text(&select(&after, "")));
        let (before, after) = (before.view(), after.view());
        prop_assert_eq!(before.kept_seconds(), after.kept_seconds());
        prop_assert_eq!(after.info(), before.info());
    }

    #[test]
    fn a_filtered_stack_is_written_as_filtered(samples in prop::collection::vec(given(), 1..60)) {
        let before = store(&samples);
        for filter in ["hide:/^f1/", "hide:middle", "hide:/f|m|i|[+]/", "fold-recursion"] {
            let selection = select(&before, filter);
            let (after, _) = pprof::read(&written(&selection)[..], limits()).unwrap();
            prop_assert_eq!(unmarked(&selection), unmarked(&select(&after, "")));
        }
    }

    #[test]
    fn damage_does_no_harm(
        samples in prop::collection::vec(given(), 1..20),
        at in 0..100_000usize,
        byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let file = written(&select(&store(&samples), ""));
        let mut message = Vec::new();
        GzDecoder::new(&file[..]).read_to_end(&mut message).unwrap();
        let at = at % message.len();
        match cut {
            true => message.truncate(at),
            false => message[at] = byte,
        }
        if let Ok((store, _)) = pprof::read(&message[..], limits()) {
            let selection = select(&store, "");
            written(&selection);
        }
        let mut damaged = file.clone();
        let at = at % file.len();
        damaged[at] ^= 0x10;
        // Beyond the header, which says little, the checksum tells.
        let is_told = pprof::read(&damaged[..], limits()).is_err();
        prop_assert!(is_told || at < 10, "byte {}", at);
        prop_assert!(pprof::read(&file[..file.len() - 1], limits()).is_err());
    }

    #[test]
    fn random_bytes_never_panic(raw in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = pprof::read(&raw[..], limits());
    }
}

fn packed(message: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(message).unwrap();
    packed.finish().unwrap()
}

/// A profile of one type, by hand: what comes after it is given.
fn by_hand(rest: &[&[u8]]) -> Result<(Store, Vec<String>), FormatError> {
    let mut message = vec![0x0a, 4, 0x08, 1, 0x10, 2];
    for text in ["", "samples", "count"] {
        message.extend([0x32, text.len() as u8]);
        message.extend(text.as_bytes());
    }
    rest.iter().for_each(|part| message.extend_from_slice(part));
    pprof::read(&packed(&message)[..], limits())
}

#[test]
fn numbers_that_lead_nowhere_are_refused() {
    const LOCATION: &[u8] = &[0x22, 4, 0x08, 1, 0x18, 5];
    const SAMPLE: &[u8] = &[0x12, 4, 0x08, 1, 0x10, 3];
    let (store, _) = by_hand(&[LOCATION, SAMPLE]).unwrap();
    assert_eq!(select(&store, "").samples(), 3, "not packed is right, too");
    for (rest, why) in [
        (&[SAMPLE][..], "a location"),
        (&[LOCATION, LOCATION], "two locations"),
        (&[LOCATION, &[0x12, 2, 0x08, 1]], "as many values"),
        (
            &[SAMPLE, &[0x22, 6, 0x08, 1, 0x10, 9, 0x18, 5]],
            "a mapping",
        ),
        (
            &[SAMPLE, &[0x22, 6, 0x08, 1, 0x22, 2, 0x08, 7]],
            "a function",
        ),
        (&[SAMPLE, LOCATION, &[0x6a, 1, 99]], "a string"),
        (
            &[&[0x2a, 4, 0x08, 1, 0x10, 1], &[0x2a, 2, 0x08, 1]],
            "two functions",
        ),
    ] {
        let error = by_hand(rest).expect_err(why).to_string();
        assert!(error.contains(why), "{why}: {error}");
    }
    let minus = [
        0x12, 13, 0x08, 1, 0x10, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1,
    ];
    let (store, notes) = by_hand(&[LOCATION, &minus]).unwrap();
    assert_eq!((select(&store, "").samples(), notes.len()), (0, 1));
    let vast = [
        0x12, 13, 0x08, 1, 0x10, 255, 255, 255, 255, 255, 255, 255, 255, 127,
    ];
    assert!(by_hand(&[LOCATION, &vast[..14], &[0]]).is_err());
}

/// The tool that everyone has; nothing where it is missing, and then says so.
fn go_pprof(arguments: &[&str]) -> Option<String> {
    let output = Command::new("go")
        .args(["tool", "pprof"])
        .args(arguments)
        .output();
    match output {
        Ok(output) if output.status.success() => Some(String::from_utf8(output.stdout).unwrap()),
        Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => {
            _ = writeln!(std::io::stderr(), "skipped: needs `go tool pprof`");
            None
        }
    }
}

#[test]
fn the_real_pprof_counts_the_same() {
    let samples: Vec<Given> = (0..200u64)
        .map(|n| {
            (
                vec![n % 17, 20 + n % 9, 33],
                n as u32 % 5,
                usize::from(n % 7 == 0),
                n,
            )
        })
        .collect();
    let store = store(&samples);
    let selection = select(&store, "");
    let path = std::env::temp_dir().join(format!("proftop-pprof-{}.pb.gz", std::process::id()));
    std::fs::write(&path, written(&selection)).unwrap();
    let file = path.to_str().unwrap();
    let top = go_pprof(&[
        "-top",
        "-sample_index=samples",
        "-symbolize=none",
        "-nodecount=1000",
        "-nodefraction=0",
        "-edgefraction=0",
        file,
    ]);
    let tags = go_pprof(&["-tags", "-sample_index=samples", "-symbolize=none", file]);
    let _ = std::fs::remove_file(&path);
    let (Some(top), Some(tags)) = (top, tags) else {
        return;
    };
    // It adds up functions of one name, whatever module they are in.
    let mut own = BTreeMap::new();
    for row in selection.functions() {
        if row.name_state == profile::RowName::Named {
            *own.entry(row.name.to_string()).or_insert(0) += row.self_samples;
        }
    }
    own.retain(|_, samples| *samples > 0);
    assert!(own.len() > 5);
    for (name, samples) in own {
        let line = top.lines().find(|line| {
            line.trim_end()
                .trim_end_matches(" (inline)")
                .ends_with(&format!(" {name}"))
        });
        let line = line.unwrap_or_else(|| panic!("{name} is not in {top}"));
        let theirs: u64 = line.split_whitespace().next().unwrap().parse().unwrap();
        assert_eq!(theirs, samples, "{name}: {line}");
    }
    for tag in ["worker", "pid", "101", "tid", "comm"] {
        assert!(tags.contains(tag), "{tag}: {tags}");
    }
}
