//! *perf.data*: the files that `perf record` writes on little-endian machines.
//!
//! `tools/perf/Documentation/perf.data-file-format.txt` of Linux describes it:
//! a header, attributes of the events, records as the kernel wrote them, and
//! features, among them build-ids. Frames get places in files and no names, as
//! the file has none; user addresses become file offsets by the mappings as
//! they were, addresses of the kernel differences to its `_text`.
//!
//! Stacks that it only copied (`--call-graph dwarf`) are not walked: those keep
//! Stacks that perf only copied (`--call-graph dwarf`) are not walked: such a sample keeps one
//! frame.
//!
//! - [`header`]: where things are, and features
//! - [`attributes`]: what was sampled, and how records are laid out
//! - [`cursor`]: little-endian numbers
//! - [`events`]: the events of a file: their names, and which of them counts
//! - [`record`]: records, one by one
//! - [`packed`]: records that perf packed
//! - [`machine`]: processes and what they had mapped
//! - [`reader`]: records in the order of time, into a store

mod attributes;
mod cursor;
mod events;
mod header;
mod machine;
mod packed;
mod reader;
mod record;

pub(super) use reader::read;

/// First eight bytes of a little-endian file.
pub(super) const MAGIC: [u8; 8] = *b"PERFILE2";
/// First eight bytes of a file from a big-endian machine, which is refused.
pub(super) const MAGIC_SWAPPED: [u8; 8] = *b"2ELIFREP";

/// The module of kernel addresses, which are stored relative to the kernel's `_text`.
pub const KERNEL: &str = "[kernel.kallsyms]";
