//! *Dialogs*: what opens over a view, and has the keys until it is closed.

/// The pages of the help.
pub mod help;
/// A line of text while it is typed.
pub mod line_edit;
/// Actions and orders, found by their names.
pub mod palette;
/// How samples are taken.
pub mod sampling;
/// Writing to a file.
pub mod write;
