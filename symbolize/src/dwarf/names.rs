//! Reads the names of functions from their entries.

use std::ops::Range;

use gimli::{AttributeValue, Dwarf, Unit, UnitOffset};

use super::sections::Slice;
use super::strings::Strings;
use crate::table::pool::Text;

/// Maximum number of entries that refer to each other before one has a name: real ones need two or
/// three.
pub const REFERENCES_MAX: usize = 16;

/// The position of an entry in `.debug_info`, of the file itself or of the supplementary file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryPlace {
    /// Whether the offset is in the supplementary file.
    pub supplementary: bool,
    /// Offset in `.debug_info`.
    pub offset: usize,
}

/// The name of a function, as far as one unit has it.
#[derive(Debug, Clone, Default)]
pub struct Name<'d> {
    /// The name, if this unit has it.
    pub text: Option<Text<'d>>,
    /// Whether it is the linkage name, which is the best one.
    pub is_linkage: bool,
    /// The entry of another unit where the search goes on.
    pub next: Option<EntryPlace>,
}

/// Reads the names in the entries of one unit.
pub struct Names<'n, 'w, 'd> {
    dwarf: &'n Dwarf<Slice<'d>>,
    unit: &'n Unit<Slice<'w>>,
    strings: Strings<'n>,
    is_supplementary: bool,
    /// Range of the unit in the section.
    place: Range<usize>,
}

impl<'n, 'w, 'd> Names<'n, 'w, 'd> {
    /// Prepares for the names of one unit. `is_supplementary` says whether the unit is in the
    /// supplementary file.
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

    /// Returns the name of the function that an entry describes: the linkage name, else the name in
    /// the source text, from the entry itself or from one that it refers to.
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
        // A text that was not read yet counts as a name.
        let text = |value| {
            let text = self.strings.text(self.dwarf, self.unit, value);
            text.filter(|text| !matches!(text, Text::Bytes(bytes) if bytes.is_empty()))
        };
        found.linkage_name = linkage_name.and_then(text);
        // Reading a text that is in memory accesses a section that is mostly not in any cache, so
        // it is done only if needed.
        if found.linkage_name.is_none() {
            found.name = name.and_then(text);
        }
        Some(found)
    }

    /// Returns the place of the entry that an attribute refers to.
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

/// What an entry says about its function's name.
#[derive(Default)]
struct Entry<'d> {
    linkage_name: Option<Text<'d>>,
    name: Option<Text<'d>>,
    origin: Option<EntryPlace>,
}
