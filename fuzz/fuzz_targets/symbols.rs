//! Symbol tables of a file of either class: with section headers and without, stubs,
//! and what unwind information tells of code without names.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbolize::object::Object;
use symbolize::source::Source;
use symbolize::{ElfSymbols, LinkAddr};

fuzz_target!(|bytes: &[u8]| {
    let Ok(object) = Object::from_source(Source::Memory(bytes.into())) else {
        return;
    };
    let Ok(symbols) = ElfSymbols::from_object(object) else {
        return;
    };
    let functions: Vec<LinkAddr> = symbols.functions().map(|f| f.start).collect();
    for start in functions.iter().chain(&[LinkAddr(0), LinkAddr(u64::MAX)]) {
        if let Ok(found) = symbols.find_link(*start) {
            assert!(found.start <= *start);
        }
        if let Some(extent) = symbols.extent(*start) {
            assert!(extent.contains(start));
        }
    }
});
