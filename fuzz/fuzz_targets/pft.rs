//! Recordings: as files, and as contents of a block whose checksum is right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use profile::formats::pft::{self, Machine, Reader};
use profile::machines::Machines;
use profile::{Cancel, Limits, Query, View};
use std::time::Duration;

/// How blocks are packed: as they are, and as a piece of the file's stream.
const STORED: u32 = 0;
const STREAMED: u32 = 2;

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    read(&file(STORED, bytes.len() as u32, bytes));
    if let Some((len, packed)) = bytes.split_first_chunk() {
        read(&file(STREAMED, u16::from_le_bytes(*len).into(), packed));
    }
});

fn file(codec: u32, raw_len: u32, contents: &[u8]) -> Vec<u8> {
    let mut file = pft::MAGIC.to_vec();
    file.extend_from_slice(&[2, 0, 0, 0]);
    let mut crc = flate2::Crc::new();
    crc.update(&codec.to_le_bytes());
    crc.update(&raw_len.to_le_bytes());
    crc.update(contents);
    for word in [contents.len() as u32, raw_len, crc.sum(), codec] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    file.extend_from_slice(contents);
    file
}

const LIMITS: Limits = Limits {
    keep: Duration::from_secs(1 << 40),
    memory_bytes: 16 << 20,
};

fn check(view: &View) {
    let selection = view.select(&Query::default(), &Cancel::new());
    let report = selection.expect("nobody cancels it").report();
    let own: u64 = report.functions.iter().map(|row| row.self_samples).sum();
    assert_eq!(own, report.samples);
}

/// Reads it as what two machines send.
fn read_beside(file: &[u8]) {
    let mut machines = Machines::new(2, LIMITS, 1_000);
    for (number, host) in (0..).zip(["a", "b"]) {
        let machine = Machine {
            host: host.into(),
            number,
            ahead_ms: i64::from(file.len() as u8) - 100,
        };
        let Ok(mut reader) = Reader::new_beside(file, machine) else {
            return;
        };
        let number = number as usize;
        while matches!(reader.wait_for_block(), Ok(true))
            && matches!(machines.add_block(number, &mut reader, 1 << 62), Ok(true))
        {}
    }
    check(&machines.view());
}

fn read(file: &[u8]) {
    read_beside(file);
    let Ok((store, _)) = pft::read(file, LIMITS) else {
        return;
    };
    let view = store.view();
    check(&view);
    // What was read can be written, and read again as the same.
    let mut again = Vec::new();
    pft::write(&view, &mut again).expect("memory takes everything");
    let (second, notes) = pft::read(&again[..], LIMITS).expect("we wrote it");
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(second.view().samples(), view.samples());
    let probes = |view: &profile::View| view.probes().probes().len();
    assert_eq!(probes(&second.view()), probes(&view));
}
