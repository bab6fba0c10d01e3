//! Names, inlined functions and lines of Go programs, stripped ones too, from
//! the table that the Go runtime itself needs (`.gopclntab`).
//!
//! | module | holds |
//! |---|---|
//! | `symbols` | the front door: an address in, a chain of functions out |
//! | `find` | where in a file the table is, with or without its section |
//! | `header` | the four layouts of the table since Go 1.2 |
//! | `table` | the table's parts, read as far as they are asked for |
//! | `function` | what the table says of one function |
//! | `pc_values` | a number for each address of a function |
//! | `module_data` | the runtime's own record of where things are |
//! | `pointers` | words of the file as they are once it is loaded |
//! | `depths` | how deep the stack is at each address, for unwinding |
//! | `inline` | which functions were inlined at an address |
//! | `frame` | what is found |

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
