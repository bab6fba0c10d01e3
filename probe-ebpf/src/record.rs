//! Records in the ring buffer.

/// How the walk of a user stack ended. One byte in the record; `profile` has
/// the words for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ending {
    Root = 0,
    NoUserStack = 1,
    NoFramePointer = 2,
    BrokenChain = 3,
    ReadFault = 4,
    TooDeep = 5,
    NoMapping = 6,
    Compat32 = 7,
}
