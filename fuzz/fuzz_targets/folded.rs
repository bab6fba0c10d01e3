//! Folded stacks of whatever tool.
#![no_main]

use libfuzzer_sys::fuzz_target;
use profile::formats::folded;
use profile::{Cancel, Limits, Query};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits::default();
    let Ok(store) = folded::read(bytes, limits) else {
        return;
    };
    let selection = store.view().select(&Query::default(), &Cancel::new());
    let selection = selection.expect("nobody cancels it");
    let mut text = Vec::new();
    folded::write(&selection, &mut text).expect("memory takes everything");
    let again = folded::read(&text[..], limits).expect("we wrote it");
    let again = again.view().select(&Query::default(), &Cancel::new());
    assert_eq!(
        again.expect("nobody cancels it").samples(),
        selection.samples()
    );
});
