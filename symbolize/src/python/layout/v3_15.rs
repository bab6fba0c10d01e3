//! CPython 3.15: behind the frames of a thread is one that no call made.

use super::offsets::Told;

/// Positions in `_Py_DebugOffsets` of CPython 3.15, and what that structure does not contain.
pub const TOLD: Told = Told {
    runtime_interpreters: 40,
    interpreter_next: 64,
    interpreter_threads: 72,
    interpreter_modules: 96,
    gil: 120,
    thread_next: 192,
    thread_frame: 208,
    thread_id: 240,
    frame_previous: 320,
    code_file: 384,
    code_start: 448,
    frame_bytes: 80,
    code_bytes: 216,
    cached_keys: 888,
    has_base: true,
    tasks: None,
};
