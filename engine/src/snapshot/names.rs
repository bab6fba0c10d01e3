//! What is known about the names of functions.

use super::NamesFrom;
use std::sync::Arc;

/// Where names come from, and which are still to come.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// By module; empty for a recording, which does not tell.
    pub from: Arc<NamesFrom>,
    /// The files that are being read for names now.
    pub loading: Vec<Loading>,
    /// `None` if no servers are named, and for a recording.
    pub fetching: Option<FetchState>,
}

/// Whether debug files are fetched from servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchState {
    /// As `DEBUGINFOD_URLS` names them, safe to print.
    pub servers: Arc<str>,
    /// The file that waits for the user's consent.
    pub asks_for: Option<Arc<str>>,
}

/// A file whose symbols are being read.
#[derive(Debug, Clone)]
pub struct Loading {
    /// The file, as the screen calls it.
    pub module: Arc<str>,
    /// 0 to 100, where it is known.
    pub percent: Option<u8>,
    /// What is being read: `debug information`.
    pub what: &'static str,
    /// Over a network.
    pub is_remote: bool,
}
