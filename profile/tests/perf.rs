//! Files that Linux' perf writes: made by hand, by the perf of this machine, and
//! damaged.

use crate::common::perf_file::{File, USER_MARK, pairs, two_processes, words};
use crate::common::{self, TEXT_OF_PERF, limits, perf, select};
use profile::formats::{self, FormatError, Opened};
use profile::{Ending, FrameKind, NameState, Selection};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

fn opened(bytes: &[u8]) -> Result<Opened, FormatError> {
    formats::read(bytes, limits())
}

/// Returns the samples by module, address and kind of the frame on top, which a file without names
/// has.
fn places(selection: &Selection) -> BTreeMap<String, u64> {
    let rows = selection.functions();
    let rows = rows.iter().filter(|row| row.self_samples > 0);
    rows.map(|row| {
        (
            format!("{} {:#x}", row.module_path, row.address),
            row.self_samples,
        )
    })
    .collect()
}

#[test]
fn addresses_become_places_in_what_was_mapped_then() {
    let bytes = two_processes().bytes();
    if let Some(folder) = std::env::var_os("PROFTOP_SEEDS") {
        // The fuzz target starts from this file.
        std::fs::write(Path::new(&folder).join("two.perf.data"), &bytes).unwrap();
    }
    let after = opened(&bytes).unwrap();
    assert_eq!(
        (after.format, after.notes.len()),
        ("perf.data", 0),
        "{:?}",
        after.notes
    );
    let selection = select(&after.store, "");
    let wanted: BTreeMap<String, u64> = [
        ("/usr/bin/tool 0x10".to_string(), 1),
        ("/bin/sh 0x1010".to_string(), 1),
        ("[kernel.kallsyms] 0x100".to_string(), 2),
        ("[xfs] 0x10".to_string(), 1),
    ]
    .into();
    assert_eq!(places(&selection), wanted);
    let view = after.store.view();
    let rows = selection.functions();
    let row = |module: &str, address| {
        let mut rows = rows.iter();
        rows.find(|row| &*row.module_path == module && row.address == address)
            .unwrap()
    };
    // The address of a caller is inside of its call instruction.
    assert_eq!(row("/bin/sh", 0x1020).total_samples, 1);
    assert_eq!(row("[kernel.kallsyms]", 0x200).kind, FrameKind::Kernel);
    for (module, address, id) in [
        ("/usr/bin/tool", 0x10, &[0xcd; 20][..]),
        ("/bin/sh", 0x1010, &[0xef; 16]),
        ("[kernel.kallsyms]", 0x100, &[0xab; 20]),
    ] {
        assert_eq!(
            &*view.function(row(module, address).id).build_id,
            id,
            "{module}"
        );
        assert_eq!(
            view.function(row(module, address).id).name_state,
            profile::RowName::Pending
        );
    }
    let (processes, threads) = selection.processes_and_threads();
    let mut names: Vec<_> = processes
        .iter()
        .map(|p| (p.pid, &*p.comm, p.samples))
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            (0, "swapper", 1),
            (7, "sh (old)", 2),
            (8, "sh (old)", 1),
            (8, "tool", 1)
        ]
    );
    assert!(
        threads
            .iter()
            .any(|thread| thread.tid == 9 && &*thread.comm == "sh (old)")
    );
    let completeness = selection.completeness();
    assert_eq!(
        completeness.endings,
        [(Ending::Root, 3), (Ending::NoUserStack, 2)]
    );
    assert_eq!(
        (view.info().rates.first_hz, &*view.info().host.name),
        (997, "db-01")
    );
}

