//! `.debug_str`: the names of functions, among those of all types and variables. It is the largest
//! section after the entries, and is not kept in memory: the needed texts are read in one pass, in
//! the order in which they are stored.

use std::borrow::Cow;

use gimli::{AttributeValue, DebugStrOffset, Dwarf, Unit};

use super::parallel;
use super::sections::Slice;
use crate::object::SectionBytes;
use crate::table::TEXT_BYTES_MAX;
use crate::table::pool::{Text, TextBlock};

/// Texts with no larger gap between them are read together.
const GAP_BYTES_MAX: u32 = 4 << 10;

/// Maximum number of bytes read at once.
const WINDOW_BYTES: u32 = 256 << 10;

/// Number of bytes first read for a text.
const SHORT_BYTES: usize = 256;

/// How much the texts of one part may exceed its size: linkers let some texts share their end, but
/// only a malicious file lets thousands do so.
const SHARED_MAX: usize = 4;

/// Where the strings of a unit are.
#[derive(Debug, Clone, Copy)]
pub enum Strings<'d> {
    /// In sections that are in memory.
    Held,
    /// In `.debug_str`, which is read from the file when texts are needed.
    InFile(&'d SectionBytes),
}

impl<'s> Strings<'s> {
    /// Returns the text of an attribute. A text in the unit itself is copied, as the unit's bytes
    /// are dropped.
    pub fn text<'d>(
        self,
        dwarf: &Dwarf<Slice<'d>>,
        unit: &Unit<Slice<'_>>,
        value: AttributeValue<Slice<'_>>,
    ) -> Option<Text<'d>> {
        if let AttributeValue::String(text) = value {
            return Some(Text::Bytes(text.slice().to_vec().into()));
        }
        if let Some((section, place)) = self.place(dwarf, unit, value) {
            return match u32::try_from(place) {
                Ok(place) => Some(Text::At(place)),
                Err(_) => now(section, place).map(Text::Bytes),
            };
        }
        let text = match value {
            AttributeValue::DebugStrRefSup(offset) => dwarf.sup_string(offset),
            AttributeValue::DebugLineStrRef(offset) => dwarf.line_string(offset),
            _ => dwarf.string(offset(dwarf, unit, value)?),
        };
        Some(Text::Bytes(text.ok()?.slice().into()))
    }

    /// Returns the bytes of the text of an attribute; reads them now.
    pub fn bytes<'d>(
        self,
        dwarf: &Dwarf<Slice<'d>>,
        unit: &Unit<Slice<'_>>,
        value: AttributeValue<Slice<'_>>,
    ) -> Option<Cow<'d, [u8]>> {
        if let Some((section, place)) = self.place(dwarf, unit, value) {
            return now(section, place);
        }
        match self.text(dwarf, unit, value)? {
            Text::Bytes(bytes) => Some(bytes),
            Text::At(_) => None,
        }
    }

    /// Returns the section and the offset of the text, if it is not in memory.
    pub fn place(
        self,
        dwarf: &Dwarf<Slice<'_>>,
        unit: &Unit<Slice<'_>>,
        value: AttributeValue<Slice<'_>>,
    ) -> Option<(&'s SectionBytes, usize)> {
        match self {
            Strings::Held => None,
            Strings::InFile(section) => Some((section, offset(dwarf, unit, value)?.0)),
        }
    }
}

/// Returns the offset in `.debug_str` of an attribute's text.
fn offset(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    value: AttributeValue<Slice<'_>>,
) -> Option<DebugStrOffset> {
    match value {
        AttributeValue::DebugStrRef(offset) => Some(offset),
        AttributeValue::DebugStrOffsetsIndex(index) => {
            let (format, base) = (unit.encoding().format, unit.str_offsets_base);
            let offset = dwarf.debug_str_offsets.get_str_offset(format, base, index);
            offset.ok()
        }
        _ => None,
    }
}

fn now<'d>(section: &SectionBytes, place: usize) -> Option<Cow<'d, [u8]>> {
    let mut room = Vec::new();
    one(section, place, &mut room).map(|text| text.to_vec().into())
}

