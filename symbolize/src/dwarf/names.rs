//! The names of functions, by the entries that tell of them.

use std::ops::Range;

use gimli::{AttributeValue, Dwarf, Unit, UnitOffset};

use super::sections::Slice;
use super::strings::Strings;
use crate::table::pool::Text;

/// Entries that refer to one another until there is a name: real ones two or
/// three.
pub const REFERENCES_MAX: usize = 16;

/// A place in `.debug_info`, of the file itself or of the supplementary one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryPlace {
    pub supplementary: bool,
    pub offset: usize,
}

/// The name of a function, as far as one unit tells.
#[derive(Debug, Clone, Default)]
pub struct Name<'d> {
    pub text: Option<Text<'d>>,
    /// As the linker knows it: there is no better one.
    pub is_linkage: bool,
    /// The entry of another unit that tells more.
    pub next: Option<EntryPlace>,
}

/// The names that the entries of one unit tell of.
pub struct Names<'n, 'w, 'd> {
    dwarf: &'n Dwarf<Slice<'d>>,
    unit: &'n Unit<Slice<'w>>,
    strings: Strings<'n>,
    is_supplementary: bool,
    /// Where in the section the unit is.
    place: Range<usize>,
}

impl<'n, 'w, 'd> Names<'n, 'w, 'd> {
    pub fn new(
        dwarf: &'n Dwarf<Slice<'d>>,
        unit: &'n Unit<Slice<'w>>,
        strings: Strings<'n>,
        is_supplementary: bool,
    ) -> Names<'n, 'w, 'd> {
        let start = unit.header.debug_info_offset().map_or(0, |start| start.0);
        Names {
            dwarf,
            unit,
            strings,
            is_supplementary,
            place: start..start.saturating_add(unit.header.length_including_self()),
        }
    }

    /// The name of the function that an entry tells of: as the linker knows
    /// it, else as in the source text, its own or that of the entry that it
    /// refers to.
    pub fn function_name(&self, place: EntryPlace) -> Name<'d> {
        let mut name = Name::default();
        let mut next = Some(place);
        for _ in 0..REFERENCES_MAX {
            let Some(place) = next.take() else { break };
            if place.supplementary != self.is_supplementary || !self.place.contains(&place.offset) {
                name.next = Some(place);
                break;
            }
            let Some(entry) = self.entry(place) else {
                break;
            };
            if entry.linkage_name.is_some() {
                return Name {
                    text: entry.linkage_name,
                    is_linkage: true,
                    next: None,
                };
            }
            name.text = name.text.or(entry.name);
            next = entry.origin;
        }
        name
    }

    fn entry(&self, place: EntryPlace) -> Option<Entry<'d>> {
        let offset = UnitOffset(place.offset - self.place.start);
        let mut entries = self.unit.entries_raw(Some(offset)).ok()?;
        let abbreviation = entries.read_abbreviation().ok()??;
        let mut found = Entry::default();
        let (mut linkage_name, mut name) = (None, None);
        for &spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(spec).ok()?;
            match attribute.name() {
                gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                    linkage_name = Some(attribute.value());
                }
                gimli::DW_AT_name => name = Some(attribute.value()),
                gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                    found.origin = self.reference(attribute.value());
                }
                _ => {}
            }
        }
        // What is not read yet is taken for a name.
        let text = |value| {
            let text = self.strings.text(self.dwarf, self.unit, value);
            text.filter(|text| !matches!(text, Text::Bytes(bytes) if bytes.is_empty()))
        };
        found.linkage_name = linkage_name.and_then(text);
        // A text in memory is a look into a section that is mostly not in any cache.
        if found.linkage_name.is_none() {
            found.name = name.and_then(text);
        }
        Some(found)
    }

    /// Where the entry is that an attribute refers to.
    fn reference(&self, value: AttributeValue<Slice<'_>>) -> Option<EntryPlace> {
        let (supplementary, offset) = match value {
            AttributeValue::UnitRef(offset) => {
                let offset = self.place.start.checked_add(offset.0)?;
                (self.is_supplementary, offset)
            }
            AttributeValue::DebugInfoRef(offset) => (self.is_supplementary, offset.0),
            AttributeValue::DebugInfoRefSup(offset) => (true, offset.0),
            _ => return None,
        };
        Some(EntryPlace {
            supplementary,
            offset,
        })
    }
}

/// What an entry says of its function's name.
#[derive(Default)]
struct Entry<'d> {
    linkage_name: Option<Text<'d>>,
    name: Option<Text<'d>>,
    origin: Option<EntryPlace>,
}
