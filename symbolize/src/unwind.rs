//! Unwind information: how to get from a function's frame to its caller's,
//! for every address of an ELF file.
//!
//! ```text
//! .eh_frame ──► section ──► program ──► machine ──► collect ──► flatten ──► UnwindTable
//!               entries     rows        rules       spans       no overlaps
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `rule` | what to do at an address, in neutral terms |
//! | `row` | an address, and the number of the rule from there on |
//! | `table` | the rules of a file, by address |
//! | `eh_frame` | where the information is that every program carries |
//! | `debug_frame` | the same from the debug information |
//! | `go` | what Go's function table says instead |
//! | `start_code` | two functions of the start files, which have none at all |
//! | `stubs` | code of AArch64 that never has any: stubs of linkers, returns of signals |
//! | `by_code` | what is left on AArch64: frames by the instructions themselves |
//! | `section` | the entries of either kind of section |
//! | `program` | an entry's instructions, run to rows |
//! | `machine` | a row as a rule, for each architecture |
//! | `expression` | the few DWARF expressions that compilers write |
//! | `collect` | rows as found, in the order of the file |
//! | `rules` | their different rules, each once |
//! | `flatten` | the same by address, each address once |
//! | `extents` | where functions begin and end, and nothing else |
//! | `personality` | whether exceptions pass through the code |

mod by_code;
mod collect;
mod debug_frame;
mod eh_frame;
mod expression;
pub mod extents;
mod flatten;
mod go;
mod machine;
pub mod personality;
mod program;
mod row;
pub mod rule;
mod rules;
mod section;
mod start_code;
mod stubs;
pub mod table;

pub use collect::Statistics;
pub use extents::Extents;
pub use row::{Row, RuleId};
pub use rule::{
    Cfa, Goroutine, Linked, RbpRule, RbxRule, Register, Saved, Unsupported, UnwindRule,
};
pub use table::UnwindTable;

/// A section of call frame information, as gimli reads it.
type Bytes<'d> = gimli::EndianSlice<'d, gimli::LittleEndian>;
