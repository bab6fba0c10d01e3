//! Reads CPython's data from the memory of its process: its threads, and the names and lines of the
//! code that they run. The process is not stopped, and none of its code is run.
//!
//! | module | holds |
//! |---|---|
//! | `asyncio` | where asyncio keeps its tasks |
//! | `file` | what a file has of Python |
//! | `interpreter` | whether a file is an interpreter: its version, its state, its loop |
//! | `parts` | finds all parts of a function that was split, by its jumps |
//! | `layout` | offsets of data in each version: one file for each |
//! | `inspect` | what is found out about a process as a whole |
//! | `threads` | the threads of an interpreter |
//! | `own_state` | where a thread has the address of its own state |
//! | `thread_names` | the names that the program gave its threads |
//! | `dict` | dictionaries and attributes |
//! | `modules` | the modules that a process has imported |
//! | `code` | a code object: its name, file and lines |
//! | `functions` | the functions of code objects, as they are shown |
//! | `trampoline` | the code that `-X perf` puts around calls of the loop |
//! | `lines` | the line of each instruction |
//! | `text` | strings and bytes |
//! | `module_name` | guesses the module of a file |
//! | `memory` | reading a process, and the reasons why that can fail |
//! | `blocks` | caches memory in blocks, each of which is read once |
//!
//! Nothing that is read is trusted: every length has a limit, every list an end, and addresses are
//! used only to have the kernel read from them.

mod asyncio;
mod blocks;
mod code;
mod dict;
mod file;
mod functions;
#[cfg(test)]
mod in_words;
mod inspect;
mod interpreter;
mod layout;
mod lines;
mod memory;
mod module_name;
mod modules;
mod own_state;
mod parts;
mod text;
mod thread_names;
mod threads;
mod trampoline;

pub use asyncio::{Asyncio, find_running_tasks};
pub(crate) use blocks::blocks_of;
pub use code::{Code, Found, IDENTITY_WORDS, read_codes};
pub use file::PythonFile;
pub use functions::{Check, FoundFunction, Function, WantedCode};
pub(crate) use functions::{take_function, write_function};
pub use inspect::{Look, Seen, ThreadPlace};
pub use interpreter::{Build, Interpreter, Version};
pub use layout::{
    Attributes, CodeLayout, FrameLayout, Gil, Groups, IDENTITY_REACH, Layout, LineTable, Objects,
    TaskLayout, TaskLinks, ThreadLayout,
};
pub use lines::Lines;
pub use memory::{Lack, Memory};
pub use module_name::module_of;
pub use thread_names::{find_threading, read_thread_names};
pub use threads::{TIDS_IN_PTHREAD, Thread, read_threads};
pub use trampoline::{LOOKED_AT, Trampoline};
