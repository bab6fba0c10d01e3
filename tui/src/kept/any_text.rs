//! Any text, read as the kept state: for the fuzz target `kept_state`.

use super::file::BYTES_MAX;
use super::{Kept, answer, find, name, put, put_answer};

/// Reads a text as the file of the kept state, of a target of any name, and keeps that target's
/// state in it.
///
/// # Panics
///
/// If something else is read than was written, or if more is written than is read.
pub fn check_any_state(text: &str, scope: &str) {
    let name = name(scope);
    let (answered, kept) = (answer(text), find(text, &name).unwrap_or_default());
    let other = Kept {
        inverted: !kept.inverted,
        ..kept
    };
    let written = put(text, &name, other);
    assert!(written.len() as u64 <= BYTES_MAX);
    assert_eq!(find(&written, &name), Some(other));
    assert_eq!(answer(&written), answered);
    let written = put_answer(&written, true);
    assert_eq!(
        (answer(&written), find(&written, &name)),
        (Some(true), Some(other))
    );
}
