//! Who is told where a request is about to wait.

use crate::Reason;

/// What may hold a reader up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blocker {
    /// A file system, by the major and minor number of its device.
    FileSystem(u32, u32),
    /// The memory of a process: its lock is held while the process waits for its files,
    /// and what it has mapped may be theirs.
    Process(u32),
}

/// Told of each place that may hold a request up, before it is entered. The last one told
/// is to blame if the request does not end.
pub trait Watch: Send {
    /// A reason not to enter it ends the request.
    fn enter(&mut self, place: Blocker) -> Result<(), Reason>;
}

/// Lets everything happen.
#[derive(Debug)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn enter(&mut self, _: Blocker) -> Result<(), Reason> {
        Ok(())
    }
}
