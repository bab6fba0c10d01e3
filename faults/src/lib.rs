//! A *fault* is a panic of this program that was caught. Files of strangers are parsed, and
//! a screen is drawn, at the same time as samples are taken: a mistake of ours in one of
//! them costs that piece of work, is told, and everything else goes on.
//!
//! [`catch`] runs a piece of work. What was caught is counted here, for the whole process
//! as panics themselves are, so that any part of the program can show it.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod caught;
mod injected;
mod seen;

pub use caught::{Patience, catch, is_catching, note_place};
pub use seen::{Fault, note, seen};
