//! `.debug_ranges` (DWARF 2 to 4): the address ranges of functions in several pieces. In Rust
//! programs it is a seventh of the debug information, so it is not kept in memory: units read their
//! lists one after the other.

use gimli::{AttributeValue, Dwarf, Unit};

use super::sections::Slice;
use crate::object::SectionBytes;

/// Number of bytes read at once, at first and when lists are adjacent.
const FIRST_BYTES: usize = 4 << 10;
const MOST_BYTES: usize = 128 << 10;

/// Maximum number of ranges in one list. Real ones have some hundreds.
const RANGES_MAX: usize = 1 << 20;

/// A part of the section in memory.
#[derive(Debug, Default)]
pub struct Stretch {
    start: usize,
    bytes: Vec<u8>,
}

/// The range lists of a file's units.
pub struct Lists<'l> {
    /// `None` if all of them are in memory.
    pub section: Option<&'l SectionBytes>,
    /// Buffer for this file's section only.
    pub room: &'l mut Stretch,
}

impl Lists<'_> {
    /// Calls `add` with start and end of each range of an attribute.
    pub fn each<'d>(
        &mut self,
        dwarf: &Dwarf<Slice<'d>>,
        unit: &Unit<Slice<'d>>,
        value: AttributeValue<Slice<'d>>,
        mut add: impl FnMut(u64, u64),
    ) -> Option<()> {
        let offset = dwarf.attr_ranges_offset(unit, value).ok()??;
        match self.section.filter(|_| unit.header.version() < 5) {
            Some(section) => {
                let size = unit.encoding().address_size;
                self.room.each(section, offset.0, size, unit.low_pc, add)
            }
            None => {
                let mut ranges = dwarf.ranges(unit, offset).ok()?;
                for _ in 0..RANGES_MAX {
                    let range = ranges.next().ok()??;
                    add(range.begin, range.end);
                }
                Some(())
            }
        }
    }

    /// Calls `add` with start and end of each range of a unit's first entry.
    pub fn each_of_unit<'d>(
        &mut self,
        dwarf: &Dwarf<Slice<'d>>,
        unit: &Unit<Slice<'d>>,
        mut add: impl FnMut(u64, u64),
    ) -> Option<()> {
        let (mut high, mut list) = (None, None);
        let mut entries = unit.header.entries_raw(&unit.abbreviations, None).ok()?;
        for &attribute in entries.read_abbreviation().ok()??.attributes() {
            let attribute = entries.read_attribute(attribute).ok()?;
            match attribute.name() {
                gimli::DW_AT_high_pc => high = Some(attribute.value()),
                gimli::DW_AT_ranges => list = Some(attribute.value()),
                _ => {}
            }
        }
        if let Some(list) = list {
            return self.each(dwarf, unit, list, add);
        }
        let end = match high? {
            AttributeValue::Udata(len) => unit.low_pc.checked_add(len)?,
            address => dwarf.attr_address(unit, address).ok()??,
        };
        add(unit.low_pc, end);
        Some(())
    }
}

impl Stretch {
    /// Calls `add` for each range of a list. `base` is what addresses are relative to until the
    /// list changes it.
    fn each(
        &mut self,
        section: &SectionBytes,
        offset: usize,
        address_bytes: u8,
        mut base: u64,
        mut add: impl FnMut(u64, u64),
    ) -> Option<()> {
        let size = usize::from(address_bytes);
        let highest = match size {
            4 => u64::from(u32::MAX),
            8 => u64::MAX,
            _ => return None,
        };
        let mut at = offset;
        for _ in 0..RANGES_MAX {
            let bytes = self.bytes(section, at, 2 * size)?;
            let (begin, end) = bytes.split_at(size);
            match (number(begin), number(end)) {
                (0, 0) => break,
                (begin, end) if begin == highest => base = end,
                // Linkers write this where they removed the code.
                (begin, _) if begin == highest - 1 => {}
                (begin, end) => {
                    let [begin, end] = [begin, end].map(|at| base.wrapping_add(at) & highest);
                    add(begin, end);
                }
            }
            at += 2 * size;
        }
        Some(())
    }

    fn bytes(&mut self, section: &SectionBytes, at: usize, len: usize) -> Option<&[u8]> {
        let has = |own: &Self| at.checked_sub(own.start)?.checked_add(len);
        if has(self).is_none_or(|end| end > self.bytes.len()) {
            let end = self.start + self.bytes.len();
            let goes_on =
                at.saturating_add(len) > end && at <= end + FIRST_BYTES && !self.bytes.is_empty();
            let most = if goes_on {
                (self.bytes.len() * 2).clamp(FIRST_BYTES, MOST_BYTES)
            } else {
                FIRST_BYTES
            };
            self.start = at;
            let end = section.size().min(at.checked_add(most)?);
            section.copy_part(at..end.max(at), &mut self.bytes)?;
        }
        let within = at - self.start;
        self.bytes.get(within..within + len)
    }
}

fn number(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(section: &SectionBytes, offset: usize, room: &mut Stretch) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        _ = room.each(section, offset, 8, 0x1000, |begin, end| {
            found.push((begin, end))
        });
        found
    }

    #[test]
    fn lists_are_read_wherever_they_lie() {
        // At 0 a list of 1,000 ranges, after it one that sets its own base.
        let mut words: Vec<u64> = (1..1001).flat_map(|at| [at * 16, at * 16 + 8]).collect();
        words.extend([
            0,
            0,
            u64::MAX,
            0x50_0000,
            0,
            4,
            u64::MAX - 1,
            8,
            16,
            20,
            0,
            0,
        ]);
        // The last list is not terminated.
        words.extend([1, 2]);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let file = tempfile::tempfile().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 100).unwrap();
        let in_file = SectionBytes::of_file(file.into(), 100, bytes.len());
        for section in [SectionBytes::in_memory(bytes), in_file] {
            let mut room = Stretch::default();
            for _ in 0..2 {
                let long = ranges(&section, 0, &mut room);
                assert_eq!(long.len(), 1000);
                assert_eq!(long[999], (0x1000 + 16_000, 0x1000 + 16_008));
                let based = ranges(&section, 1001 * 16, &mut room);
                assert_eq!(based, [(0x50_0000, 0x50_0004), (0x50_0010, 0x50_0014)]);
                let open = ranges(&section, 1006 * 16, &mut room);
                assert_eq!(open, [(0x1001, 0x1002)]);
                assert_eq!(ranges(&section, usize::MAX - 4, &mut room), []);
            }
        }
    }
}
