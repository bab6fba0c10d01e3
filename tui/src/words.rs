//! *Words*: numbers, units and texts as the screen, the plain dialog and reports
//! write them.

/// A number as a sentence.
pub mod explain;
/// Text that has to fit into a line.
pub mod fit;
/// Keys that sentences name.
pub mod keys;
/// What is counted.
pub mod metric;
/// Cutting and cleaning.
pub mod text;
/// Numbers as text.
pub mod units;
