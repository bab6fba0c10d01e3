//! The programs that run at breakpoints.

use std::os::fd::OwnedFd;

/// The programs of calls.
pub struct Programs {
    /// For the beginning of a call.
    pub begins: OwnedFd,
    /// For its end.
    pub ends: OwnedFd,
    /// They are attached to many places at once, and not by perf events.
    pub are_multi: bool,
}