#[test]
fn another_event_counts_where_it_is_wanted() {
    let mut file = File::new(&[(0, 0), (1, 2), (0, 0)]);
    file.mmap2(7, 1, [0x1000, 0x1000, 0], &[0; 24], "/a");
    file.sample(2, 7, 7, 2, 3, &[USER_MARK, 0x1003]);
    file.sample(1, 7, 7, 3, 1000, &[USER_MARK, 0x1001]);
    file.sample(2, 8, 9, 4, 5, &[USER_MARK, 0x1001]);
    file.sample(3, 7, 7, 5, 70, &[USER_MARK, 0x1002]);
    let bytes = file.bytes();
    let read = |metric| formats::read_metric(&bytes[..], limits(), metric);
    let cycles = read(None).unwrap();
    assert_eq!(cycles.metrics, ["cycles", "page-faults", "cycles-2"]);
    let first = cycles.store.view();
    for (metric, samples) in [("cycles", 1000), ("page-faults", 8), ("cycles-2", 70)] {
        let other = read(Some(metric)).unwrap();
        assert_eq!(select(&other.store, "").samples(), samples, "{metric}");
        let view = first.counting(&other.store.view()).expect("the same file");
        assert_eq!(view.info().metric.name, metric);
        let selection = view
            .select(&Default::default(), &profile::Cancel::new())
            .unwrap();
        assert_eq!(selection.samples(), samples, "{metric}");
        for row in selection.functions() {
            assert_eq!(view.frame(row.id), first.frame(row.id));
        }
        // A sample that stands for a thousand events is one sample.
        let told = selection.reweighed().expect("they are events");
        assert_eq!(told.taken, if metric == "page-faults" { 2 } else { 1 });
        let as_many = told.evidence * samples as f64;
        assert!((0.9..=told.taken as f64).contains(&as_many), "{as_many}");
    }
    let error = read(Some("instructions")).unwrap_err().to_string();
    let told = "it does not count instructions, but cycles, page-faults, cycles-2";
    assert_eq!(error, told);
    let mut other = File::new(&[(0, 0)]);
    other.mmap2(7, 1, [0x1000, 0x1000, 0], &[0; 24], "/a");
    other.sample(1, 7, 7, 2, 3, &[USER_MARK, 0x1003]);
    let other = opened(&other.bytes()).unwrap().store.view();
    assert!(first.counting(&other).is_none(), "it is another file");
}

#[test]
fn the_first_of_several_events_counts_by_its_periods() {
    let mut file = File::new(&[(0, 0), (0, 1)]);
    file.mmap2(7, 1, [0x1000, 0x1000, 0], &[0; 24], "/a");
    file.sample(1, 7, 7, 2, 1000, &[USER_MARK, 0x1001]);
    file.sample(2, 7, 7, 3, 5, &[USER_MARK, 0x1001]);
    file.sample(1, 7, 7, 4, 500, &[USER_MARK, 0x1002]);
    let after = opened(&file.bytes()).unwrap();
    assert_eq!(
        after.notes,
        ["1 samples are of other events than cycles and do not count"]
    );
    assert_eq!(after.metrics, ["cycles", "instructions"]);
    let selection = select(&after.store, "");
    assert_eq!(selection.samples(), 1500);
    let info = after.store.view().info().clone();
    assert_eq!(
        (&*info.metric.name, &*info.metric.unit),
        ("cycles", "events")
    );
}

#[test]
fn events_alike_are_told_apart_by_numbers() {
    let mut file = File::new(&[(1, 4), (1, 0), (1, 0)]);
    file.mmap2(7, 1, [0x1000, 0x1000, 0], &[0; 24], "/a");
    file.sample(1, 7, 7, 2, 3, &[USER_MARK, 0x1003]);
    let after = opened(&file.bytes()).unwrap();
    assert_eq!(after.metrics, ["cpu-migrations", "cpu", "cpu-2"]);
}

#[test]
fn of_one_event_all_samples_are() {
    let mut file = File::new(&[(1, 0)]);
    file.mmap2(7, 1, [0x1000, 0x1000, 0], &[0; 24], "/a");
    file.sample(1, 7, 7, 2, 3, &[USER_MARK, 0x1001]);
    // No attribute has this id.
    file.sample(99, 7, 7, 3, 3, &[USER_MARK, 0x1002]);
    let after = opened(&file.bytes()).unwrap();
    assert_eq!(select(&after.store, "").samples(), 2);
    assert!(after.notes.is_empty(), "{:?}", after.notes);
}

#[test]
fn names_come_later_and_stay() {
    let mut store = opened(&two_processes().bytes()).unwrap().store;
    for id in store.frames_to_name(usize::MAX) {
        store.set_name(id, NameState::Named("f".into()));
    }
    let rows = select(&store, "").functions();
    assert!(
        rows.iter()
            .any(|row| &*row.name == "f" && &*row.module == "sh")
    );
}

