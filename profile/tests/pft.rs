//! `.pft`: a store that is written and read again is the same, and of damaged files the undamaged
//! parts are read.

use profile::formats::{FormatError, folded, pft};
use profile::{
    Busy, Cancel, Ending, Frame, FrameKind, Host, Info, Limits, ModuleId, NameState, NewSample,
    NoName, ProcessDetails, ProcessId, Query, Rates, Report, SourceFrame, Store, View,
};
use proptest::prelude::*;
use test_support::Random;

#[derive(Debug, Clone)]
struct Given {
    step: u64,
    cpu: u16,
    process: u32,
    tid: u32,
    frames: Vec<u64>,
    ending: Ending,
    weight: u64,
}

fn given() -> impl Strategy<Value = Given> {
    let who = (0..60u64, 0..4u16, 0..3u32, 0..5u32);
    let frames = prop::collection::vec(0..40u64, 0..9);
    let weight = prop_oneof![9 => Just(1u64), 1 => 1..1000u64];
    (who, frames, 0..Ending::ALL.len(), weight).prop_map(
        |((step, cpu, process, tid), frames, ending, weight)| Given {
            step,
            cpu,
            process,
            tid,
            frames,
            ending: Ending::ALL[ending],
            weight,
        },
    )
}

fn frame(address: u64) -> Frame {
    Frame {
        module: ModuleId((address % 3) as u32),
        address: address << 40,
        kind: [
            FrameKind::Kernel,
            FrameKind::User,
            FrameKind::Jit,
            FrameKind::Python,
        ][address as usize % 4],
    }
}

fn limits() -> Limits {
    Limits {
        keep: std::time::Duration::MAX,
        memory_bytes: 1 << 30,
    }
}

fn empty() -> Store {
    let mut store = Store::new(limits());
    for (id, name) in [(0, "[kernel]"), (1, "libc.so.6"), (2, "postgres")] {
        store.add_module(ModuleId(id), name, &format!("/usr/lib/{name}"));
        store.set_build_id(ModuleId(id), &[id as u8; 20]);
    }
    for id in 0..3 {
        store.add_process(ProcessId(id), id + 100, &format!("proc{id}"));
    }
    let cgroup = Some("/system.slice/pg.service".into());
    let user = Some("ann".into());
    store.set_process_details(
        ProcessId(1),
        ProcessDetails {
            cgroup,
            user,
            ..ProcessDetails::default()
        },
    );
    store.set_info(Info {
        host: Host {
            name: "db-01".into(),
            sampled_cpus: vec![0, 2, 3],
            ..Host::default()
        },
        rates: Rates::always(99),
        notes: vec!["a note".into()],
        ..Info::default()
    });
    store
}

fn feed(store: &mut Store, clock: &mut u64, sample: &Given) {
    *clock += sample.step;
    let frames: Vec<Frame> = sample.frames.iter().map(|a| frame(*a)).collect();
    assert!(store.add_sample(NewSample {
        time_ns: *clock * 10_000_000,
        cpu: sample.cpu,
        process: ProcessId(sample.process),
        tid: sample.tid,
        comm: "worker",
        frames: &frames,
        kernel_frames: usize::from(sample.tid == 2),
        ending: sample.ending,
        weight: sample.weight,
    }));
}

fn name_some(store: &mut Store, limit: usize) {
    for id in store.frames_to_name(limit) {
        let address = store.frame(id).expect("asked for").address >> 40;
        store.set_name(
            id,
            match address % 5 {
                0 => NameState::Unnamed(NoName::Stripped),
                1 => NameState::UnnamedIn {
                    reason: NoName::FileGone,
                    start: address << 40,
                },
                _ => NameState::Named(format!("f{}", address / 3).into()),
            },
        );
        if address.is_multiple_of(4) {
            let link = |function, line| SourceFrame {
                function,
                file: "src/a.c",
                line,
            };
            store.set_source(id, &[link("inl", 7), link("f2", 9)]);
        }
    }
}

