//! Frames and tasks of Python in the memory of a process, where they are read without BPF: whatever is
//! there, the walk ends, and what is the same twice is taken for that.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    probe::walk_python_anywhere(bytes);
});
