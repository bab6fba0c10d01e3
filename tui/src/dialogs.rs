//! *Dialogs* open over a view, and get the keys until they are closed.

/// The pages of the help.
pub mod help;
/// Editing a line of text.
pub mod line_edit;
/// Actions and orders, which the user finds by their names.
pub mod palette;
/// Changing how samples are taken.
pub mod sampling;
/// Writing a file.
pub mod write;
