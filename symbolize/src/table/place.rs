//! A place of a table: a function and a source location.

/// A function and a source location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionPlace {
    /// Number of a text, or `NONE`.
    pub function: u32,
    /// Number of a file, or `NONE`.
    pub file: u32,
    pub line: u32,
    pub column: u32,
}
