//! *Interning*: each frame and each stack is stored once and has a number.
//!
//! - [`arena`]: the words of all stacks, shared with views
//! - [`frames`]: a place in a program, by a number that outlives its samples
//! - [`stacks`]: a chain of frames, by a number that only samples hold

mod arena;
mod frames;
mod stacks;

pub(crate) use frames::{Frames, HIDDEN, NO_STACK, RESERVED, stopped};
pub use stacks::STACK_DEPTH_MAX;
pub(crate) use stacks::{StackId, StackTable, Stacks};
