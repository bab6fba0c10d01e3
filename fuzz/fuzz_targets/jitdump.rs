//! A jitdump that is written in two steps, read after each.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbolize::jit::JitDump;

#[path = "growing.rs"]
mod growing;

fuzz_target!(|input: (u16, &[u8])| {
    let (cut, bytes) = input;
    let (first, rest) = bytes.split_at(bytes.len().min(cut.into()));
    let mut file = growing::Growing::new(first);
    let Ok(mut dump) = JitDump::new(file.reader()) else {
        return;
    };
    dump.update().expect("memory can be read");
    file.append(rest);
    dump.update().expect("memory can be read");
    assert!(dump.heap_bytes() <= 64 * bytes.len() + 1024);
    for addr in growing::addresses(bytes) {
        for name in [dump.find(addr), dump.find_at(addr, 7)] {
            assert!(name.is_none_or(|name| !name.is_empty() && name.len() <= 4096));
        }
    }
});
