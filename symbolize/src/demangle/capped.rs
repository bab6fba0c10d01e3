//! A string that stops growing.

use std::fmt;

/// Demangled names repeat parts of themselves, at worst exponentially.
const DEMANGLED_BYTES_MAX: usize = 64 << 10;

/// A string with at most [`DEMANGLED_BYTES_MAX`]: writing more fails, which
/// ends the demangling.
#[derive(Debug, Default)]
pub struct Capped(String);

impl Capped {
    pub fn into_string(self) -> String {
        self.0
    }
}

impl fmt::Write for Capped {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > DEMANGLED_BYTES_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}
