//! pprof: a profile that is written and read again is the same except for what pprof cannot hold,
//! other readers agree, and files of strangers do no harm.

use crate::common::{Given, given, limits, select, store, text, unmarked};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use profile::formats::{self, FormatError, pprof};
use profile::{Ending, Frame, FrameKind, ModuleId, NewSample, ProcessId, Selection, Store};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use test_support::Scratch;

fn written(selection: &Selection) -> Vec<u8> {
    let mut file = Vec::new();
    pprof::write(selection, &mut file).unwrap();
    file
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
        let before = store(&samples);
        let file = written(&select(&before, ""));
        let mut message = Vec::new();
        GzDecoder::new(&file[..]).read_to_end(&mut message).unwrap();
        let at = at % message.len();
        if cut {
            message.truncate(at)
        } else {
            message[at] = byte
        }
        if let Ok((store, _)) = pprof::read(&message[..], limits()) {
            let selection = select(&store, "");
            written(&selection);
        }
        let mut damaged = file.clone();
        let at = at % file.len();
        damaged[at] ^= 0x10;
        // The header has little meaning, and the last bits before the checksum may be padding; any
        // other change is detected by the checksum.
        if let Ok((after, _)) = pprof::read(&damaged[..], limits()) {
            let (before, after) = (select(&before, ""), select(&after, ""));
            prop_assert_eq!(text(&before), text(&after), "byte {}", at);
        }
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

/// Reads a profile with one type of value, made by hand; `rest` has everything after the type.
fn by_hand(rest: &[&[u8]]) -> Result<(Store, Vec<String>), FormatError> {
    let mut message = vec![0x0a, 4, 0x08, 1, 0x10, 2];
    for text in ["", "samples", "count"] {
        message.extend([0x32, text.len() as u8]);
        message.extend(text.as_bytes());
    }
    rest.iter().for_each(|part| message.extend_from_slice(part));
    pprof::read(&packed(&message)[..], limits())
}

/// A heap profile as Go writes it: the type of the period comes first.
fn heap() -> Vec<u8> {
    let mut message = vec![0x5a, 4, 0x08, 3, 0x10, 4];
    for (name, unit) in [(1, 2), (3, 4)] {
        message.extend([0x0a, 4, 0x08, name, 0x10, unit]);
    }
    // 3 objects of 30 bytes at one place, and 4 objects of 0 bytes at another.
    message.extend([0x12, 7, 0x08, 1, 0x12, 3, 3, 0x80 | 30, 0]);
    message.extend([0x12, 6, 0x08, 2, 0x12, 2, 4, 0]);
    for location in [1, 2] {
        message.extend([0x22, 4, 0x08, location, 0x18, 5 + location]);
    }
    for text in ["", "objects", "count", "space", "bytes"] {
        message.extend([0x32, text.len() as u8]);
        message.extend(text.as_bytes());
    }
    message
}

#[test]
fn heaps_are_read_by_any_of_their_types() {
    for file in [heap(), packed(&heap())] {
        let read = |metric| formats::read_metric(&file[..], limits(), metric).unwrap();
        let usual = read(None);
        assert_eq!(
            (usual.format, &*usual.metrics),
            ("pprof", &["objects".to_owned(), "space".into()][..])
        );
        let view = usual.store.view();
        assert_eq!(view.info().metric.name, "space");
        assert_eq!(select(&usual.store, "").samples(), 30);
        let objects = view
            .counting(&read(Some("objects")).store.view())
            .expect("the same file");
        let selection = objects.select(&Default::default(), &profile::Cancel::new());
        assert_eq!(selection.unwrap().samples(), 7);
        let error = formats::read_metric(&file[..], limits(), Some("cpu")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "it does not count cpu, but objects, space"
        );
    }
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

/// Runs `go tool pprof` and returns its output; `None`, with a message, if go is missing.
fn go_pprof(arguments: &[&str]) -> Option<String> {
    let output = Command::new("go")
        .args(["tool", "pprof"])
        .args(arguments)
        .output();
    match output {
        Ok(output) if output.status.success() => Some(String::from_utf8(output.stdout).unwrap()),
        Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => {
            test_support::skip("needs `go tool pprof`");
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
    let scratch = Scratch::new();
    let path = scratch.write("written.pb.gz", written(&selection));
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
    let (Some(top), Some(tags)) = (top, tags) else {
        return;
    };
    // pprof adds up functions of one name, whatever module they are in.
    let mut own = BTreeMap::new();
    for row in selection.functions() {
        if row.name_state == profile::RowName::Named {
            *own.entry(row.name.to_string()).or_insert(0) += row.self_samples;
        }
    }
    own.retain(|_, samples| *samples > 0);
    assert!(own.len() > 5);
    for (name, samples) in own {
        let line = top
            .lines()
            .find(|line| {
                line.trim_end()
                    .trim_end_matches(" (inline)")
                    .ends_with(&format!(" {name}"))
            })
            .unwrap_or_else(|| panic!("{name} is not in {top}"));
        let theirs: u64 = line.split_whitespace().next().unwrap().parse().unwrap();
        assert_eq!(theirs, samples, "{name}: {line}");
    }
    for tag in ["worker", "pid", "101", "tid", "comm"] {
        assert!(tags.contains(tag), "{tag}: {tags}");
    }
}

/// Samples usually begin with frames of the kernel, then of libraries, then of the program; pprof
/// takes the first mapping for the program.
#[test]
fn the_real_pprof_calls_a_profile_by_its_program() {
    let mut store = Store::new(limits());
    for (id, path) in [(0, "[kernel]"), (1, "/lib/libc.so.6"), (2, "/srv/server")] {
        let name = path.rsplit('/').next().unwrap();
        store.add_module(ModuleId(id), name, path);
    }
    let frames = [0, 1, 2].map(|module| Frame {
        module: ModuleId(module),
        address: 0x1000,
        kind: if module == 0 {
            FrameKind::Kernel
        } else {
            FrameKind::User
        },
    });
    assert!(store.add_sample(NewSample {
        time_ns: 0,
        cpu: 0,
        process: ProcessId(0),
        tid: 7,
        comm: "server",
        frames: &frames,
        kernel_frames: 1,
        ending: Ending::Root,
        weight: 1,
    }));
    let scratch = Scratch::new();
    let path = scratch.write("written.pb.gz", written(&select(&store, "")));
    let top = go_pprof(&["-top", "-symbolize=none", path.to_str().unwrap()]);
    if let Some(top) = top {
        assert!(top.contains("File: server\n"), "{top}");
    }
}

/// Where Debian's package golang-github-google-pprof-dev has the schema.
const SCHEMA: &str = "/usr/share/gocode/src/github.com/google/pprof/proto";

/// Decodes a message with protoc by pprof's own schema, and returns it as text.
fn decoded(message: &[u8]) -> Option<String> {
    if !std::path::Path::new(SCHEMA).join("profile.proto").exists() {
        test_support::skip("pprof by its schema: needs Debian's golang-github-google-pprof-dev");
        return None;
    }
    let mut protoc = Command::new("protoc");
    protoc.args([
        "--decode=perftools.profiles.Profile",
        "-I",
        SCHEMA,
        "profile.proto",
    ]);
    protoc.stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut protoc) = protoc.spawn() else {
        test_support::skip("pprof by its schema: needs protoc of Debian's protobuf-compiler");
        return None;
    };
    let mut stdin = protoc.stdin.take().unwrap();
    let message = message.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&message));
    let output = protoc.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Returns the lines of each outermost message with this name.
fn messages<'a>(text: &'a str, name: &str) -> Vec<Vec<&'a str>> {
    let head = format!("{name} {{");
    let mut lines = text.lines();
    let mut found = Vec::new();
    while lines.by_ref().any(|line| line == head) {
        found.push(lines.by_ref().take_while(|line| *line != "}").collect());
    }
    found
}

