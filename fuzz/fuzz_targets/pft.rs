//! Recordings: as files, and as contents of a block whose checksum is right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use profile::formats::pft;
use profile::{Cancel, Limits, Query};
use std::time::Duration;

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    let mut file = pft::MAGIC.to_vec();
    file.extend_from_slice(&[1, 0, 0, 0]);
    let len = (bytes.len() as u32).to_le_bytes();
    let mut crc = flate2::Crc::new();
    crc.update(&[0; 4]);
    crc.update(&len);
    crc.update(bytes);
    for word in [len, len, crc.sum().to_le_bytes(), [0; 4]] {
        file.extend_from_slice(&word);
    }
    file.extend_from_slice(bytes);
    read(&file);
});

fn read(file: &[u8]) {
    let limits = Limits {
        keep: Duration::from_secs(1 << 40),
        memory_bytes: 16 << 20,
    };
    let Ok((store, _)) = pft::read(file, limits) else {
        return;
    };
    let view = store.view();
    let selection = view.select(&Query::default(), &Cancel::new());
    let report = selection.expect("nobody cancels it").report();
    let own: u64 = report.functions.iter().map(|row| row.self_samples).sum();
    assert_eq!(own, report.samples);
    // What was read can be written, and read again as the same.
    let mut again = Vec::new();
    pft::write(&view, &mut again).expect("memory takes everything");
    let (second, notes) = pft::read(&again[..], limits).expect("we wrote it");
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(second.view().samples(), view.samples());
}
