//! A table that may have been written by anybody: every look-up ends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbolize::LinkAddr;
use symbolize::table::{CHAIN_MAX, Table};

/// What the header is summed by would stop every change of it.
const SUM: std::ops::Range<usize> = 208..212;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    if let Some(header) = bytes.get_mut(..256) {
        header[SUM].fill(0);
        let sum = crc32fast::hash(header);
        header[SUM].copy_from_slice(&sum.to_le_bytes());
    }
    let Ok(table) = Table::from_bytes(bytes) else {
        return;
    };
    _ = (table.key(), table.source());
    for addr in (0..0x3000).step_by(61).chain([u64::MAX]).map(LinkAddr) {
        let frames = table.find(addr).map(|frame| frame.path().len());
        assert!(frames.count() <= CHAIN_MAX);
        _ = table.symbol(addr);
        _ = table.segments().is_executable(addr);
    }
});
