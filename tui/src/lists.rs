//! Lists that a user moves through: selecting, sorting and finding rows.

/// The selected row, and the line of the screen on which it stays.
pub mod cursor;
/// Rows below those of their ancestors.
pub mod family;
/// A text search over the rows of a view.
pub mod find;
/// Rows with a common property, joined in groups.
pub mod groups;
/// Motions of the selection.
pub mod motion;
/// Processes and threads: their owners, and their sums.
pub mod people;
/// A list that can be sorted and searched, and that has a selection.
pub mod table;
