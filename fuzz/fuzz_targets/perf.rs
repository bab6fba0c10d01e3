//! perf.data and the text of perf script: whatever is in them, what is read can
//! be counted and written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use profile::formats::{self, Format};
use profile::{Cancel, Limits, Query};
use std::time::Duration;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        keep: Duration::from_secs(1 << 40),
        memory_bytes: 16 << 20,
    };
    let Ok(opened) = formats::read(bytes, limits) else {
        return;
    };
    let selection = opened.store.view().select(&Query::default(), &Cancel::new());
    let selection = selection.expect("nobody cancels it");
    selection.report();
    for format in [Format::Trace, Format::Svg, Format::Firefox] {
        let mut written = Vec::new();
        format.write(&selection, &mut written).expect("memory takes everything");
    }
});
