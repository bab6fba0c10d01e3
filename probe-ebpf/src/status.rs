//! How a step of the walk went: plain numbers, because an enum with data costs the
//! verifier more than all the rest.

/// The registers are those of the caller now.
pub const CALLER: u32 = 0;
/// The frame is that of the thread's first function.
pub const END: u32 = 1;
/// The frame pointer is zero.
pub const CHAIN_END: u32 = 2;
/// The table says something that is not supported.
pub const UNSUPPORTED: u32 = 3;
/// The stack could not be read.
pub const READ_FAULT: u32 = 4;
/// The frame pointer points to where no frame can be.
pub const IMPLAUSIBLE: u32 = 5;
/// The caller's frame is not above this one: the table is wrong.
pub const STUCK: u32 = 6;
/// The pc is in no mapping that is known.
pub const NO_MAPPING: u32 = 7;
/// There is no user stack: a kernel thread.
pub const NO_STACK: u32 = 8;
/// The task runs 32-bit code.
pub const COMPAT_32: u32 = 9;
/// The task is ending: its memory is being taken down.
pub const EXITING: u32 = 10;
/// The caller has another stack, and it is not known where that is.
pub const SWITCHED: u32 = 11;
