//! CPython 3.12: a frame of C is behind each group of frames; strings are shorter.

use super::{
    Attributes, CodeLayout, FrameLayout, Gil, Groups, Layout, LineTable, Objects, TaskLayout,
    TaskLinks, ThreadLayout,
};

/// Offsets and sizes in CPython 3.12.
pub const LAYOUT: Layout = Layout {
    runtime_interpreters: 40,
    interpreter_next: 0,
    interpreter_threads: 72,
    thread: ThreadLayout {
        next: 8,
        frame: 56,
        c_frame: Some(0),
        thread_id: 136,
        native_thread_id: Some(144),
    },
    frame: FrameLayout {
        bytes: 72,
        previous: 8,
        code: 0,
        instruction: 56,
        instruction_bytes: None,
        groups: Groups::OwnedByC(70),
        has_base: false,
    },
    code: CodeLayout {
        bytes: 200,
        first_line: 68,
        file: 112,
        name: 120,
        qualified_name: Some(128),
        line_table: 136,
        lines: LineTable::Locations,
        identity: 112,
        start: 192,
    },
    interpreter_modules: 944,
    gil: Gil::Interpreter(384),
    objects: Objects {
        attributes: Attributes::OnePointer,
        cached_keys: 880,
    },
    ascii_data: 40,
    wide_data: 56,
    tasks: Some(TaskLayout {
        name: 144,
        coroutine: 136,
        links: TaskLinks::Callbacks {
            callback: 24,
            waits_for: 128,
            group_values: None,
        },
    }),
};
