//! CPython 3.9: most of what is read of it is where 3.8 has it.

use super::{Gil, Layout, v3_8};

/// Offsets and sizes in CPython 3.9.
pub const LAYOUT: Layout = Layout {
    interpreter_modules: 856,
    gil: Gil::Runtime(352),
    ..v3_8::LAYOUT
};
