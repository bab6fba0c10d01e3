//! Lists that a person moves through: what is selected, sorted and found in them.

/// Which row is selected, and on which line of the screen it stays.
pub mod cursor;
/// Rows below those that they descend from.
pub mod family;
/// A text search over the rows of a view.
pub mod find;
/// Rows that have something in common, put together.
pub mod groups;
/// Where the selection is to go.
pub mod motion;
/// Processes and threads: whose they are, and sums of them.
pub mod people;
/// A list that is sorted, searched and selected from.
pub mod table;
