//! Lists of mounts, which a process has in a namespace of its own: which file systems may hang,
//! and where control groups are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbolize::opener::Mounts;

fuzz_target!(|bytes: &[u8]| {
    Mounts::default().add(bytes);
    if let Some(place) = probe::cgroup::find_cgroup2_mount(bytes) {
        assert!(place.as_os_str().len() <= bytes.len());
    }
});
