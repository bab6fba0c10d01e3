//! CPython 3.13, the first that tells its offsets.

use super::offsets::Told;
use super::{TaskLayout, TaskLinks};

/// Positions in `_Py_DebugOffsets` of CPython 3.13, and what that structure does not contain.
pub const TOLD: Told = Told {
    runtime_interpreters: 40,
    interpreter_next: 64,
    interpreter_threads: 72,
    interpreter_modules: 88,
    gil: 112,
    thread_next: 168,
    thread_frame: 184,
    thread_id: 192,
    frame_previous: 232,
    code_file: 280,
    code_start: 344,
    frame_bytes: 72,
    code_bytes: 208,
    cached_keys: 880,
    has_base: false,
    tasks: Some(TaskLayout {
        name: 128,
        coroutine: 120,
        links: TaskLinks::Callbacks {
            callback: 24,
            waits_for: 112,
            group_values: Some(24),
        },
    }),
};
