//! The programs that run at breakpoints.

use std::os::fd::OwnedFd;

/// The programs of calls.
pub struct Programs {
    /// Runs at the beginning of a call.
    pub begins: OwnedFd,
    /// Runs at its end.
    pub ends: OwnedFd,
    /// Whether they are attached to several places at once, instead of by perf events.
    pub are_multi: bool,
}
