//! A string with a limited length.

use std::fmt;

/// Maximum length of a demangled name. Names can repeat parts of themselves, at worst
/// exponentially.
const DEMANGLED_BYTES_MAX: usize = 64 << 10;

/// A string of at most [`DEMANGLED_BYTES_MAX`] bytes: writing more fails, which ends the
/// demangling.
#[derive(Debug, Default)]
pub struct Capped {
    text: String,
    full: bool,
}

impl Capped {
    /// Returns what was written, cut before the first piece that did not fit.
    pub fn into_string(self) -> String {
        self.text
    }

    /// Whether something did not fit.
    pub fn is_full(&self) -> bool {
        self.full
    }
}

impl fmt::Write for Capped {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.full |= self.text.len() + text.len() > DEMANGLED_BYTES_MAX;
        if self.full {
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}
