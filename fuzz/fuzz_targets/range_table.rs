//! A table that may have been written by anybody: every look-up ends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbolize::LinkAddr;
use symbolize::table::{CHAIN_MAX, Table};

fuzz_target!(|bytes: &[u8]| {
    // Of what is in memory no sum is checked, so that nothing stops here.
    let Ok(table) = Table::from_bytes(bytes.to_vec()) else {
        return;
    };
    _ = (table.key(), table.source(), table.symbols().count());
    for addr in (0..0x3000).step_by(61).chain([u64::MAX]).map(LinkAddr) {
        let frames = table.find(addr).map(|frame| frame.path().len());
        assert!(frames.count() <= CHAIN_MAX);
        _ = table.symbol(addr);
        _ = table.segments().is_executable(addr);
    }
});
