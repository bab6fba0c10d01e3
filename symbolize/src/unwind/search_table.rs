//! The search table of `.eh_frame_hdr`: where each function begins, by address, and which entry of
//! `.eh_frame` describes it. Linkers make it for exceptions, so that an entry is found without
//! reading all of them. Here it answers questions about a few addresses of a large file.
//!
//! ```text
//! .eh_frame_hdr:  version, three encodings │ address of .eh_frame │ number │ (function, entry)…
//! ```
//!
//! The format is that of the LSB Core specification, "Exception Frames". Of the encodings only those
//! are known that all linkers write.

use std::ops::Range;

use gimli::{BaseAddresses, UnwindSection as _};

use super::eh_frame;
use crate::bytes::{u32_at, u32_in};
use crate::object::Object;
use crate::{FileOffset, LinkAddr};

/// The version, and the encodings of the address (relative to itself), the number, and the table
/// (relative to the section), all with 32 bits.
const HEADER: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

/// Number of bytes in front of the table.
const HEADER_BYTES: usize = 12;

/// Number of bytes of an entry of the table.
const ENTRY_BYTES: usize = 8;

/// Number of bytes that are read of an entry of `.eh_frame`: its length, its CIE, and the start and
/// the length of the function and the address of its handlers, which have eight bytes at most. No
/// instructions are needed.
const FDE_BYTES: usize = 48;

/// Maximum number of bytes of a CIE: real ones have 20 to 30, those for signals 150.
const CIE_BYTES_MAX: usize = 512;

/// Maximum number of entries for one start that are looked at.
const SAME_MAX: usize = 8;

/// The table as the file has it.
#[derive(Debug)]
pub struct SearchTable {
    /// The address of `.eh_frame_hdr`, to which others are relative.
    addr: u64,
    entries: Vec<[u8; ENTRY_BYTES]>,
}

impl SearchTable {
    /// Reads the table. `None` if there is none, if it does not cover all unwind information of the
    /// file, if it has another format or more than `entries_max` entries, or if it is not sorted.
    pub fn read(object: &Object, entries_max: usize) -> Option<SearchTable> {
        let headers = object.program_headers();
        let place = headers.iter().find(|header| header.is_eh_frame_header())?;
        let most = (HEADER_BYTES + entries_max.saturating_mul(ENTRY_BYTES)) as u64;
        let source = object.source();
        let bytes = source.read(place.offset, place.filesz.min(most), ".eh_frame_hdr");
        let bytes = bytes.ok()?;
        let (header, table) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let described = relative(place.vaddr.wrapping_add(4), u32_at(header, 4));
        let count = u32_at(header, 8) as usize;
        if header[..4] != HEADER || !eh_frame::is_covered(object, described) {
            return None;
        }
        let (entries, _) = table.as_chunks::<ENTRY_BYTES>();
        let entries = entries.get(..count).filter(|_| count <= entries_max)?;
        let table = SearchTable {
            addr: place.vaddr,
            entries: entries.to_vec(),
        };
        let is_sorted = table.entries.is_sorted_by_key(|entry| table.start(entry));
        // Otherwise the entries have a format that is not known here.
        let middle = table.entries.get(count / 2)?;
        let is_known = table.len(object, middle).is_some();
        (is_sorted && is_known).then_some(table)
    }

    /// Returns the function that contains an address; if there are several, the one that starts
    /// last.
    pub fn find(&self, object: &Object, addr: LinkAddr) -> Option<Range<u64>> {
        let behind = self.entries.partition_point(|e| self.start(e) <= addr.0);
        let before = &self.entries[..behind];
        let start = self.start(before.last()?);
        let same = before.iter().rev().take(SAME_MAX);
        let lens = same
            .take_while(|entry| self.start(entry) == start)
            .filter_map(|entry| self.len(object, entry));
        let end = start.checked_add(lens.min()?)?;
        (addr.0 < end).then_some(start..end)
    }

    fn start(&self, entry: &[u8; ENTRY_BYTES]) -> u64 {
        relative(self.addr, u32_at(entry, 0))
    }

    /// Returns the length of a function.
    fn len(&self, object: &Object, entry: &[u8; ENTRY_BYTES]) -> Option<u64> {
        let described_at = relative(self.addr, u32_at(entry, 4));
        len_of(object, self.start(entry), described_at)
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        self.entries.capacity() * ENTRY_BYTES
    }
}

/// Adds a signed distance to an address.
fn relative(base: u64, distance: u32) -> u64 {
    base.wrapping_add_signed(i64::from(distance.cast_signed()))
}

/// Returns the length of the function that an entry of `.eh_frame` describes. `None` if that is
/// damaged, or about a function that starts elsewhere.
fn len_of(object: &Object, start: u64, fde: u64) -> Option<u64> {
    let place = object.segments().to_file(LinkAddr(fde))?;
    let mut entry = bytes_at(object, place, FDE_BYTES)?;
    // The second word of a function's entry is the distance back to its CIE. It is 0 in a CIE.
    let back = u32_in(&entry, 4).filter(|back| *back != 0)?;
    let cie = place.0.checked_add(4)?.checked_sub(back.into())?;
    let head = bytes_at(object, FileOffset(cie), 4)?;
    let cie_bytes = (u32_in(&head, 0)? as usize).checked_add(4)?;
    if cie_bytes > CIE_BYTES_MAX {
        return None;
    }
    // gimli reads sections. This one has the CIE, and directly behind it the entry without
    // instructions.
    let mut section = bytes_at(object, FileOffset(cie), cie_bytes)?;
    let len = (entry.len() - 4) as u32;
    entry[..4].copy_from_slice(&len.to_le_bytes());
    entry[4..8].copy_from_slice(&(section.len() as u32 + 4).to_le_bytes());
    let bases = BaseAddresses::default().set_eh_frame(fde.wrapping_sub(section.len() as u64));
    let at = section.len();
    section.extend(entry);
    let frames = eh_frame::parsed(object, &section);
    let partial = frames.partial_fde_from_offset(&bases, at.into()).ok()?;
    let fde = partial.parse(|frames, bases, offset| frames.cie_from_offset(bases, offset));
    let fde = fde.ok().filter(|fde| fde.initial_address() == start)?;
    (fde.len() > 0).then_some(fde.len())
}

/// Reads this number of bytes of the file, or fewer if it ends before.
fn bytes_at(object: &Object, at: FileOffset, bytes: usize) -> Option<Vec<u8>> {
    let source = object.source();
    let left = source.len().checked_sub(at.0)?;
    source.read(at.0, left.min(bytes as u64), ".eh_frame").ok()
}