fn report(view: &View) -> Report {
    let selection = view.select(&Query::default(), &Cancel::new());
    selection.expect("not cancelled").report()
}

/// Returns a report as text, without what depends on the order of numbers.
fn text(view: &View) -> Vec<String> {
    let report = report(view);
    let mut lines: Vec<String> = report
        .functions
        .into_iter()
        .map(|mut row| {
            // A function is identified by its first frame, which may be another one.
            row.id = profile::FrameId(0);
            (row.address, row.kind) = (0, FrameKind::User);
            (row.file, row.line) = (None, 0);
            format!("{row:?}")
        })
        .collect();
    for mut row in report.processes {
        // Of two functions that are equally frequent, the one with the lower number is on top.
        (row.id, row.top_function) = (ProcessId(0), None);
        lines.push(format!("{row:?}"));
    }
    for mut row in report.threads {
        (row.process, row.top_function) = (ProcessId(0), None);
        lines.push(format!("{row:?}"));
    }
    lines.sort();
    let selection = view.select(&Query::default(), &Cancel::new()).unwrap();
    let mut stacks = Vec::new();
    folded::write(&selection, &mut stacks).unwrap();
    lines.push(String::from_utf8(stacks).unwrap());
    lines.push(format!("{:?} {:?}", report.completeness, report.window));
    lines.push(format!("{:?} {:?}", view.info(), selection.cgroups()));
    lines.push(format!("{:?}", view.busy()));
    lines
}

fn read(bytes: &[u8]) -> Result<(Store, Vec<String>), FormatError> {
    pft::read(bytes, limits())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_written_while_it_grows_comes_back(
        samples in prop::collection::vec(given(), 1..80),
        every in 1..20usize,
    ) {
        let mut store = empty();
        let mut clock = 100_000;
        let mut file = Vec::new();
        let mut writer = pft::Writer::new(&mut file).unwrap();
        for (at, sample) in samples.iter().enumerate() {
            feed(&mut store, &mut clock, sample);
            store.set_busy(Busy { busy_ms: 7 * clock, of_ms: 8 * clock });
            if at % every == 0 {
                name_some(&mut store, 3);
                writer.append(&store.view(), Some(clock * 10_000_000)).unwrap();
            }
        }
        name_some(&mut store, usize::MAX);
        store.process_exited(ProcessId(1));
        writer.append(&store.view(), None).unwrap();
        writer.finish(&store.view()).unwrap();
        prop_assert_eq!(writer.samples(), samples.len() as u64);
        let (again, notes) = read(&file).unwrap();
        prop_assert!(notes.is_empty(), "{:?}", notes);
        prop_assert_eq!(text(&store.view()), text(&again.view()));

        // Writing and reading it once more changes nothing.
        let mut second = Vec::new();
        pft::write(&again.view(), &mut second).unwrap();
        let (third, _) = read(&second).unwrap();
        prop_assert_eq!(text(&again.view()), text(&third.view()));
    }

    #[test]
    fn a_file_cut_anywhere_is_whole_up_to_there(
        samples in prop::collection::vec(given(), 1..40),
        cut in 0..1000usize,
    ) {
        let file = file(&samples);
        let cut = &file[..file.len() * cut / 1000];
        match read(cut) {
            Ok((store, notes)) => {
                prop_assert!(notes.len() == 1, "it must be said: {:?}", notes);
                prop_assert!(store.stats().samples <= samples.len() as u64);
            }
            Err(error) => prop_assert!(matches!(error, FormatError::Unknown), "{}", error),
        }
    }

    #[test]
    fn damage_is_noticed(
        samples in prop::collection::vec(given(), 1..40),
        at in 0..10_000usize,
        bit in 0..8,
    ) {
        let mut file = file(&samples);
        let at = at % file.len();
        file[at] ^= 1u8 << bit;
        if let Ok((_, notes)) = read(&file) {
            // A change of the minor version has no effect, so it need not be noticed.
            prop_assert!(!notes.is_empty() || (10..12).contains(&at), "byte {}", at);
        }
    }

    #[test]
    fn random_bytes_never_panic(raw in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&raw);
        let _ = read(&stored_block(&raw));
    }
}

