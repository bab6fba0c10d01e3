//! How the walk of a user stack ended: what the last [`status`] means to a reader.

use crate::status;

/// How the walk of a user stack ended, as the reader of a record reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The chain of frames ended as it should: at the thread's first frame.
    Root,
    /// There is no user stack: a kernel thread, or a task that has no user registers.
    NoUserStack,
    /// The interrupted code keeps no frame pointer.
    NoFramePointer,
    /// A frame pointer points to where no frame can be.
    BrokenChain,
    /// The stack's memory could not be read.
    ReadFault,
    /// The stack has more frames than the limit.
    TooDeep,
    /// The walk came to an address outside all executable mappings.
    NoMapping,
    /// The task runs 32-bit code.
    Compat32,
    /// The task was in the middle of exec: the old program's stack is gone, the new one
    /// has none yet.
    Exec,
    /// The unwind information uses something there that is not supported.
    Unsupported,
    /// The unwind information leads downwards, so it is wrong.
    Stuck,
    /// The frames above are on another stack, and it cannot be found out where that is.
    StackSwitch,
    /// The mapping had just changed, so that the rules were those of another file. Only the
    /// reader of the record can know.
    Remapped,
    /// The task was ending: its memory was being taken down.
    Exiting,
    /// The stack is longer than the copy of it that was walked. Only the reader of the
    /// record can know.
    CopyCut,
}

/// Returns what the last status of a walk means. The walk found `frames` frames, the last
/// `links` of them by frame pointer.
pub fn ending(status: u32, links: u32, frames: u32) -> Ending {
    match status {
        status::CALLER => Ending::TooDeep,
        status::END => Ending::Root,
        status::UNSUPPORTED => Ending::Unsupported,
        status::STUCK => Ending::Stuck,
        status::NO_STACK => Ending::NoUserStack,
        status::COMPAT_32 => Ending::Compat32,
        status::EXITING => Ending::Exiting,
        status::SWITCHED => Ending::StackSwitch,
        // By frame pointers: a chain that fails at its first link never was one.
        // The interrupted code uses rbp for something else, whatever it holds.
        status::CHAIN_END if links > 0 => Ending::Root,
        status::CHAIN_END | status::IMPLAUSIBLE if links == 0 => Ending::NoFramePointer,
        status::NO_MAPPING if links == 0 || frames <= 1 => Ending::NoMapping,
        status::READ_FAULT => Ending::ReadFault,
        _ => Ending::BrokenChain,
    }
}
