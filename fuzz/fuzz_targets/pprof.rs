//! pprof messages, without their gzip: what is read can be written, and weighs
//! the same when it is read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use profile::formats::pprof;
use profile::{Cancel, Limits, Query, Selection, Store};
use std::time::Duration;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        keep: Duration::from_secs(1 << 40),
        memory_bytes: 16 << 20,
    };
    let Ok((store, _)) = pprof::read(bytes, limits) else {
        return;
    };
    let selection = select(&store);
    let mut again = Vec::new();
    pprof::write(&selection, &mut again).expect("memory takes everything");
    let (again, notes) = pprof::read(&again[..], limits).expect("we wrote it");
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(select(&again).samples(), selection.samples());
});

fn select(store: &Store) -> Selection {
    let selection = store.view().select(&Query::default(), &Cancel::new());
    selection.expect("nobody cancels it")
}
