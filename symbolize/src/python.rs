//! What CPython keeps in the memory of its process: its threads, and the names and lines of
//! the code that they run. Nothing of the process is stopped, and none of its code is run.
//!
//! | module | holds |
//! |---|---|
//! | `asyncio` | where asyncio keeps its tasks |
//! | `interpreter` | which file is an interpreter: its version, where its state is, where its loop is |
//! | `parts` | all places of a function that was split, by its jumps |
//! | `layout` | where each version keeps what: one file for each |
//! | `threads` | the threads of an interpreter |
//! | `thread_names` | the names that the program gave them |
//! | `dict` | dictionaries and attributes |
//! | `modules` | the modules that a process has imported |
//! | `code` | a code object: its name, file and lines |
//! | `trampoline` | the code of `-X perf` around calls of the loop |
//! | `lines` | which line each instruction is of |
//! | `text` | strings and bytes |
//! | `module_name` | the module that a file most likely is |
//! | `memory` | reading a process, and why that can fail |
//! | `blocks` | memory in blocks, of which each is read once |
//!
//! Everything that is read was written by a stranger: every length has a bound, every list
//! an end, and an address is only ever given back to the kernel to read from.

mod asyncio;
mod blocks;
mod code;
mod dict;
#[cfg(test)]
mod in_words;
mod interpreter;
mod layout;
mod lines;
mod memory;
mod module_name;
mod modules;
mod parts;
mod text;
mod thread_names;
mod threads;
mod trampoline;

pub use asyncio::{Asyncio, find_running_tasks};
pub use blocks::blocks_of;
pub use code::{Code, Found, IDENTITY_WORDS, read_codes};
pub use interpreter::{Build, Interpreter, Version};
pub use layout::{
    Attributes, CodeLayout, FrameLayout, Gil, Groups, IDENTITY_REACH, Layout, LineTable, Objects,
    TaskLayout, TaskLinks, ThreadLayout,
};
pub use lines::Lines;
pub use memory::{Lack, Memory, memory_of};
pub use module_name::module_of;
pub use thread_names::{find_threading, read_thread_names};
pub use threads::{Thread, count_interpreters, find_gil, read_threads};
pub use trampoline::{LOOKED_AT, Trampoline};
