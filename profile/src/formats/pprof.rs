//! *pprof*: one gzipped protobuf message, the format of `go tool pprof` and of services that keep
//! profiles.
//!
//! `proto/profile.proto` of `github.com/google/pprof` describes it. A sample in it has a stack,
//! values and labels; ours have the labels `thread` and `tid` (of the thread), `comm` and `pid` (of
//! the process). If a walk did not reach the root, the stack ends in a function `[stopped: cause]`.
//! A frame without a name is a location without a line, so that the receiver can still name it if
//! he has the file with the mapping's build-id.
//!
//! - [`proto`]: fields of messages as bytes
//! - [`field`]: their numbers
//! - [`writer`]: a selection as a message
//! - [`tables`]: the definitions of a message, for the reader
//! - [`labels`], [`meaning`]: whose samples they are, and what they count
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

/// Whether a file that begins with these bytes is a pprof file, gzipped or bare. A bare one begins
/// with a value type, either of its values or, in heap profiles that Go writes, of its period; and
/// that begins with the number of its name.
pub fn is_start(start: &[u8]) -> bool {
    start.starts_with(&[0x1f, 0x8b]) || matches!(start, [0x0a | 0x5a, _, 0x08, ..])
}

/// The label that says how the walk of a stack ended, for a stack that is not cut and yet has no
/// root.
const ENDING_LABEL: &str = "stack_end";
