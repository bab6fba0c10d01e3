//! *Interning*: each frame and each stack is stored once and has a number.
//!
//! - [`arena`]: storage for the frame numbers of all stacks, shared with views
//! - [`callers`]: the outer frames of stacks, which many stacks share
//! - [`frame_table`]: the frames by number, as far as views share them
//! - [`frames`]: the table of frames; a frame's number outlives its samples
//! - [`stacks`]: the table of stacks; only samples refer to a stack's number

mod arena;
mod callers;
mod frame_table;
mod frames;
mod stacks;

pub(crate) use callers::StackFrames;
pub(crate) use frame_table::FrameTable;
pub(crate) use frames::{Frames, HIDDEN, NO_STACK, RESERVED, stopped};
pub use stacks::STACK_DEPTH_MAX;
pub(crate) use stacks::{StackId, StackTable, Stacks};
