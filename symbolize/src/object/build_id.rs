//! Build-ids: notes with which a tool-chain identifies what it built.

use object::elf;

use super::Object;
use super::notes::notes;

/// Maximum size of all notes that are searched: usual ones have some hundred bytes; a kernel's have
/// some kilobytes. They count twice if the file has program headers and section headers for them.
const NOTES_BYTES_MAX: u64 = 2 << 20;

/// Maximum number of headers for notes that are searched. Real files have a few; a hostile one can
/// have 131,070, each for the same notes.
const HEADERS_MAX: usize = 256;

/// Maximum length of a build-id: a longer one counts as none. Those of linkers have 8 to 64 bytes,
/// Go's have 83.
pub const BYTES_MAX: usize = 256;

/// `NT_GNU_BUILD_ID`, owner `GNU`.
const GNU_BUILD_ID: u32 = 3;

/// The linker of Go writes its build-id as type 4, owner `Go`.
const GO_BUILD_ID: u32 = 4;

/// The build-id that the linker wrote with `--build-id`.
pub(super) fn gnu(object: &Object) -> Option<Vec<u8>> {
    find(object, b"GNU", GNU_BUILD_ID)
}

/// Go's build-id (`go tool buildid`): action and content hashes, as text.
pub(super) fn go(object: &Object) -> Option<Vec<u8>> {
    find(object, b"Go", GO_BUILD_ID)
}

/// Finds a note. Segments are searched first: they are what the process has in memory, so the
/// result is the one that the kernel reports for a mapping.
fn find(object: &Object, owner: &[u8], kind: u32) -> Option<Vec<u8>> {
    let segments = object.program_headers().iter().filter(|h| h.is_note());
    let sections = object
        .sections()
        .iter()
        .filter(|s| s.is_kind(elf::SHT_NOTE));
    let places = segments
        .map(|header| (header.offset, header.filesz))
        .chain(sections.map(|section| (section.offset, section.size)));
    let mut left = NOTES_BYTES_MAX;
    for (offset, size) in places.take(HEADERS_MAX) {
        // What is too large is skipped: smaller notes may follow.
        let Some(rest) = left.checked_sub(size) else {
            continue;
        };
        left = rest;
        let Ok(notes) = object.source().read(offset, size, "notes") else {
            continue;
        };
        if let Some(id) = find_note(&notes, owner, kind) {
            let is_id = !id.is_empty() && id.len() <= BYTES_MAX;
            return is_id.then(|| id.to_vec());
        }
    }
    None
}

fn find_note<'n>(bytes: &'n [u8], owner: &[u8], kind: u32) -> Option<&'n [u8]> {
    let mut notes = notes(bytes);
    let note = notes.find(|note| note.kind == kind && note.owner == owner)?;
    Some(note.description)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(owner: &[u8], kind: u32, description: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        note.extend((owner.len() as u32).to_le_bytes());
        note.extend((description.len() as u32).to_le_bytes());
        note.extend(kind.to_le_bytes());
        note.extend(owner);
        note.resize(note.len().next_multiple_of(4), 0);
        note.extend(description);
        note.resize(note.len().next_multiple_of(4), 0);
        note
    }

    #[test]
    fn finds_the_note_behind_others() {
        let mut notes = note(b"GNU\0", 1, &[0; 16]);
        notes.extend(note(b"Go\0\0", 4, b"abc/def"));
        notes.extend(note(b"GNU\0", 3, b"\x01\x02\x03\x04\x05"));
        assert_eq!(
            find_note(&notes, b"GNU", 3),
            Some(&b"\x01\x02\x03\x04\x05"[..])
        );
        assert_eq!(find_note(&notes, b"Go", 4), Some(&b"abc/def"[..]));
        assert_eq!(find_note(&notes, b"GNU", 4), None);
    }

    #[test]
    fn hostile_lengths_end_the_search() {
        for (owner_len, len) in [(u32::MAX, 0), (4, u32::MAX), (u32::MAX, u32::MAX), (0, 0)] {
            let mut notes = Vec::new();
            notes.extend(owner_len.to_le_bytes());
            notes.extend(len.to_le_bytes());
            notes.extend(3u32.to_le_bytes());
            notes.extend(b"GNU\0");
            assert_eq!(find_note(&notes, b"GNU", 3), None);
        }
    }
}
