//! Finds the table in a file.
//!
//! The table has a section of its own only if the file has sections, and was linked by Go's own
//! linker: lld and others put the table into `.data.rel.ro`. Otherwise it is found by its first
//! bytes.

use memchr::memmem::Finder;

use super::header::{HEADER_BYTES, Header};
use super::table::{MappedPart, is_plausible};
use crate::object::{Object, ProgramHeader};

/// Maximum number of bytes that are searched. Files of Go have the table in their first read-only
/// data; this limit is for all others.
const SCAN_BYTES_MAX: u64 = 1 << 30;

const CHUNK_BYTES: usize = 1 << 20;

/// Returns the place and the header of the table, if the file has one.
pub fn table(object: &Object) -> Option<(MappedPart, Header)> {
    by_section(object).or_else(|| looks_like_go(object).then(|| by_scan(object)).flatten())
}

fn by_section(object: &Object) -> Option<(MappedPart, Header)> {
    let names: [&[u8]; 2] = [b".gopclntab", b".data.rel.ro.gopclntab"];
    let section = names.iter().find_map(|name| object.section_by_name(name))?;
    if !section.has_data() || section.is_compressed() {
        return None;
    }
    let place = MappedPart {
        offset: section.offset,
        addr: section.addr,
        len: section.size,
    };
    Some((place, header(object, place)?))
}

/// Whether the file may be Go's. It is not worth searching others.
fn looks_like_go(object: &Object) -> bool {
    let is_go = |name: &[u8]| name.starts_with(b".go.") || name.starts_with(b".note.go");
    let sections = object.sections();
    sections.is_empty()
        || sections
            .iter()
            .any(|section| is_go(object.section_name(section)))
        || object.go_build_id().is_some()
}

fn by_scan(object: &Object) -> Option<(MappedPart, Header)> {
    let mut budget = SCAN_BYTES_MAX;
    let loads = object.program_headers().iter().filter(|s| s.is_load());
    // Data first. Old linkers put read-only data together with the code.
    let (code, data): (Vec<&ProgramHeader>, Vec<_>) =
        loads.partition(|segment| segment.is_executable());
    for segment in data.into_iter().chain(code) {
        let len = segment.filesz.min(budget);
        budget -= len;
        let found = scan(object, segment.offset, len, |offset| {
            let within = offset - segment.offset;
            let place = MappedPart {
                offset,
                addr: segment.vaddr.wrapping_add(within),
                len: segment.filesz - within,
            };
            // The linker aligns the table; a similar byte sequence in the text need not be aligned.
            let header = place
                .addr
                .is_multiple_of(8)
                .then(|| header(object, place))??;
            is_plausible(object, place, &header).then_some((place, header))
        });
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Calls `take` with each place whose bytes look like the beginning of a table.
fn scan<T>(
    object: &Object,
    begin: u64,
    len: u64,
    mut try_at: impl FnMut(u64) -> Option<T>,
) -> Option<T> {
    // All magic numbers end like this, and two zero bytes follow; one byte precedes.
    let finder = Finder::new(b"\xff\xff\xff\0\0");
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut done = 0;
    while done < len {
        let want = (len - done).min(CHUNK_BYTES as u64) as usize;
        let have = object.source().read_some(begin + done, &mut buffer[..want]);
        let chunk = &buffer[..have];
        for at in finder.find_iter(chunk).filter(|at| *at > 0) {
            let magic = [0xfb, 0xfa, 0xf0, 0xf1].contains(&chunk[at - 1]);
            if let Some(found) = magic
                .then(|| try_at(begin + done + at as u64 - 1))
                .flatten()
            {
                return Some(found);
            }
        }
        // The next piece overlaps by the length of a match.
        done += have.saturating_sub(8).max(1) as u64;
        if have < want || want < CHUNK_BYTES {
            return None;
        }
    }
    None
}

fn header(object: &Object, place: MappedPart) -> Option<Header> {
    let mut bytes = [0; HEADER_BYTES];
    let have = object.source().read_some(place.offset, &mut bytes);
    let header = Header::parse(&bytes).filter(|_| have == HEADER_BYTES)?;
    header.is_within(place.len).then_some(header)
}
