//! *Words*: numbers, units and texts as the screen, the plain dialog and reports
//! write them.

/// Text that has to fit into a line.
pub mod fit;
/// Cutting and cleaning.
pub mod text;
/// Numbers as text.
pub mod units;
