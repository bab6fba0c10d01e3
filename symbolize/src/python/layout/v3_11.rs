//! CPython 3.11: frames are no objects any more, and one call of the loop runs several.

use super::{
    Attributes, CodeLayout, FrameLayout, Gil, Groups, Layout, LineTable, Objects, ThreadLayout,
};

/// Offsets and sizes in CPython 3.11.
pub const LAYOUT: Layout = Layout {
    runtime_interpreters: 40,
    interpreter_next: 0,
    interpreter_threads: 16,
    thread: ThreadLayout {
        next: 8,
        frame: 56,
        c_frame: Some(8),
        thread_id: 152,
        native_thread_id: Some(160),
    },
    frame: FrameLayout {
        bytes: 72,
        previous: 48,
        code: 32,
        instruction: 56,
        instruction_bytes: None,
        groups: Groups::Flagged(68),
        has_base: false,
    },
    code: CodeLayout {
        bytes: 192,
        first_line: 72,
        file: 112,
        name: 120,
        qualified_name: Some(128),
        line_table: 136,
        lines: LineTable::Locations,
        identity: 112,
        start: 184,
    },
    interpreter_modules: 888,
    gil: Gil::Runtime(360),
    objects: Objects {
        attributes: Attributes::TwoPointers,
        cached_keys: 872,
    },
    ascii_data: 48,
    wide_data: 72,
    tasks: None,
};
