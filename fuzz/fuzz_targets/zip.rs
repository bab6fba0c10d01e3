//! A file that may be a zip archive: a member of it is found, or not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbolize::source::Source;
use symbolize::zip::read_member;

fuzz_target!(|data: &[u8]| {
    const MAX: u64 = 1 << 20;
    let source = Source::Memory(data.into());
    for name in [&b""[..], b"a", b"shop/cart.py"] {
        if let Ok(Some(text)) = read_member(&source, name, MAX) {
            assert!(text.len() as u64 <= MAX);
        }
    }
});
