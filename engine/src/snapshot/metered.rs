//! A file that counts several things: one view for each.

use profile::View;
use std::sync::Arc;

/// One of the things that a file counts.
#[derive(Debug, Clone)]
pub struct Metered {
    /// As the file calls it.
    pub name: Arc<str>,
    /// The file's stacks, counted in it; nothing while it is being read.
    pub view: Option<View>,
}
