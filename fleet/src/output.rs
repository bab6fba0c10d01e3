//! Prints to standard output, which may be closed early: `| head` is not an error.

use crate::failure::Failure;
use std::io::{self, ErrorKind, Write as _};

/// Prints a text.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot print: {error}")))
        }
        _ => Ok(()),
    }
}
