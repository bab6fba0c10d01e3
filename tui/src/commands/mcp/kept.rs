//! What tools *keep* from one call to the next.

use super::samples::Samples;
use crate::code::FileLibrary;

/// What is kept for one connection.
pub struct Kept {
    pub samples: Samples,
    /// Finds source text and instructions.
    pub library: FileLibrary,
    /// Whether calls of functions may be counted.
    pub allows_probes: bool,
}

impl Kept {
    /// Nothing yet.
    pub fn new(allows_probes: bool) -> Self {
        Kept {
            samples: Samples::default(),
            library: FileLibrary::default(),
            allows_probes,
        }
    }
}