#[test]
fn damaged_files_say_where() {
    let good = two_processes();
    let bytes = good.bytes();
    let mut cut = bytes.clone();
    cut.truncate(104 + 8 + 144 + good.records.len() / 2);
    let notes = opened(&cut).unwrap().notes;
    assert!(notes[0].contains("ended before"), "{notes:?}");
    let patched = |at: usize, to: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + to.len()].copy_from_slice(to);
        opened(&bytes)
    };
    for (at, to, why) in [
        (24, words(&[1 << 60]), "attributes are nowhere"),
        (16, words(&[3]), "no size"),
        (40, words(&[1 << 60]), "records are nowhere"),
        (104 + 8, pairs(&[(81, 0x8_0000)]), "perf"),
    ] {
        match patched(at, &to) {
            Err(error) => assert!(error.to_string().contains(why), "{why}: {error}"),
            Ok(after) => assert_eq!(why, "perf", "{:?}", after.notes),
        }
    }
    // A size of the records that the file does not have: what follows the records is read as one,
    // and is none.
    let endless = patched(48, &words(&[u64::MAX])).map(|_| ());
    let error = endless.unwrap_err().to_string();
    assert!(error.contains("shorter than its head"), "{error}");
    let mut vast = File::new(&[(1, 0)]);
    vast.sample(1, 7, 7, 1, 1, &[1, 2]);
    let at = vast.records.len() - 24;
    vast.records[at..at + 8].copy_from_slice(&words(&[1 << 60]));
    let error = opened(&vast.bytes()).unwrap_err().to_string();
    assert!(error.contains("too soon"), "{error}");
    let mut short = File::new(&[(1, 0)]);
    short.records.extend([9, 0, 0, 0, 0, 0, 4, 0]);
    let error = opened(&short.bytes()).unwrap_err().to_string();
    assert!(error.contains("shorter than its head"), "{error}");
    assert!(
        opened(b"2ELIFREP........")
            .unwrap_err()
            .to_string()
            .contains("big-endian")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damage_does_no_harm(changes in prop::collection::vec((0..100_000usize, any::<u8>()), 1..8)) {
        let mut bytes = two_processes().bytes();
        for (at, to) in changes {
            let at = at % bytes.len();
            bytes[at] = to;
        }
        if let Ok(after) = opened(&bytes) {
            select(&after.store, "").report();
        }
    }

    #[test]
    fn damaged_text_does_no_harm(at in 0..10_000usize, bytes in prop::collection::vec(any::<u8>(), 1..6)) {
        let mut text = TEXT_OF_PERF.as_bytes().to_vec();
        let at = at % (text.len() - 6);
        text[at..at + bytes.len()].copy_from_slice(&bytes);
        if let Ok(after) = opened(&text) {
            select(&after.store, "").report();
        }
    }
}

