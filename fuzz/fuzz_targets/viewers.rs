//! JSON of viewers: what is read can be written for them again, and then has
//! as many samples.
#![no_main]

use libfuzzer_sys::fuzz_target;
use profile::formats::{self, Format};
use profile::{Cancel, Limits, Query, Selection, Store};
use std::time::Duration;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        keep: Duration::from_secs(1 << 40),
        memory_bytes: 16 << 20,
    };
    let Ok(opened) = formats::read(bytes, limits) else {
        return;
    };
    let selection = select(&opened.store);
    for format in [Format::Firefox, Format::Speedscope] {
        let mut again = Vec::new();
        format
            .write(&selection, &mut again)
            .expect("memory takes everything");
        let again = formats::read(&again[..], limits).expect("we wrote it");
        assert!(again.notes.is_empty(), "{:?}", again.notes);
        // Units of time are fractions there.
        let counts = opened.store.view().info().metric == profile::Metric::default();
        if counts && selection.samples() < 1 << 40 && again.store.stats().refused_memory == 0 {
            assert_eq!(select(&again.store).samples(), selection.samples());
        }
    }
});

fn select(store: &Store) -> Selection {
    let selection = store.view().select(&Query::default(), &Cancel::new());
    selection.expect("nobody cancels it")
}
