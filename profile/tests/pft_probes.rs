//! Counts of probes that are written to a recording and read again, whatever happens to the file.

use profile::formats::{FormatError, pft};
use profile::probes::{
    CallTally, ProbeAbout, ProbeEnd, ProbeFrame, ProbeLog, ProbeThread, ValueAbout, ValueTally,
};
use profile::{Limits, Store, TimeRange};
use proptest::prelude::*;
use test_support::Random;

const SECOND_NS: u64 = 1_000_000_000;

fn store() -> Store {
    Store::new(Limits::default())
}

fn read(file: &[u8]) -> Result<(Store, Vec<String>), FormatError> {
    pft::read(file, Limits::default())
}

/// A change of a log.
#[derive(Debug, Clone, Copy)]
enum Step {
    Place,
    Stack,
    Name,
    Count,
    Write,
    End,
}

fn step() -> impl Strategy<Value = (Step, u64)> {
    let step = prop_oneof![
        1 => Just(Step::Place),
        2 => Just(Step::Stack),
        2 => Just(Step::Name),
        4 => Just(Step::Count),
        2 => Just(Step::Write),
        1 => Just(Step::End),
    ];
    (step, any::<u64>())
}

fn about(number: u64) -> ProbeAbout {
    ProbeAbout {
        name: format!("work_{}", number % 9).into(),
        module: "postgres".into(),
        address: number,
        language: "c".into(),
        site: "entry".into(),
        whose: "postgres[7]".into(),
        copies: (number % 5) as u32,
        breakpoints: (number % 70) as u32,
        is_stepped: number & 1 != 0,
        is_timed: number & 2 != 0,
        repeats: number & 4 != 0,
        hit_ns: 1_200,
        floor_ns: 300,
        min_ns: number % 3 * 1_000,
        placed_ns: number % 100,
        values: (0..number % 3)
            .map(|value| ValueAbout {
                text: format!("arg{value}").into(),
                register: "rdi".into(),
            })
            .collect(),
    }
}

/// Makes random counts of a probe in one second, of the texts, stacks and threads that its record
/// has.
fn tally(log: &ProbeLog, probe: usize, number: u64) -> CallTally {
    let record = &log.probes()[probe];
    let count = |of: usize| (0..of as u32).map(|at| (at, number % 1_000 + 1)).collect();
    let values = record.about().values.iter().map(|_| ValueTally {
        unreadable: number % 4,
        texts: count(record.texts().len()),
    });
    CallTally {
        calls: number,
        returns: number / 2,
        strangers: number % 3,
        short: number % 7,
        others: number % 11,
        stacks: number % 13,
        stacks_lost: number % 2,
        values_lost: number % 5,
        missed: number % 3,
        sum_ns: number.wrapping_mul(1_000),
        max_ns: number % 1_000_000,
        cpu_samples: number % 99,
        cpu_ns: number % 1_000,
        buckets: (0..number % 9)
            .map(|at| ((1_000 << at, 1_250 << at), at + 1))
            .collect(),
        values: values.collect(),
        callers: count(record.stacks().len()),
        threads: count(record.threads().len()),
    }
}

