//! How the walk of a user stack ended: what the last [`status`] means to a reader.

use crate::status;

/// How the walk of a user stack ended, as the reader of a record tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The chain of frames ended as it should: at the thread's first frame.
    Root,
    /// A kernel thread, or a task that has no user registers.
    NoUserStack,
    /// The interrupted code keeps no frame pointer.
    NoFramePointer,
    /// A frame pointer that points nowhere a frame can be.
    BrokenChain,
    /// The stack's memory could not be read.
    ReadFault,
    /// More frames than the limit.
    TooDeep,
    /// An address outside all executable mappings.
    NoMapping,
    /// A 32-bit task.
    Compat32,
    /// In the midst of exec: the old program's stack is gone, the new one has
    /// none yet.
    Exec,
    /// The unwind information says there what is not supported.
    Unsupported,
    /// The unwind information leads downwards: it lies.
    Stuck,
    /// The frames above are on another stack, and where that is cannot be told.
    StackSwitch,
    /// What was mapped there had just been changed: the rules were those of another
    /// file. Only the reader of the record can tell.
    Remapped,
    /// The task was ending: its memory was being taken down.
    Exiting,
    /// The stack is longer than the copy of it that was walked. Only the reader
    /// of the record can tell.
    CopyCut,
}

/// What the last status of a walk means. The walk found `frames` frames, the last
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
