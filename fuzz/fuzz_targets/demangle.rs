//! Names of any kind, short and whole: neither too long nor unsafe to show.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbolize::demangle;

fuzz_target!(|bytes: &[u8]| {
    // Most bytes are no name at all: the same behind the beginnings of names. `_ZN` is `_Z` with
    // one byte more, which is found quickly.
    for beginning in [&b""[..], b"_Z", b"_R"] {
        let name = [beginning, bytes].concat();
        let demangled = demangle(&name);
        assert!(demangled.short().len() <= 1 << 20);
        assert!(demangled.full().len() <= 1 << 20);
    }
});