/// A file with one block of these contents, with a correct checksum.
fn stored_block(raw: &[u8]) -> Vec<u8> {
    let mut file = pft::MAGIC.to_vec();
    file.extend_from_slice(&[1, 0, 0, 0]);
    let mut crc = flate2::Crc::new();
    crc.update(&0u32.to_le_bytes());
    crc.update(&(raw.len() as u32).to_le_bytes());
    crc.update(raw);
    for word in [raw.len() as u32, raw.len() as u32, crc.sum(), 0] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    file.extend_from_slice(raw);
    file
}

fn file(samples: &[Given]) -> Vec<u8> {
    let mut store = empty();
    // Long after the store's first second, as on the clock of any machine.
    let mut clock = 100_000;
    samples
        .iter()
        .for_each(|sample| feed(&mut store, &mut clock, sample));
    name_some(&mut store, usize::MAX);
    let mut file = Vec::new();
    pft::write(&store.view(), &mut file).unwrap();
    file
}

#[test]
fn what_came_after_the_end_is_not_written() {
    let mut store = empty();
    let mut clock = 0;
    // Samples at 1.0, 1.5, 2.0 and 2.01 seconds, and later ones.
    for step in [100, 50, 50, 1, 70, 100] {
        let given = Given {
            step,
            cpu: 0,
            process: 1,
            tid: 1,
            frames: vec![1, 2],
            ending: Ending::Root,
            weight: 1,
        };
        feed(&mut store, &mut clock, &given);
    }
    let view = store.view();
    let mut file = Vec::new();
    let mut writer = pft::Writer::new(&mut file).unwrap();
    writer.append(&view, Some(2_000_000_000)).unwrap();
    assert_eq!(writer.samples(), 2);
    writer.append_last(&view, 2_009_999_999).unwrap();
    writer.finish(&view).unwrap();
    assert_eq!(writer.samples(), 3);
    let (store, notes) = read(&file).unwrap();
    assert_eq!((store.stats().samples, notes), (3, Vec::new()));
    // The end is kept, because the duration is what rates are divided by; also if the file is
    // written once more.
    assert_eq!(store.view().end_ns(), Some(2_009_999_999));
    let mut again = Vec::new();
    pft::write(&store.view(), &mut again).unwrap();
    let (mut again, _) = read(&again).unwrap();
    assert_eq!(again.view().end_ns(), Some(2_009_999_999));
    assert_eq!(profile_seconds(&again.view()), 1.009_999_999);
    // Processes without further samples were idle until the new end.
    again.end(7_500_000_000);
    assert_eq!(again.view().end_ns(), Some(7_500_000_000));
    // An end that is before the last sample is ignored.
    again.end(1_700_000_000);
    assert_eq!(again.view().end_ns(), Some(3_000_000_000));
}

fn profile_seconds(view: &View) -> f64 {
    view.select(&Query::default(), &Cancel::new())
        .unwrap()
        .window()
        .seconds()
}

#[test]
fn what_is_no_pft_is_refused_and_newer_ones_say_so() {
    assert!(matches!(read(b"hello"), Err(FormatError::Unknown)));
    assert!(matches!(read(&[0; 100]), Err(FormatError::Unknown)));
    let mut file = file(&[]);
    file[8] = 9;
    assert!(matches!(read(&file), Err(FormatError::Newer(9, 2))));
}

/// A file that a proftop recorded and counted that wrote version 1.
#[test]
fn files_of_version_1_are_read() {
    let file = include_bytes!("files/version-1.pft");
    assert_eq!(file[8], 1);
    let (store, notes) = read(file).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    let before = store.view();
    let selection = before.select(&Query::default(), &Cancel::new()).unwrap();
    let mut stacks = Vec::new();
    folded::write(&selection, &mut stacks).unwrap();
    let wanted = include_str!("files/version-1.folded");
    assert_eq!(String::from_utf8(stacks).unwrap(), wanted);

    let mut again = Vec::new();
    pft::write(&before, &mut again).unwrap();
    assert_eq!(again[8], 2);
    let (after, _) = read(&again).unwrap();
    for (a, b) in text(&before).iter().zip(text(&after.view())) {
        assert_eq!(*a, b);
    }
    assert!(again.len() < file.len() * 3 / 4, "{}", again.len());
}

