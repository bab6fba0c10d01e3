//! *Interning*: each frame and each stack is stored once and has a number.
//!
//! - [`frames`]: a place in a program, by a number that outlives its samples
//! - [`stacks`]: a chain of frames, by a number that only samples hold

mod frames;
mod stacks;

pub(crate) use frames::{Frames, NO_STACK};
pub(crate) use stacks::{StackId, Stacks};
