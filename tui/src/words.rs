//! *Words*: numbers, units and texts as the screen, the plain dialog and reports
//! write them.

/// What differs from a baseline.
pub mod compared;
/// CPUs by their numbers.
pub mod cpus;
/// A number as a sentence.
pub mod explain;
/// Text that has to fit into a line.
pub mod fit;
/// Keys that sentences name.
pub mod keys;
/// What is counted.
pub mod metric;
/// Names as they stand in rows.
pub mod names;
/// Whose a process is.
pub mod person;
/// Where a timer counts what ran before.
pub mod skid;
/// Places in source text.
pub mod source;
/// Cutting and cleaning.
pub mod text;
/// Numbers as text.
pub mod units;
/// Why there is no name.
pub mod unnamed;