/// Small blocks are one stream, also if a large block comes between them.
#[test]
fn large_blocks_may_come_between_small_ones() {
    let mut store = empty();
    let mut file = Vec::new();
    let mut writer = pft::Writer::new(&mut file).unwrap();
    let mut sizes = Vec::new();
    for (second, samples) in (0..).zip([30, 40_000, 30, 20, 50_000, 10]) {
        for n in 0..samples as u64 {
            let frames = [n, n / 7, second].map(|n| frame(n * 2654435761 % 60_000));
            assert!(store.add_sample(NewSample {
                time_ns: second * 1_000_000_000,
                cpu: 0,
                process: ProcessId(0),
                tid: 1,
                comm: "worker",
                frames: &frames,
                kernel_frames: 0,
                ending: Ending::Root,
                weight: 1,
            }));
        }
        let before = writer.bytes();
        writer.append(&store.view(), None).unwrap();
        sizes.push(writer.bytes() - before);
    }
    writer.finish(&store.view()).unwrap();
    assert!(sizes[1] > 90_000 && sizes[2] < 1000, "{sizes:?}");
    let (again, notes) = read(&file).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    for (a, b) in text(&store.view()).iter().zip(text(&again.view())) {
        assert_eq!(*a, b);
    }
}

#[test]
fn parts_of_a_newer_version_are_left_out() {
    let (store, notes) = read(&stored_block(&[77, 2, 1, 1, 11, 1, 0])).unwrap();
    assert_eq!(store.stats().samples, 0);
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn cpus_that_were_busier_than_they_could_be_were_busy_all_the_time() {
    let mut store = empty();
    let said = Busy {
        busy_ms: u64::MAX,
        of_ms: 3,
    };
    store.set_busy(said);
    let mut file = Vec::new();
    pft::write(&store.view(), &mut file).unwrap();
    let (again, notes) = read(&file).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(again.view().busy(), said);
    assert_eq!(said.percent(), Some(100.0));
    assert_eq!(said.and(said).percent(), Some(100.0));
    assert_eq!(Busy::default().percent(), None);
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    for raw in [
        // A thread of a process that does not exist.
        &[5, 3, 9, 1, 0][..],
        // A stack that shares frames with a stack that does not exist.
        &[7, 2, 5, 0],
        // Samples of which only the number is there.
        &[10, 10, 0, 200, 1, 0, 0, 0, 0, 0, 0, 0],
        // A sample of a stack that does not exist.
        &[5, 0, 16, 14, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 9, 0],
        // 2^60 strings.
        &[2, 200, 200, 200, 200, 200, 200, 200, 200, 1],
        // A run of frames in a module that does not exist.
        &[12, 5, 3, 0, 0, 1, 9],
        // A stack that shares frames with one that does not exist, and one of frames that do not
        // exist.
        &[13, 4, 1, 2, 5, 0],
        &[13, 5, 1, 2, 0, 1, 7],
        // Numbers of nine bytes.
        &[13, 4, 9, 2, 0, 0],
        // The name of a frame, and a name in a string, that do not exist.
        &[14, 6, 1, 5, 1, 0, 1, 0],
        &[14, 6, 1, 0, 1, 0, 1, 9],
        // A source location with more inlined functions than are possible.
        &[15, 7, 1, 0, 2, 200, 200, 0, 0],
    ] {
        let (_, notes) = read(&stored_block(raw)).unwrap();
        assert!(notes[0].contains("damaged"), "{raw:?}: {notes:?}");
    }
}

#[test]
fn a_block_that_unpacks_to_more_than_it_says_is_refused() {
    use std::io::Write as _;
    let mut packed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&vec![0; 2 << 20]).unwrap();
    let packed = packed.finish().unwrap();
    let mut file = pft::MAGIC.to_vec();
    file.extend_from_slice(&[1, 0, 0, 0]);
    let mut crc = flate2::Crc::new();
    crc.update(&1u32.to_le_bytes());
    crc.update(&100u32.to_le_bytes());
    crc.update(&packed);
    for word in [packed.len() as u32, 100, crc.sum(), 1] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    file.extend_from_slice(&packed);
    assert!(matches!(read(&file), Err(FormatError::Damaged(_))));
}

