//! CPython 3.8.

use super::{
    Attributes, CodeLayout, FrameLayout, Gil, Groups, Layout, LineTable, Objects, ThreadLayout,
};

/// Offsets and sizes in CPython 3.8.
pub const LAYOUT: Layout = Layout {
    runtime_interpreters: 32,
    interpreter_next: 0,
    interpreter_threads: 8,
    thread: ThreadLayout {
        next: 8,
        frame: 24,
        c_frame: None,
        thread_id: 176,
        native_thread_id: None,
    },
    frame: FrameLayout {
        bytes: 112,
        previous: 24,
        code: 32,
        instruction: 104,
        instruction_bytes: Some(1),
        groups: Groups::Each,
        has_base: false,
    },
    code: CodeLayout {
        bytes: 128,
        first_line: 40,
        file: 104,
        name: 112,
        qualified_name: None,
        line_table: 120,
        lines: LineTable::Steps,
        // From `co_cell2arg` on; what follows `co_lnotab` is written to.
        identity: 96,
        start: 0,
    },
    interpreter_modules: 56,
    gil: Gil::Runtime(1152),
    objects: Objects {
        attributes: Attributes::Dict,
        cached_keys: 872,
    },
    ascii_data: 48,
    wide_data: 72,
    tasks: None,
};
