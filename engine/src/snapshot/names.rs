//! What is known about the names of functions.

use super::NamesFrom;
use std::sync::Arc;

/// Where names are from, and which are still being looked up.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// Sources of names by module; empty for a recording, which does not contain them.
    pub from: Arc<NamesFrom>,
    /// The files that are currently being read for names.
    pub loading: Vec<Loading>,
    /// The state of fetching debug files; `None` if no servers are configured, and for a recording.
    pub fetching: Option<FetchState>,
}

/// The state of fetching debug files from servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchState {
    /// The servers in `DEBUGINFOD_URLS`, safe to print.
    pub servers: Arc<str>,
    /// Name of the file that waits for the user's consent.
    pub asks_for: Option<Arc<str>>,
}

/// A file whose symbols are being read.
#[derive(Debug, Clone)]
pub struct Loading {
    /// Displayed name of the file.
    pub module: Arc<str>,
    /// Progress, 0 to 100; `None` if unknown.
    pub percent: Option<u8>,
    /// What is being read: `debug information`.
    pub what: &'static str,
    /// Whether it is read over a network.
    pub is_remote: bool,
}