#[test]
fn folded_stacks_come_back() {
    let text = "\
python;main;[stopped: read_fault];x 1
python;main;copy_[k] 5
python;main;inner_[j] 7
ruby 2
";
    let store = folded::read(text.as_bytes(), limits()).unwrap();
    let view = store.view();
    let selection = view.select(&Query::default(), &Cancel::new()).unwrap();
    assert_eq!(selection.samples(), 15);
    let mut again = Vec::new();
    folded::write(&selection, &mut again).unwrap();
    let expected = "\
python;[stopped: read_fault];main;x 1
python;main;copy_[k] 5
python;main;inner_[j] 7
ruby;[no stack] 2
";
    assert_eq!(String::from_utf8(again).unwrap(), expected);
    let refused = folded::read("a 9007199254740993".as_bytes(), limits());
    assert!(matches!(refused, Err(FormatError::TooLarge(_))));
    for bad in ["a;b", "a;b x"] {
        let refused = folded::read(bad.as_bytes(), limits());
        assert!(matches!(refused, Err(FormatError::Unknown)), "{bad}");
        // After a line that was read, such a line makes it a damaged file.
        let later = format!("a;b 5\n{bad}");
        let refused = folded::read(later.as_bytes(), limits());
        assert!(matches!(refused, Err(FormatError::Damaged(_))), "{bad}");
    }
}

#[test]
fn folded_lines_of_odd_names_are_read_back() {
    let text = ";a;b 5\n\\x23c;a 2\n";
    let store = folded::read(text.as_bytes(), limits()).unwrap();
    let selection = store
        .view()
        .select(&Query::default(), &Cancel::new())
        .unwrap();
    let mut again = Vec::new();
    folded::write(&selection, &mut again).unwrap();
    assert_eq!(String::from_utf8(again).unwrap(), text);
    // A first name with the character that begins a comment must not become one.
    let store = folded::read(";#a;b 5\n".as_bytes(), limits()).unwrap();
    let selection = store
        .view()
        .select(&Query::default(), &Cancel::new())
        .unwrap();
    let mut line = Vec::new();
    folded::write(&selection, &mut line).unwrap();
    assert_eq!(String::from_utf8(line).unwrap(), ";#a;b 5\n");
}

/// Returns the length of the contents of each block of a file, from the blocks' headers.
fn block_lengths(file: &[u8]) -> Vec<usize> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let mut lengths = Vec::new();
    let mut at = pft::MAGIC.len() + 4;
    while at < file.len() {
        let (stored, raw) = (word(at), word(at + 4));
        lengths.push(raw);
        at += 16 + stored;
    }
    assert_eq!(at, file.len(), "the last block is whole");
    lengths
}

#[test]
fn many_deep_stacks_of_one_second_become_several_blocks() {
    // All samples of a file without times are in one second.
    let mut random = Random::new(3);
    let mut text = String::new();
    for _ in 0..10_000 {
        for _ in 0..200 {
            text += &format!("f{};", random.below(5_000));
        }
        text += "leaf 3\n";
    }
    let store = folded::read(text.as_bytes(), limits()).expect("it is read");
    let mut file = Vec::new();
    pft::write(&store.view(), &mut file).unwrap();
    // Readers refuse blocks above 16 MiB: all of these stacks together are 4 MiB.
    let lengths = block_lengths(&file);
    assert!(lengths.iter().all(|len| *len < 2 << 20), "{lengths:?}");
    let (again, notes) = read(&file).expect("it is read again");
    assert_eq!((again.stats().samples, notes), (10_000, Vec::new()));
}
