//! A place of a table: a function and a source location.

/// A function and a source location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionPlace {
    /// Number of a text, or `NONE`.
    pub function: u32,
    /// Number of a file, or `NONE`.
    pub file: u32,
    /// Line in the file; 0 if unknown.
    pub line: u32,
    /// Column; 0 if unknown.
    pub column: u32,
}
