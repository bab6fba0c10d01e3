//! Names of code that was made at run time, as written by its runtime.
//!
//! | module | holds |
//! |---|---|
//! | `names` | the entry point: the names of one process, whatever files it writes |
//! | `written` | the files that a process writes |
//! | `maps` | the contents of these files |
//! | `perf_map` | `/tmp/perf-PID.map`: lines of text, appended |
//! | `code` | a piece of run-time code: where it is, and what is known about it |
//! | `dump` | `jit-PID.dump`: records with times, lines and code |
//! | `spans` | finds the entry of an address among many that may overlap |
//! | `tail` | a file that grows, and is rewritten now and then |
//!
//! Everything in these files comes from the target. It can choose the names of its own code, but
//! nothing else.

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
