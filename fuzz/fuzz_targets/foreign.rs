//! Mach-O, several in one file, and PE.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbolize::LinkAddr;
use symbolize::foreign::ForeignSymbols;

fuzz_target!(|bytes: &[u8]| {
    let Ok(symbols) = ForeignSymbols::parse(bytes, None) else {
        return;
    };
    let starts: Vec<LinkAddr> = symbols.functions().map(|function| function.start).collect();
    assert!(starts.is_sorted());
    for start in starts {
        let found = symbols.find(start).expect("a function has its start");
        assert_eq!(found.start, start);
    }
});
