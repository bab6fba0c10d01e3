//! Whether code of a file handles exceptions.

use super::eh_frame;
use super::section::Extent;
use crate::object::Object;
use crate::{OpenError, bytes::u32_in};

/// Maximum number of entries that are checked; a file has one for each language and kind of
/// function, in each of its parts.
const LOOKED_AT: usize = 1 << 22;

/// Whether some of the file's functions have a *personality*: a routine that searches for the
/// handlers of an exception, or cleans up when one passes. C++ and Rust have it, C only on request.
pub fn has_personality(object: &Object) -> Result<bool, OpenError> {
    let mut found = false;
    eh_frame::sections(object, |section| {
        let (mut at, mut left) = (0, LOOKED_AT);
        while let Some(extent) = Extent::at(section.data, at) {
            left -= 1;
            match extent {
                Extent::Zero => at += 4,
                Extent::Damaged => return Ok(()),
                Extent::Entry { behind } => {
                    found |= is_with_personality(section.data, at);
                    at = behind;
                }
            }
            if found || left == 0 {
                return Ok(());
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// Whether there is a common information entry with a personality: length, an identifier of 0, the
/// version, and the letters of its augmentation (LSB Core, 10.6.1.1.1).
fn is_with_personality(data: &[u8], at: usize) -> bool {
    let is_common = u32_in(data, at + 4) == Some(0);
    let letters = data.get(at + 9..).unwrap_or_default();
    is_common
        && letters
            .iter()
            .take(8)
            .take_while(|letter| **letter != 0)
            .any(|l| *l == b'P')
}
