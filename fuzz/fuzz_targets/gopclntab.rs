//! An ELF file with, perhaps, the table of a Go program.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use symbolize::object::Object;
use symbolize::source::Source;
use symbolize::{GoSymbols, LinkAddr};

fuzz_target!(|bytes: &[u8]| {
    let Ok(object) = Object::from_source(Source::Memory(bytes.into())) else {
        return;
    };
    let Some(symbols) = GoSymbols::read(&Arc::new(object)) else {
        return;
    };
    assert!(symbols.heap_bytes() <= 2 * bytes.len());
    for start in symbols.starts().take(32) {
        for within in [0, 1, 0x15, 0x1000] {
            let addr = LinkAddr(start.0.wrapping_add(within));
            let chain = symbols.find(addr);
            let complete = symbols.find_complete(addr);
            assert!(complete.is_none_or(|complete| complete == chain));
            assert!(chain.len() <= 65);
            assert!(chain.iter().all(|frame| frame.short_name().len() <= 4096));
        }
    }
});
