//! What the kernel writes into our rings, as if it were anybody: samples of both
//! kinds, and what happens to processes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    probe::decode_anything(bytes);
});
