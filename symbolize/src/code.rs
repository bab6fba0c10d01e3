//! The code of a function as it is in its file, or in the process that made it: its instructions,
//! and the line of each.
//!
//! | module | holds |
//! |---|---|
//! | `assembly` | instructions of x86 and AArch64 as text |
//! | `find` | finds a function, its instructions, and what they call |
//! | `lines` | the functions and lines at an address |
//! | `run_time` | finds a function that a process made at run time |

pub mod assembly;
mod find;
mod lines;
pub(crate) mod run_time;

pub use assembly::{BodyLine, Dialect, Instruction, Texts};
pub use find::{CodeFound, CodeQuestion, FunctionCode, find};
pub use lines::{CodeLines, NoLines};
pub use run_time::{RunTimeFound, RunTimeQuestion};
