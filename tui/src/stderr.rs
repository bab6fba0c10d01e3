//! Standard error, for people: what is said beside the output. Where it cannot be written
//! (a full disk, a pipe that nobody reads) nothing else can be told, and the exit status
//! still says how the run ended. `eprintln!` would panic, and end it with another.

use std::fmt::Display;
use std::io::{self, Write as _};

/// Writes a sentence as a line of its own, with our name in front of it.
pub fn say(sentence: impl Display) {
    write(format_args!("proftop: {sentence}\n"));
}

/// Writes a text as it is.
pub fn write(text: impl Display) {
    // In one piece, so that lines of other threads and programs stay whole.
    let text = text.to_string();
    // Nobody is left to be told that it failed.
    _ = io::stderr().lock().write_all(text.as_bytes());
}