#[test]
fn text_of_perf_script_is_read() {
    let after = opened(TEXT_OF_PERF.as_bytes()).unwrap();
    assert_eq!(after.format, "perf script");
    assert_eq!(
        after.notes,
        ["1 samples are of other events than cpu-clock:u and were left out"]
    );
    let selection = select(&after.store, "");
    let wanted = "\
my [odd] prog;main;in1_[i];[kernel.kallsyms]+0xffffffff81000200_[k];do_syscall_64_[k] 1
my [odd] prog;std::f(int)::{lambda()#1}::operator()() const;main;in1_[i];__sin_fma 1
node;LazyCompile:*\u{fffd}[2J f.js:1_[j] 1
swapper;do_syscall_64_[k] 1
";
    assert_eq!(common::stacks(&selection), wanted);
    let rows = selection.functions();
    let main = rows.iter().find(|row| &*row.name == "main").unwrap();
    assert_eq!((main.file.as_deref(), main.line), (Some("my prog.c"), 5));
    assert_eq!(&*main.module_path, "/tmp/my prog");
    let (processes, threads) = selection.processes_and_threads();
    assert!(
        processes
            .iter()
            .any(|process| process.pid == 22010 && process.samples == 2)
    );
    assert!(threads.iter().any(|thread| thread.tid == 22011));
    assert_eq!(
        selection
            .cpus()
            .iter()
            .map(|row| row.cpu)
            .collect::<Vec<_>>(),
        [0, 3]
    );
    let info = after.store.view().info().clone();
    assert_eq!((info.rates.first_hz, &*info.metric.unit), (999, "samples"));
    assert_eq!(after.store.view().begin_ns(), Some(25_934_314_797_000));
}

/// The percentage that perf prints beside a name. Two symbols of the same name (a `@plt` of each
/// library) are two rows in perf's list, each of them rounded, and one function in ours.
#[derive(Debug, Default)]
struct Share {
    percent: f64,
    rows: u32,
}

impl Share {
    /// Half of the last printed digit (0.005) for each row, and a little more.
    fn may_be_off_by(&self) -> f64 {
        0.006 * f64::from(self.rows)
    }
}

fn shares(report: &str) -> BTreeMap<String, Share> {
    let lines = report.lines().filter(|line| !line.starts_with('#'));
    let rows = lines
        .filter_map(|line| line.trim().split_once('%'))
        .filter_map(|(percent, name)| Some((name.trim(), percent.trim().parse::<f64>().ok()?)));
    let mut shares: BTreeMap<String, Share> = BTreeMap::new();
    for (name, percent) in rows {
        let share = shares.entry(side_of(name).to_string()).or_default();
        share.percent += percent;
        share.rows += 1;
    }
    shares
}

/// Names the module for the comparison: kernel code outside of the kernel's image, such as a BPF
/// program, is in the kernel for us and unknown for perf.
fn side_of(module: &str) -> &str {
    match module {
        "[kernel.kallsyms]" | "[unknown]" => "the kernel, or unknown",
        other => other,
    }
}

#[test]
fn the_real_perf_counts_the_same() {
    compare_with_perf(&[]);
}

#[test]
fn the_real_perf_counts_the_same_in_what_it_packed() {
    compare_with_perf(&["-z"]);
}

/// Runs `perf report`, which adds up the shares of samples.
fn report(file: &str, by: &str) -> Option<String> {
    let flat = ["--stdio", "--no-children", "-g", "none"];
    perf(&[&["report", "-i", file], &flat[..], &["--sort", by]].concat())
}

fn compare_with_perf(options: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("perf.data");
    let file = path.to_str().unwrap();
    let burn = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; od -c /proc/kallsyms | head -c 9000000 >/dev/null";
    let record = ["record", "-q", "-B", "-N", "-e", "cpu-clock", "-F", "999"];
    let recorded = perf(
        &[
            &record[..],
            options,
            &["-g", "-o", file, "--", "sh", "-c", burn],
        ]
        .concat(),
    );
    if !options.is_empty() && recorded.is_some() {
        let header = perf(&["report", "-i", file, "--header-only"]);
        if !header.is_some_and(|header| header.contains("compressed :")) {
            return test_support::skip("perf.data with -z: the perf here does not pack");
        }
    }
    let Some(theirs) = recorded.and_then(|_| report(file, "dso")) else {
        return;
    };
    let after = opened(&std::fs::read(&path).unwrap()).unwrap();
    let selection = select(&after.store, "");
    assert!(selection.samples() > 50);
    let mut ours: BTreeMap<String, u64> = BTreeMap::new();
    for row in selection.functions() {
        *ours.entry(side_of(&row.module).to_string()).or_default() += row.self_samples;
    }
    compare(&shares(&theirs), &ours, selection.samples());

    let Some(text) = perf(&["script", "-i", file, "-F", "+pid"]) else {
        return;
    };
    let after = opened(text.as_bytes()).unwrap();
    let selection = select(&after.store, "");
    let mut ours: BTreeMap<String, u64> = BTreeMap::new();
    for row in selection.functions() {
        let side = if row.kind == FrameKind::Kernel {
            'k'
        } else {
            '.'
        };
        if row.name_state == profile::RowName::Named && !row.inlined {
            *ours.entry(format!("[{side}] {}", row.name)).or_default() += row.self_samples;
        }
    }
    let mut theirs = shares(&report(file, "sym").unwrap_or_default());
    // Functions without a name are called by their module in our list, and by addresses in perf's.
    theirs.retain(|name, _| ours.contains_key(name));
    assert!(theirs.len() > 3, "{ours:?}");
    ours.retain(|name, _| theirs.contains_key(name));
    compare(&theirs, &ours, selection.samples());
}

fn compare(theirs: &BTreeMap<String, Share>, ours: &BTreeMap<String, u64>, all: u64) {
    for (name, samples) in ours.iter().filter(|(_, samples)| **samples > 0) {
        let share = *samples as f64 * 100.0 / all as f64;
        let found = theirs
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not in {theirs:?}"));
        assert!(
            (share - found.percent).abs() < found.may_be_off_by(),
            "{name}: {share} here, {found:?} there"
        );
    }
}