/// Returns the numbers of a field, in the order of the file.
fn numbers(lines: &[&str], field: &str) -> Vec<u64> {
    let fields = lines
        .iter()
        .filter_map(|line| line.trim().split_once(": "))
        .filter(|(name, _)| *name == field);
    fields.map(|(_, number)| number.parse().unwrap()).collect()
}

#[test]
fn the_schema_of_pprof_decodes_what_we_write() {
    let samples: Vec<Given> = (0..200u64)
        .map(|n| (vec![n % 17, 20 + n % 9, 33], n as u32 % 5, 0, n + 1))
        .collect();
    let store = store(&samples);
    let selection = select(&store, "");
    let mut message = Vec::new();
    let file = written(&selection);
    GzDecoder::new(&file[..]).read_to_end(&mut message).unwrap();
    let Some(text) = decoded(&message) else {
        return;
    };
    // protoc prints a field that the schema does not have by its number.
    let is_unknown = |line: &&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    assert_eq!(text.lines().find(is_unknown), None);
    let strings: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("string_table: \""))
        .map(|text| text.strip_suffix('"').unwrap())
        .collect();
    assert_eq!(strings[0], "");

    // The number of samples of each innermost function, by its name.
    let field = |lines: &[&str], name: &str| numbers(lines, name).first().copied().unwrap_or(0);
    let functions: BTreeMap<u64, &str> = messages(&text, "function")
        .into_iter()
        .map(|f| (field(&f, "id"), strings[field(&f, "name") as usize]))
        .collect();
    let locations: BTreeMap<u64, u64> = messages(&text, "location")
        .into_iter()
        .map(|l| (field(&l, "id"), field(&l, "function_id")))
        .collect();
    let mut theirs: BTreeMap<&str, u64> = BTreeMap::new();
    let mut sum = 0;
    for sample in messages(&text, "sample") {
        let (place, value) = (field(&sample, "location_id"), field(&sample, "value"));
        sum += value;
        if let Some(name) = functions.get(&locations[&place]) {
            *theirs.entry(name).or_default() += value;
        }
    }
    assert_eq!(sum, selection.samples());
    let mut ours: BTreeMap<String, u64> = BTreeMap::new();
    for row in selection.functions() {
        let is_plain = row.name_state == profile::RowName::Named && row.name.is_ascii();
        if is_plain && row.self_samples > 0 && !row.name.contains(['"', '\'', '\\']) {
            *ours.entry(row.name.to_string()).or_default() += row.self_samples;
        }
    }
    assert!(ours.len() > 5, "{ours:?}");
    for (name, samples) in ours {
        assert_eq!(theirs.get(&*name), Some(&samples), "{name}");
    }
}
