//! CPython 3.10: instructions are numbered in units of two bytes, and lines are written as
//! PEP 626 says.

use super::{CodeLayout, FrameLayout, Layout, LineTable, v3_9};

/// Offsets and sizes in CPython 3.10.
pub const LAYOUT: Layout = Layout {
    frame: FrameLayout {
        instruction: 96,
        instruction_bytes: Some(2),
        ..v3_9::LAYOUT.frame
    },
    code: CodeLayout {
        lines: LineTable::Ranges,
        ..v3_9::LAYOUT.code
    },
    ..v3_9::LAYOUT
};
