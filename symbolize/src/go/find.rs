//! Where the table is.
//!
//! The section has a name only as long as there are sections, and only where
//! Go's own linker wrote the file: lld and others put the table into
//! `.data.rel.ro`. Then it is found by its first bytes.

use memchr::memmem::Finder;

use super::header::{HEADER_BYTES, Header};
use super::table::{MappedPart, is_plausible};
use crate::object::Object;

/// Files of Go have the table within their first read-only data; all that is
/// looked through of the others is this.
const SCAN_BYTES_MAX: u64 = 1 << 30;

const CHUNK_BYTES: usize = 1 << 20;

/// The table, if it is there and is one.
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

/// Reading through files that cannot be Go's is not worth it.
fn looks_like_go(object: &Object) -> bool {
    let is_go = |name: &[u8]| name.starts_with(b".go.") || name.starts_with(b".note.go");
    let sections = object.sections();
    sections.is_empty()
        || sections
            .iter()
            .any(|section| is_go(object.section_name(section)))
        || object.has_go_build_id()
}

fn by_scan(object: &Object) -> Option<(MappedPart, Header)> {
    let mut budget = SCAN_BYTES_MAX;
    let loads = object.program_headers().iter().filter(|s| s.is_load());
    // Data first. Old linkers put what is only read with the code.
    let mut segments: Vec<_> = loads.collect();
    segments.sort_by_key(|segment| segment.is_executable());
    for segment in segments {
        let len = segment.filesz.min(budget);
        budget -= len;
        let found = scan(object, segment.offset, len, |offset| {
            let within = offset - segment.offset;
            let place = MappedPart {
                offset,
                addr: segment.vaddr.wrapping_add(within),
                len: segment.filesz - within,
            };
            // The linker aligns it; a like string in the text need not be.
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

/// Tries each place that begins like a table.
fn scan<T>(
    object: &Object,
    begin: u64,
    len: u64,
    mut try_at: impl FnMut(u64) -> Option<T>,
) -> Option<T> {
    // All magics end so, and two bytes of zero follow; one byte precedes.
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
        // The next one overlaps by what a match needs.
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
