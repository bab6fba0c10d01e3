//! Bytes in, names out.

pub mod address;
pub mod reason;

pub use address::{FileOffset, LinkAddr, ProcessAddr};
pub use reason::Reason;
