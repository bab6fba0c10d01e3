//! Names, inlined functions and lines of Go programs, stripped ones too, from
//! the table that the Go runtime itself needs (`.gopclntab`).
//!
//! | module | holds |
//! |---|---|
//! | `symbols` | the entry point: returns the chain of functions at an address |
//! | `find` | finds the table in a file, with or without its section |
//! | `header` | the four layouts of the table since Go 1.2 |
//! | `table` | the table's parts, read on demand |
//! | `function` | the record of one function |
//! | `pc_values` | a number for each address of a function |
//! | `module_data` | the runtime's own record of where things are |
//! | `pointers` | reads pointers of the file as they are after loading |
//! | `depths` | stack depth at each address, for unwinding |
//! | `inline` | which functions were inlined at an address |
//! | `frame` | the result of a look-up |
//! | `complete` | whether a result lacks nothing that debug information could have |

mod complete;
pub(crate) mod depths;
mod find;
mod frame;
mod function;
mod header;
mod inline;
mod module_data;
mod pc_values;
mod pointers;
mod symbols;
mod table;

pub use frame::GoFrame;
pub use symbols::GoSymbols;
