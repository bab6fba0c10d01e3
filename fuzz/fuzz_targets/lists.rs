//! Lists that the kernel writes, with names of strangers in them: mappings of a process,
//! symbols of the kernel.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbolize::KernelSymbols;

fuzz_target!(|bytes: &[u8]| {
    for line in probe::proc_maps::lines(bytes) {
        // What a file is, and where, is asked of each.
        _ = (line.file(), line.source(1), line.mapping());
    }
    let symbols = KernelSymbols::parse(bytes);
    assert!(symbols.heap_bytes() <= 64 * bytes.len() + 4096);
    for address in [0, 1, u64::MAX / 2, u64::MAX] {
        if let Ok(found) = symbols.find(address) {
            assert!(!found.name.is_empty());
        }
        if let Some(extent) = symbols.extent(address) {
            assert!(extent.contains(&address));
        }
    }
});
