//! Notes: records that tools leave in a file for other tools.

use crate::bytes::u32_in;

/// One note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note<'n> {
    /// Owner, up to its first NUL: Go pads its name with a second one that the length includes.
    pub owner: &'n [u8],
    /// Kind of the note; its meaning depends on the owner.
    pub kind: u32,
    /// Contents of the note.
    pub description: &'n [u8],
}

/// Iterates over the notes of a section or segment; stops at a damaged one.
///
/// A note is three words (owner's length, description's length, type), the
/// owner and the description, both padded to 4 bytes. (Those padded to 8, the
/// GNU properties, are in a segment of their own.)
pub fn notes(bytes: &[u8]) -> impl Iterator<Item = Note<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let owner_len = u32_in(rest, 0)? as usize;
        let len = u32_in(rest, 4)? as usize;
        let kind = u32_in(rest, 8)?;
        let start = 12usize.checked_add(owner_len.checked_next_multiple_of(4)?)?;
        let end = start.checked_add(len)?;
        let owner = rest.get(12..12usize.checked_add(owner_len)?)?;
        let note = Note {
            owner: owner.split(|&byte| byte == 0).next()?,
            kind,
            description: rest.get(start..end)?,
        };
        // The last note need not be padded.
        rest = rest
            .get(end.checked_next_multiple_of(4)?..)
            .unwrap_or_default();
        Some(note)
    })
}
