//! *Widgets* are parts of the screen that several views draw.

/// Replaces characters that are not ASCII.
pub mod ascii;
/// The lines below the rows of a table.
pub mod below;
/// Columns that compare with a baseline.
pub mod compared;
/// The strip that shows how busy each CPU is.
pub mod cpus;
/// The frame of dialogs.
pub mod dialog;
/// The files whose symbols are being read.
pub mod loading;
/// The row that sums up what is below the last visible row.
pub mod rest;
/// The strip that shows the last seconds.
pub mod seconds;
/// Tables: columns and rows.
pub mod table;
/// Colors and signs, and what they depend on.
pub mod theme;
/// The last seconds of a row as blocks of different heights.
pub mod trend;
