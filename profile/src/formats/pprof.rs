//! *pprof*: one gzipped protobuf message, as `go tool pprof` and services that
//! keep profiles read it.
//!
//! `proto/profile.proto` of `github.com/google/pprof` describes it. A sample
//! there is a stack, values and labels; ours have the labels `thread` and `tid`
//! (of the thread), `comm` and `pid` (of the process). A walk that did not reach
//! the root ends in a function `[stopped: cause]`; a frame without a name is a
//! location without a line, so that who has the file can still name it by the
//! mapping's build-id.
//!
//! - [`proto`]: fields of messages as bytes
//! - [`field`]: their numbers
//! - [`writer`]: a selection as a message
//! - [`tables`]: what a message defines, for the reader
//! - [`labels`], [`meaning`]: whose samples they are, and of what
//! - [`reader`], [`names`]: a message as a store

mod field;
mod labels;
mod meaning;
mod names;
mod proto;
mod reader;
mod tables;
mod writer;

pub use reader::{read, read_metric};
pub use writer::write;

/// Whether a file that begins so is one: gzipped, or bare. Bare ones begin with a type
/// of values, that of what they count or, as Go writes heaps, of their period; and that
/// begins with its name.
pub fn is_start(start: &[u8]) -> bool {
    start.starts_with(&[0x1f, 0x8b]) || matches!(start, [0x0a | 0x5a, _, 0x08, ..])
}

/// The label that says how a stack ended that is whole and yet has no root.
const ENDING_LABEL: &str = "stack_end";