/// Makes a change to a log, if the log has what the change needs.
fn take(log: &mut ProbeLog, step: Step, number: u64) {
    let probe = match log.probes().len() {
        0 => None,
        probes => Some(number as usize % probes),
    };
    match (step, probe) {
        (Step::Place, _) => _ = log.add_probe(about(number)),
        (Step::Stack, Some(probe)) => {
            let name = (number & 1 != 0).then(|| "main".into());
            let module = "libc.so.6".into();
            let address = number;
            let frame = ProbeFrame {
                module,
                address,
                name,
            };
            let frame = log.add_frame(frame).unwrap();
            log.add_stack(probe, &[frame, number as u32 % (frame + 1)])
                .unwrap();
            let comm = format!("worker-{}", number % 4).into();
            log.add_thread(
                probe,
                ProbeThread {
                    comm,
                    tid: number as u32,
                },
            );
            log.add_text(probe, format!("\"{number}\"").into());
        }
        (Step::Name, _) if !log.frames().is_empty() => {
            let frame = number as usize % log.frames().len();
            // A frame is named only once.
            if log.frames()[frame].name.is_none() {
                log.set_frame_name(frame as u32, format!("f{}", number % 5).into());
            }
        }
        (Step::Count, Some(probe)) => {
            let tally = tally(log, probe, number);
            log.count(probe, number % 600, tally);
        }
        (Step::End, Some(probe)) if log.probes()[probe].end().is_none() => {
            let (at_ns, why) = (number, "its time was over".into());
            log.set_end(probe, ProbeEnd { at_ns, why });
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// The number of blocks in which it is written makes no difference.
    #[test]
    fn what_is_written_while_it_grows_comes_back(
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let mut store = store();
        let mut file = Vec::new();
        let mut writer = pft::Writer::new(&mut file).unwrap();
        for (step, number) in steps {
            take(store.probes_mut(), step, number);
            if let Step::Write = step {
                writer.append(&store.view(), None).unwrap();
            }
        }
        writer.append(&store.view(), None).unwrap();
        writer.finish(&store.view()).unwrap();
        let (again, notes) = read(&file).unwrap();
        prop_assert!(notes.is_empty(), "{:?}", notes);
        let (again, expected) = (again.view(), store.view());
        prop_assert_eq!(again.probes(), expected.probes());
        // Written in one piece, it is the same.
        let mut whole = Vec::new();
        pft::write(&again, &mut whole).unwrap();
        let second = read(&whole).unwrap().0.view();
        prop_assert_eq!(second.probes(), expected.probes());
    }
}

/// A log with some of everything that a log can have.
fn some() -> Store {
    let mut store = store();
    let log = store.probes_mut();
    for number in [3, 8] {
        take(log, Step::Place, number);
    }
    for number in 0..40 {
        take(log, Step::Stack, number * 7);
        take(log, Step::Count, number);
    }
    take(log, Step::End, 1);
    store.begin(0);
    store
}

#[test]
fn without_any_sample_it_has_the_time_of_what_was_counted() {
    let store = some();
    let mut file = Vec::new();
    pft::write(&store.view(), &mut file).unwrap();
    let (again, _) = read(&file).unwrap();
    let view = again.view();
    assert_eq!((view.samples(), view.begin_ns()), (0, Some(0)));
    assert_eq!(view.end_ns(), Some(40 * SECOND_NS));
    let calls = |range| -> u64 {
        let probes = view.probes().probes().iter();
        probes.map(|probe| probe.total(range).calls).sum()
    };
    assert_eq!(calls(TimeRange::ALL), (0..40).sum::<u64>());
    let window = TimeRange::between(10 * SECOND_NS, 20 * SECOND_NS);
    assert_eq!(calls(window), (10..20).sum::<u64>());
}

/// Returns a file with the contents of the only block of a small file, unpacked and stored as they
/// are.
fn stored(raw: &[u8]) -> Vec<u8> {
    let mut file = pft::MAGIC.to_vec();
    file.extend_from_slice(&[2, 0, 4, 0]);
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

/// A section of probes with these records.
fn section(records: &[(u8, &[u8])]) -> Vec<u8> {
    let mut contents = Vec::new();
    for (kind, record) in records {
        contents.extend([*kind, record.len() as u8]);
        contents.extend_from_slice(record);
    }
    let mut raw = vec![19, contents.len() as u8];
    raw.extend(contents);
    stored(&raw)
}

/// The record of a probe that has no name and reads no values.
const PROBE: (u8, &[u8]) = (1, &[0; 14]);

#[test]
fn what_cannot_be_is_refused_with_a_sentence() {
    let fine = read(&section(&[PROBE, (2, &[0, 5, 0]), (4, &[0, 0, 0])])).unwrap();
    assert_eq!(fine.0.view().probes().probes()[0].stacks().len(), 1);
    let mut counts = vec![0; 18];
    let fine = read(&section(&[PROBE, (7, &counts)])).unwrap();
    assert!(
        fine.1.len() == 1 && fine.1[0].contains("not ended"),
        "{:?}",
        fine.1
    );
    // A caller that does not exist.
    counts.truncate(15);
    counts.extend([1, 3, 3, 0, 0]);
    for records in [
        &[(4, &[0, 0][..])][..],
        &[PROBE, (4, &[0, 1])],
        &[PROBE, (4, &[7])],
        &[(3, &[0, 0])],
        &[PROBE, (6, &[0, 9])],
        &[PROBE, (7, &counts)],
        &[PROBE, (7, &[0, 0, 0])],
        // More values than the probe has.
        &[PROBE, (7, &[&[0; 17][..], &[1, 0, 0]].concat())],
        &[(1, &[0; 13])],
        &[(8, &[0, 0, 0])],
    ] {
        let (_, notes) = read(&section(records)).unwrap();
        assert!(notes[0].contains("damaged"), "{records:?}: {notes:?}");
    }
    // Another kind of record comes from a newer version.
    let (_, notes) = read(&section(&[(77, &[1, 2, 3]), PROBE])).unwrap();
    assert!(notes.iter().any(|note| note.contains("newer")), "{notes:?}");
}

/// Any change of the contents of a block, with a correct checksum.
#[test]
fn damaged_records_never_panic_and_can_be_written_again() {
    let mut random = Random::new(19);
    // Texts of a probe and its records are small numbers, so that many of the changed numbers are
    // valid.
    let mut raw = Vec::new();
    let strings: Vec<u8> = (0..9).flat_map(|at| [1, b'a' + at]).collect();
    raw.extend([2, strings.len() as u8]);
    raw.extend(strings);
    let mut records: Vec<u8> = Vec::new();
    for (kind, record) in [
        PROBE,
        (2, &[1, 5, 0]),
        (3, &[0, 2]),
        (4, &[0, 0, 0]),
        (5, &[0, 3, 7]),
        (6, &[0, 4]),
        (1, &[1, 2, 3, 4, 5, 64, 1, 2, 3, 9, 9, 9, 9, 1, 6, 7]),
        (6, &[1, 4]),
        (
            7,
            &[
                0, 4, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1, 1, 1, 1, 5, 5, 9, 1, 0, 1, 1, 0, 1, 0,
            ],
        ),
        (8, &[0, 9, 8]),
    ] {
        records.extend([kind, record.len() as u8]);
        records.extend_from_slice(record);
    }
    raw.extend([19, records.len() as u8]);
    raw.extend(records);
    let (fine, notes) = read(&stored(&raw)).unwrap();
    assert_eq!(notes.len(), 1, "{notes:?}");
    let view = fine.view();
    let probes = view.probes().probes();
    assert_eq!(probes[0].total(TimeRange::ALL).callers, [(0, 1)].into());
    assert!(probes[0].end().is_some() && probes[1].texts().len() == 1);
    let mut whole = 0;
    for _ in 0..400 {
        let mut changed = raw.clone();
        for _ in 0..=random.below(2) {
            let at = 20 + random.below(changed.len() as u64 - 20) as usize;
            changed[at] = random.below(256) as u8;
        }
        let Ok((read_back, _)) = read(&stored(&changed)) else {
            continue;
        };
        whole += 1;
        let mut again = Vec::new();
        pft::write(&read_back.view(), &mut again).unwrap();
        let (second, notes) = read(&again).unwrap();
        assert!(notes.is_empty(), "{notes:?}");
        assert_eq!(second.view().probes(), read_back.view().probes());
    }
    assert!(whole > 20, "{whole}");
}
