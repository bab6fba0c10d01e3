//! Unwind information: how to get from a function's frame to its caller's, for every address of an
//! ELF file.
//!
//! ```text
//! .eh_frame ──► section ──► program ──► machine ──► collect ──► flatten ──► UnwindTable
//!               entries     rows        rules       spans       no overlaps
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `rule` | what to do at an address, independent of the source |
//! | `row` | an address, and the number of the rule from there on |
//! | `table` | the rules of a file, by address |
//! | `eh_frame` | finds the information that every program has |
//! | `debug_frame` | the same kind of information in debug information |
//! | `go` | rules from Go's function table |
//! | `start_code` | two functions of the start files, which have no information |
//! | `stubs` | code of AArch64 that never has information: stubs of linkers, returns of signals |
//! | `by_code` | for the rest: frames from the instructions themselves |
//! | `section` | the entries of either kind of section |
//! | `program` | runs an entry's instructions to get rows |
//! | `machine` | converts a row to a rule, for each architecture |
//! | `expression` | the few DWARF expressions that compilers write |
//! | `collect` | rows as found, in the order of the file |
//! | `rules` | the distinct rules |
//! | `flatten` | sorts rows by address and removes overlaps |
//! | `extents` | only where functions begin and end |
//! | `search_table` | the same for a few addresses, by the table that linkers make |
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
mod search_table;
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
