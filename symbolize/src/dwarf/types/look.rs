//! An open unit, and what its entries say about types.

use std::ops::Range;

use gimli::{AttributeValue, DebuggingInformationEntry, Dwarf, Unit, UnitOffset};

use super::super::names::EntryPlace;
use super::super::reader::Opened;
use super::super::sections::Slice;
use super::super::strings::Strings;
use crate::table::TEXT_BYTES_MAX;
use crate::types::TypeId;

/// An entry of a unit, with its attributes.
pub type Entry<'w> = DebuggingInformationEntry<Slice<'w>>;

/// The target of a reference attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference {
    /// The entry at this place.
    Place(EntryPlace),
    /// A type in a unit of its own, by its signature.
    Signature(u64),
}

/// The bit of a [`TypeId`] that says that the entry is in the supplementary file.
const SUPPLEMENTARY: u64 = 1 << 63;

/// The bit of a [`TypeId`] that says that it is the signature of a type in a unit of its own. A
/// signature has 64 bits, of which two are lost; the directory stores signatures without these.
const SIGNATURE: u64 = 1 << 62;

/// The bits of a signature that are kept.
pub const SIGNATURE_BITS: u64 = SIGNATURE - 1;

impl Reference {
    /// Packs the reference into a number that is unique in the file.
    pub fn id(self) -> TypeId {
        match self {
            Reference::Signature(number) => SIGNATURE | number & SIGNATURE_BITS,
            Reference::Place(place) if place.supplementary => SUPPLEMENTARY | place.offset as u64,
            Reference::Place(place) => place.offset as u64,
        }
    }

    /// Unpacks a number that [`Reference::id`] made.
    pub fn of(id: TypeId) -> Reference {
        if id & SIGNATURE != 0 && id & SUPPLEMENTARY == 0 {
            return Reference::Signature(id & SIGNATURE_BITS);
        }
        Reference::Place(EntryPlace {
            supplementary: id & SUPPLEMENTARY != 0,
            offset: (id & !SUPPLEMENTARY) as usize,
        })
    }
}

/// A unit and its position.
pub struct Look<'l, 'w, 'd> {
    dwarf: &'l Dwarf<Slice<'d>>,
    /// The open unit.
    pub unit: &'l Unit<Slice<'w>>,
    strings: Strings<'l>,
    is_supplementary: bool,
    /// Range of the unit in the section.
    place: Range<usize>,
}