/// Reads the text at one offset.
pub fn one<'s>(section: &'s SectionBytes, place: usize, room: &'s mut Vec<u8>) -> Option<&'s [u8]> {
    let len = [SHORT_BYTES, TEXT_BYTES_MAX]
        .into_iter()
        .find_map(|bytes| {
            let end = section.size().min(place.checked_add(bytes)?);
            let part = section.part(place..end, room)?;
            let is_cut = part.len() == TEXT_BYTES_MAX;
            memchr::memchr(0, part).or(is_cut.then_some(TEXT_BYTES_MAX))
        })?;
    section.part(place..place + len, room)
}

/// Reads the texts at ascending offsets with `threads` threads.
pub fn read(section: &SectionBytes, places: &[u32], threads: usize) -> Vec<TextBlock> {
    let chunks: Vec<&[u32]> = places.chunks(TextBlock::TEXTS).collect();
    let blocks = parallel::map(threads, chunks.len(), |index, room: &mut Room| {
        Some(block(section, chunks[index], room))
    });
    blocks.into_iter().map(|(_, block)| block).collect()
}

#[derive(Default)]
struct Room {
    window: Vec<u8>,
    long: Vec<u8>,
}

fn block(section: &SectionBytes, places: &[u32], room: &mut Room) -> TextBlock {
    let mut block = TextBlock::default();
    let stretch = places
        .last()
        .zip(places.first())
        .map_or(0, |(last, first)| last - first);
    let bytes_max = (stretch as usize + TEXT_BYTES_MAX) * SHARED_MAX;
    let mut rest = places;
    while let Some(&first) = rest.first() {
        let apart =
            |pair: &[u32]| pair[1] - pair[0] > GAP_BYTES_MAX || pair[1] - first > WINDOW_BYTES;
        let together = rest
            .windows(2)
            .position(apart)
            .map_or(rest.len(), |last| last + 1);
        let (group, behind) = rest.split_at(together);
        rest = behind;
        let start = first as usize;
        let last = group.last().map_or(start, |last| *last as usize);
        let end = section.size().min(last + SHORT_BYTES);
        let window = section.part(start.min(end)..end, &mut room.window);
        for &place in group {
            let within = place as usize - start;
            let rest = window
                .and_then(|window| window.get(within..))
                .unwrap_or_default();
            let text = match memchr::memchr(0, rest) {
                Some(len) => &rest[..len],
                None => one(section, place as usize, &mut room.long).unwrap_or_default(),
            };
            let fits = block.bytes() + text.len() <= bytes_max;
            block.push(if fits { text } else { &[] });
        }
    }
    block.shrink();
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::pool::Pool;

    #[test]
    fn texts_are_those_at_their_places() {
        let mut bytes = b"\0first\0second\0".to_vec();
        bytes.resize(100_000, b'x');
        bytes.extend(b"\0far\0");
        let long = bytes.len() as u32;
        bytes.extend([b'y'; 3000]);
        bytes.extend(b"\0no end");
        let cut_off = bytes.len() as u32 - 6;
        let section = SectionBytes::in_memory(bytes);
        let mut pool = Pool::default();
        let places = [long, 7, 1, 100_001, 9, 1, 0, cut_off, u32::MAX, 50_000];
        let numbers: Vec<u32> = places.map(|place| pool.add(Text::At(place))).into();
        let own = pool.add(Text::Bytes(b"own"[..].into()));
        let known = pool.read(|places| read(&section, places, 2));
        let texts: Vec<&[u8]> = numbers.iter().map(|number| known.get(*number)).collect();
        let x = vec![b'x'; 50_000];
        let y = [b'y'; 3000];
        let expected: [&[u8]; 10] = [
            &y, b"second", b"first", b"far", b"cond", b"first", b"", b"", b"", &x,
        ];
        assert_eq!(texts, expected);
        assert_eq!((numbers[2], known.get(own)), (numbers[5], &b"own"[..]));
    }

    #[test]
    fn ends_that_all_share_are_left_out() {
        let mut bytes = vec![b'z'; 60_000];
        bytes.push(0);
        let section = SectionBytes::in_memory(bytes);
        let places: Vec<u32> = (0..4096).collect();
        let [block] = &read(&section, &places, 1)[..] else {
            panic!("it is one block");
        };
        assert!(block.bytes() <= (4096 + TEXT_BYTES_MAX) * SHARED_MAX);
    }
}
