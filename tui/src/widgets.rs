//! *Widgets*: drawing that views share.

/// Replacing characters by ASCII.
pub mod ascii;
/// What stands below the rows of a table.
pub mod below;
/// What differs from a baseline.
pub mod compared;
/// How busy each CPU is.
pub mod cpus;
/// The frame that dialogs have.
pub mod dialog;
/// Which files' symbols are being read.
pub mod loading;
/// What is below the last row, summed up.
pub mod rest;
/// The last seconds.
pub mod seconds;
/// Columns and rows.
pub mod table;
/// Colors and signs, and what decides on them.
pub mod theme;
/// The last seconds as blocks.
pub mod trend;