impl<'l, 'w, 'd> Look<'l, 'w, 'd> {
    /// Looks into a unit that was opened.
    pub fn new(opened: &'l Opened<'l, 'w, 'd>) -> Look<'l, 'w, 'd> {
        let header = &opened.unit.header;
        let start = header.debug_info_offset().map_or(0, |start| start.0);
        Look {
            dwarf: opened.dwarf,
            unit: &opened.unit,
            strings: opened.strings,
            is_supplementary: opened.is_supplementary,
            place: start..start.saturating_add(header.length_including_self()),
        }
    }

    /// Returns the place of an entry of this unit.
    pub fn place_of(&self, offset: UnitOffset) -> EntryPlace {
        EntryPlace {
            supplementary: self.is_supplementary,
            offset: self.place.start.saturating_add(offset.0),
        }
    }

    /// Returns the offset of a place in this unit; `None` if it is in another one.
    pub fn offset_of(&self, place: EntryPlace) -> Option<UnitOffset> {
        let is_here =
            place.supplementary == self.is_supplementary && self.place.contains(&place.offset);
        is_here.then(|| UnitOffset(place.offset - self.place.start))
    }

    /// Returns the entry at an offset of this unit; None if there is no valid one.
    pub fn entry(&self, offset: UnitOffset) -> Option<Entry<'w>> {
        self.unit.entry(offset).ok()
    }

    /// Calls `take` with each child of an entry, up to the first one for which it returns
    /// something.
    pub fn find_child<T>(
        &self,
        of: UnitOffset,
        mut take: impl FnMut(&Entry<'w>) -> Option<T>,
    ) -> Option<T> {
        let mut tree = self.unit.entries_tree(Some(of)).ok()?;
        let mut children = tree.root().ok()?.children();
        while let Ok(Some(child)) = children.next() {
            if let Some(taken) = take(child.entry()) {
                return Some(taken);
            }
        }
        None
    }

    /// Returns the target of a reference attribute.
    pub fn reference(&self, entry: &Entry<'_>, name: gimli::DwAt) -> Option<Reference> {
        let place = |supplementary, offset| {
            Some(Reference::Place(EntryPlace {
                supplementary,
                offset,
            }))
        };
        match entry.attr_value(name)? {
            AttributeValue::UnitRef(offset) => Some(Reference::Place(self.place_of(offset))),
            AttributeValue::DebugInfoRef(offset) => place(self.is_supplementary, offset.0),
            AttributeValue::DebugInfoRefSup(offset) => place(true, offset.0),
            AttributeValue::DebugTypesRef(number) => Some(Reference::Signature(number.0)),
            _ => None,
        }
    }

    /// Returns the type of an entry; `None` if it has none, which means `void`.
    pub fn kind(&self, entry: &Entry<'_>) -> Option<TypeId> {
        self.reference(entry, gimli::DW_AT_type).map(Reference::id)
    }

    /// Returns the text of an attribute, cut to `TEXT_BYTES_MAX`; None if the entry has no such
    /// attribute.
    pub fn text(&self, entry: &Entry<'_>, name: gimli::DwAt) -> Option<String> {
        let value = entry.attr_value(name)?;
        let bytes = self.strings.bytes(self.dwarf, self.unit, value)?;
        let bytes = bytes.get(..TEXT_BYTES_MAX).unwrap_or(&bytes);
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Returns the name of an entry (`DW_AT_name`); None if it has none, or an empty one.
    pub fn name(&self, entry: &Entry<'_>) -> Option<String> {
        let name = self.text(entry, gimli::DW_AT_name)?;
        (!name.is_empty()).then_some(name)
    }

    /// Returns the linkage name; `None` if it is the same as the name.
    pub fn linkage_name(&self, entry: &Entry<'_>) -> Option<String> {
        let old = || self.text(entry, gimli::DW_AT_MIPS_linkage_name);
        self.text(entry, gimli::DW_AT_linkage_name).or_else(old)
    }

    /// Returns an address that is given directly or as an index into a list.
    pub fn address(&self, entry: &Entry<'w>, name: gimli::DwAt) -> Option<u64> {
        match entry.attr_value(name)? {
            AttributeValue::Addr(address) => Some(address),
            AttributeValue::DebugAddrIndex(index) => {
                let (size, base) = (self.unit.header.address_size(), self.unit.addr_base);
                self.dwarf.debug_addr.get_address(size, base, index).ok()
            }
            _ => None,
        }
    }
}

/// Whether a flag is set.
pub fn has(entry: &Entry<'_>, name: gimli::DwAt) -> bool {
    matches!(entry.attr_value(name), Some(AttributeValue::Flag(true)))
}

/// Returns the value of a constant attribute.
pub fn number(entry: &Entry<'_>, name: gimli::DwAt) -> Option<u64> {
    entry.attr_value(name)?.udata_value()
}

/// Returns the calling convention of a function, or how a structure is passed.
pub fn convention(entry: &Entry<'_>) -> Option<gimli::DwCc> {
    match entry.attr_value(gimli::DW_AT_calling_convention)? {
        AttributeValue::CallingConvention(convention) => Some(convention),
        value => value.u8_value().map(gimli::DwCc),
    }
}

/// Returns the value of a constant attribute that may be negative.
pub fn signed(entry: &Entry<'_>, name: gimli::DwAt) -> Option<i64> {
    entry.attr_value(name)?.sdata_value()
}
