//! Notifies an observer before a request may block.

use crate::Reason;

/// What a request may block on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blocker {
    /// A file system, by the major and minor number of its device.
    FileSystem(u32, u32),
    /// The memory of a process. Its lock is held while the process waits for its files, and its
    /// mappings may be of remote files.
    Process(u32),
}

/// Notified of each place where a request may block, before that happens. If the request does not
/// end, the last place is the cause.
pub trait Watch: Send {
    /// Called before `place` is used. An error ends the request.
    fn enter(&mut self, place: Blocker) -> Result<(), Reason>;
}

/// An observer that allows everything.
#[derive(Debug)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn enter(&mut self, _: Blocker) -> Result<(), Reason> {
        Ok(())
    }
}
