//! perf.data whose records perf packed (`-z`): the same as if they were not,
//! wherever the stream was cut into records.

use crate::common::perf_file::{File, two_processes, words};
use crate::common::{self, limits, select};
use profile::formats::{self, FormatError, Opened};
use proptest::prelude::*;
use std::path::Path;

const COMPRESSED: u32 = 81;
const COMPRESSED2: u32 = 83;

/// A frame of zstd without an end, as perf writes it. Its window is 128 KiB.
fn stream(records: &[u8], block_len: usize) -> Vec<u8> {
    let mut stream = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];
    for part in records.chunks(block_len) {
        // Blocks that are stored as they are.
        stream.extend(&((part.len() as u32) << 3).to_le_bytes()[..3]);
        stream.extend(part);
    }
    stream
}

fn packed(kind: u32, stream: &[u8], cuts: &[usize]) -> File {
    let mut file = two_processes();
    file.records.clear();
    let mut rest = stream;
    let mut add = |part: &[u8]| {
        let mut body = part.to_vec();
        if kind == COMPRESSED2 {
            body.resize(body.len().next_multiple_of(8), 0xff);
            body.splice(..0, words(&[part.len() as u64]));
        }
        File::record(&mut file.records, kind, 0, &body);
        // A record of another kind between any two.
        File::record(&mut file.records, 68, 0, &[]);
    };
    for cut in cuts {
        let (part, after) = rest.split_at(cut % (rest.len() + 1));
        add(part);
        rest = after;
    }
    rest.chunks(60_000).for_each(add);
    file
}

fn opened(file: &File) -> Result<Opened, FormatError> {
    formats::read(&file.bytes()[..], limits())
}

fn counted(opened: &Opened) -> String {
    common::stacks(&select(&opened.store, ""))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_packed_counts_the_same(
        cuts in prop::collection::vec(0..2000usize, 0..9),
        block_len in 1..900usize,
        is_new in any::<bool>(),
    ) {
        let plain = two_processes();
        let kind = if is_new { COMPRESSED2 } else { COMPRESSED };
        let file = packed(kind, &stream(&plain.records, block_len), &cuts);
        let after = opened(&file).unwrap();
        prop_assert!(after.notes.is_empty(), "{:?}", after.notes);
        prop_assert_eq!(counted(&after), counted(&opened(&plain).unwrap()));
    }

    #[test]
    fn damage_does_no_harm(changes in prop::collection::vec((0..100_000usize, any::<u8>()), 1..8)) {
        let records = two_processes().records;
        let mut stream = stream(&records, 300);
        for (at, to) in changes {
            let at = at % stream.len();
            stream[at] = to;
        }
        if let Ok(after) = opened(&packed(COMPRESSED, &stream, &[100])) {
            select(&after.store, "").report();
        }
    }
}

#[test]
fn frames_that_end_are_followed_by_others() {
    let records = two_processes().records;
    let (first, second) = records.split_at(records.len() / 2);
    let ended = [stream(first, 200), vec![1, 0, 0]].concat();
    let both = [ended, stream(second, 200)].concat();
    let file = packed(COMPRESSED, &both, &[7, 50]);
    if let Some(folder) = std::env::var_os("PROFTOP_SEEDS") {
        // The fuzz target starts from this file.
        std::fs::write(Path::new(&folder).join("packed.perf.data"), file.bytes()).unwrap();
    }
    let after = opened(&file).unwrap();
    assert_eq!(counted(&after), counted(&opened(&two_processes()).unwrap()));
}

#[test]
fn hostile_streams_are_refused() {
    let said = |stream: &[u8]| match opened(&packed(COMPRESSED, stream, &[])) {
        Ok(after) => after.notes.join(" "),
        Err(error) => error.to_string(),
    };
    let records = two_processes().records;
    let whole = stream(&records, 300);
    let cut = said(&whole[..whole.len() - 10]);
    assert!(cut.contains("ended before"), "{cut}");
    assert!(said(&[0; 16]).contains("cannot be unpacked"));
    // A window of 3.75 GiB.
    let vast = [0x28, 0xb5, 0x2f, 0xfd, 0, 21 << 3 | 7, 1, 0, 0];
    assert!(said(&vast).contains("cannot be unpacked"));
    // A packed record inside of packed records is ignored.
    let mut inner = Vec::new();
    File::record(&mut inner, COMPRESSED, 0, &whole[..48]);
    assert_eq!(
        counted(&opened(&packed(COMPRESSED, &stream(&inner, 99), &[])).unwrap()),
        ""
    );
}
