//! Names of code that was made at run time, as its runtime tells them.
//!
//! | module | holds |
//! |---|---|
//! | `names` | the front door: one process, whatever it writes |
//! | `written` | the files in which it does |
//! | `maps` | what those tell |
//! | `perf_map` | `/tmp/perf-PID.map`: lines of text, appended |
//! | `code` | a piece of such code: where it is, and what is known of it |
//! | `dump` | `jit-PID.dump`: records with times, lines and code |
//! | `spans` | which of many entries, often overlapping, has an address |
//! | `tail` | a file that grows, and is written anew now and then |
//!
//! All of it is the target's word: it can name its own code what it likes,
//! and nothing more.

mod code;
mod dump;
pub(crate) mod maps;
mod names;
mod perf_map;
mod spans;
mod tail;
pub(crate) mod written;

pub use code::{JitCode, JitName};
pub use dump::JitDump;
pub use names::JitNames;
pub use perf_map::PerfMap;
