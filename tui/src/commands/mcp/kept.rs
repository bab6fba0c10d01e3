//! The state that tools *keep* from one call to the next.

use super::samples::Samples;
use crate::code::FileLibrary;

/// The state of one connection.
pub struct Kept {
    pub samples: Samples,
    /// Finds source text and instructions, for `code` and `explain_missing`.
    pub library: FileLibrary,
    /// Whether the tool `trace` may be used.
    pub allows_probes: bool,
}

impl Kept {
    /// The state before the first call.
    pub fn new(allows_probes: bool) -> Self {
        Kept {
            samples: Samples::default(),
            library: FileLibrary::default(),
            allows_probes,
        }
    }
}
