//! How a step of the walk went: plain numbers, because an enum with data costs the
//! verifier more than all the rest.

/// The registers are those of the caller now.
pub const CALLER: u32 = 0;
/// The thread's first function.
pub const END: u32 = 1;
/// The frame pointer is zero.
pub const CHAIN_END: u32 = 2;
/// The table says what is not supported.
pub const UNSUPPORTED: u32 = 3;
/// The stack cannot be read there.
pub const READ_FAULT: u32 = 4;
/// A frame pointer that points where no frame can be.
pub const IMPLAUSIBLE: u32 = 5;
/// The caller's frame is not above this one: a table that lies.
pub const STUCK: u32 = 6;
/// The pc is in no mapping that is known.
pub const NO_MAPPING: u32 = 7;
/// There is no user stack: a kernel thread.
pub const NO_STACK: u32 = 8;
/// A 32-bit task.
pub const COMPAT_32: u32 = 9;
/// The task is on its way out: its memory is being taken down.
pub const EXITING: u32 = 10;
/// The caller has another stack, and where that is cannot be told.
pub const SWITCHED: u32 = 11;
