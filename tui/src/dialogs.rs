//! *Dialogs*: what is open over a view, and takes the keys meanwhile.

/// The pages of the help.
pub mod help;
/// A line of text while it is typed.
pub mod line_edit;
/// Everything by its name.
pub mod palette;
/// How samples are taken.
pub mod sampling;
/// Writing to a file.
pub mod write;
