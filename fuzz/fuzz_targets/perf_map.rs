//! A perf map that is written in two steps, read after each.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbolize::jit::PerfMap;

#[path = "growing.rs"]
mod growing;

fuzz_target!(|input: (u16, &[u8])| {
    let (cut, text) = input;
    let (first, rest) = text.split_at(text.len().min(cut.into()));
    let mut file = growing::Growing::new(first);
    let mut map = PerfMap::new(file.reader());
    map.update().expect("memory can be read");
    file.append(rest);
    map.update().expect("memory can be read");
    assert!(map.heap_bytes() <= 64 * text.len() + 1024);
    for addr in growing::addresses(text) {
        let name = map.find(addr);
        assert!(name.is_none_or(|name| !name.is_empty() && name.len() <= 4096));
    }
    // All at once gives the same names.
    let mut whole = PerfMap::new(file.reader());
    whole.update().expect("memory can be read");
    for addr in growing::addresses(text) {
        assert_eq!(whole.find(addr), map.find(addr));
    }
});
