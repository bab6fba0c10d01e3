//! CPython 3.14: pointers in frames have a tag, and objects have flags beside the count of
//! their references.

use super::offsets::Told;

/// Positions in `_Py_DebugOffsets` of CPython 3.14, and what that structure does not contain.
pub const TOLD: Told = Told {
    runtime_interpreters: 40,
    interpreter_next: 64,
    interpreter_threads: 72,
    interpreter_modules: 96,
    gil: 120,
    thread_next: 192,
    thread_frame: 208,
    thread_id: 216,
    frame_previous: 256,
    code_file: 320,
    code_start: 384,
    frame_bytes: 80,
    code_bytes: 216,
    cached_keys: 880,
    has_base: false,
    tasks: None,
};
