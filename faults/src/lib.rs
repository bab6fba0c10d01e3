//! A *fault* is a panic of this program that was caught. Untrusted files are parsed, and a screen
//! is drawn, at the same time as samples are taken: a bug in one of these costs that piece of work
//! and is reported, and everything else goes on.
//!
//! [`catch`] runs a piece of work. Caught panics are counted here for the whole process, so that
//! any part of the program can show them.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod caught;
mod injected;
mod seen;

pub use caught::{Patience, catch, is_catching, note_place};
pub use seen::{Fault, note, seen};
