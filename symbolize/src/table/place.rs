//! A place of a table: which function, and where in source text.

/// Function, and place in source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionPlace {
    /// A text, or `NONE`.
    pub function: u32,
    /// A file, or `NONE`.
    pub file: u32,
    pub line: u32,
    pub column: u32,
}
