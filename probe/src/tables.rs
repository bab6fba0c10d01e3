//! The unwind tables of all files that run, and who maps them where, kept where
//! the walk reads them: in BPF maps, or in memory of ours.

mod build;
mod cache;
mod dictionary;
mod encode;
mod file_table;
mod layout;
mod lists;
mod maps;
mod no_table;
mod pool;
mod ranges;
mod reader;
mod resting;
mod shared;
