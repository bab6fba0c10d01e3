//! Opens the units of a file.

use std::borrow::Cow;

use gimli::{Dwarf, Unit};

use super::names::{EntryPlace, Name, Names};
use super::ranges::{Lists, Stretch};
use super::sections::{Sections, Slice, UnitBytes};
use super::strings::Strings;
use super::unit::{self, Window};
use crate::object::SectionBytes;

/// Maximum number of units. The largest known programs have 100,000.
const UNITS_MAX: usize = 1 << 20;

/// Returns the offsets in `.debug_info` at which units start. What follows a damaged header is
/// lost.
pub fn unit_offsets(sections: &Sections) -> Vec<usize> {
    let mut offsets = Vec::new();
    let Some(bytes) = sections.units() else {
        return offsets;
    };
    let (len, mut at) = (bytes.info.size(), 0);
    let mut room = Vec::new();
    while at < len && offsets.len() < UNITS_MAX {
        let head = bytes
            .info
            .part(at..len.min(at + unit::LENGTH_BYTES_MAX), &mut room);
        let behind = head.and_then(|head| at.checked_add(unit::length(head)?));
        let Some(behind) = behind.filter(|behind| *behind <= len) else {
            break;
        };
        offsets.push(at);
        at = behind;
    }
    offsets
}

fn offsets_in_memory(dwarf: &Dwarf<Slice<'_>>) -> Vec<usize> {
    let mut headers = dwarf.units();
    let mut offsets = Vec::new();
    while let Ok(Some(header)) = headers.next()
        && offsets.len() < UNITS_MAX
    {
        offsets.extend(header.debug_info_offset().map(|offset| offset.0));
    }
    offsets
}

/// The units of one `.debug_info`.
struct Units<'d> {
    dwarf: Dwarf<Slice<'d>>,
    /// Sections that are not in `dwarf` because they are not in memory; `None` if all are.
    bytes: Option<&'d UnitBytes>,
    /// `.debug_ranges` if it is not in memory; for split units that of the skeletons' file.
    ranges: Option<&'d SectionBytes>,
    offsets: Cow<'d, [usize]>,
}

impl<'d> Units<'d> {
    fn open<'w>(&'w self, index: usize, window: &'w mut Window) -> Option<Unit<Slice<'w>>> {
        let Some(bytes) = self.bytes else {
            return self.in_memory(index);
        };
        let place = self.place(bytes, index)?;
        unit::read(&self.dwarf, bytes, self.strings(), place, window)
    }

    /// Opens a unit with only its first entry, and without lines.
    fn open_head<'w>(&'w self, index: usize, window: &'w mut Window) -> Option<Unit<Slice<'w>>> {
        let Some(bytes) = self.bytes else {
            return self.in_memory(index);
        };
        unit::read_head(&self.dwarf, bytes, self.place(bytes, index)?, window)
    }

    fn place(&self, bytes: &UnitBytes, index: usize) -> Option<(usize, usize)> {
        let start = *self.offsets.get(index)?;
        let behind = self.offsets.get(index + 1).copied();
        Some((start, behind.unwrap_or_else(|| bytes.info.size())))
    }

    fn strings(&self) -> Strings<'d> {
        let section = self.bytes.and_then(|bytes| bytes.strings.as_ref());
        section.map_or(Strings::Held, Strings::InFile)
    }

    fn in_memory(&self, index: usize) -> Option<Unit<Slice<'d>>> {
        let offset = gimli::DebugInfoOffset(*self.offsets.get(index)?);
        let header = self.dwarf.unit_header(offset).ok()?;
        unit::in_memory(&self.dwarf, header)
    }

    /// Returns the unit that contains an offset of the section.
    fn unit_of(&self, offset: usize) -> Option<usize> {
        let behind = self.offsets.partition_point(|&start| start <= offset);
        behind.checked_sub(1)
    }
}

/// An open unit, with what belongs to its file.
pub struct Opened<'r, 'w, 'd> {
    /// The sections of the unit's file.
    pub dwarf: &'r Dwarf<Slice<'d>>,
    /// The open unit.
    pub unit: Unit<Slice<'w>>,
    /// Where the unit's strings are.
    pub strings: Strings<'d>,
    /// Whether the unit is in the supplementary file.
    pub is_supplementary: bool,
}

/// Reads the units of one file. Created for each use, as it borrows the sections.
pub struct Reader<'d> {
    main: Units<'d>,
    supplementary: Option<Units<'d>>,
}

impl<'d> Reader<'d> {
    /// Creates a reader for the units that start at the offsets `units` in `.debug_info`
    /// ([`unit_offsets`]), and for those of the supplementary file, if there is one.
    pub fn new(
        sections: &'d Sections,
        supplementary: Option<&'d Sections>,
        units: &'d [usize],
    ) -> Reader<'d> {
        let mut dwarf = sections.dwarf();
        let supplementary = supplementary.map(|sections| {
            dwarf.set_sup(sections.dwarf());
            Units {
                dwarf: sections.dwarf(),
                bytes: sections.units(),
                ranges: sections.units().map(|bytes| &bytes.ranges),
                offsets: unit_offsets(sections).into(),
            }
        });
        Reader {
            main: Units {
                dwarf,
                bytes: sections.units(),
                ranges: sections.units().map(|bytes| &bytes.ranges),
                offsets: units.into(),
            },
            supplementary,
        }
    }

    /// A reader for the entries of one split unit. `ranges` is the section of the file that has its
    /// skeleton.
    pub fn of_split(dwarf: Dwarf<Slice<'d>>, ranges: Option<&'d SectionBytes>) -> Reader<'d> {
        let offsets = offsets_in_memory(&dwarf);
        Reader {
            main: Units {
                dwarf,
                bytes: None,
                ranges,
                offsets: offsets.into(),
            },
            supplementary: None,
        }
    }

    /// The sections of the main file that are in memory.
    pub fn dwarf(&self) -> &Dwarf<Slice<'d>> {
        &self.main.dwarf
    }

    /// Number of units in the main file; those of the supplementary file are not counted.
    pub fn units(&self) -> usize {
        self.main.offsets.len()
    }

    /// Opens a unit; its bytes are read into `window`.
    pub fn open<'w>(&'w self, index: usize, window: &'w mut Window) -> Option<Unit<Slice<'w>>> {
        self.main.open(index, window)
    }

    /// Opens as much of a unit as says where its code is.
    pub fn open_head<'w>(
        &'w self,
        index: usize,
        window: &'w mut Window,
    ) -> Option<Unit<Slice<'w>>> {
        self.main.open_head(index, window)
    }

    /// Opens a unit of sections that are in memory.
    pub fn in_memory(&self, index: usize) -> Option<Unit<Slice<'d>>> {
        self.main.in_memory(index)
    }

    /// The range lists of the file's own units.
    pub fn lists<'l>(&'l self, room: &'l mut Stretch) -> Lists<'l> {
        Lists {
            section: self.main.ranges,
            room,
        }
    }

    /// The section with the ranges of the file's own units, or of their skeletons.
    pub fn ranges(&self) -> Option<&'d SectionBytes> {
        self.main.ranges
    }

    /// Whether the lowest bit of addresses may mark Thumb code.
    pub fn may_be_thumb(&self) -> bool {
        self.main.bytes.is_some_and(|bytes| bytes.may_be_thumb)
    }

    /// Where the strings of the file's own units are.
    pub fn strings(&self) -> Strings<'d> {
        self.main.strings()
    }

    /// Returns the number of the unit that contains an entry. Units of both files are numbered in
    /// the order of their entries.
    pub fn unit_of(&self, place: EntryPlace) -> Option<usize> {
        let own = self.main.offsets.len();
        match (&self.supplementary, place.supplementary) {
            (Some(units), true) => Some(own + units.unit_of(place.offset)?),
            (None, true) => None,
            (_, false) => self.main.unit_of(place.offset),
        }
    }

    /// Number of all units, including those of the supplementary file.
    pub fn all_units(&self) -> usize {
        let others = self.supplementary.as_ref();
        self.units() + others.map_or(0, |units| units.offsets.len())
    }

    /// Opens a unit by the number that [`unit_of`](Self::unit_of) returns.
    pub fn open_numbered<'w>(
        &'w self,
        number: usize,
        window: &'w mut Window,
    ) -> Option<Opened<'w, 'w, 'd>> {
        let (units, index) = self.numbered(number)?;
        Some(Opened {
            dwarf: &units.dwarf,
            unit: units.open(index, window)?,
            strings: units.strings(),
            is_supplementary: !std::ptr::eq(units, &self.main),
        })
    }

    /// Splits a unit number: which file's units it belongs to, and its index among them.
    fn numbered(&self, number: usize) -> Option<(&Units<'d>, usize)> {
        match number.checked_sub(self.main.offsets.len()) {
            Some(index) => Some((self.supplementary.as_ref()?, index)),
            None => Some((&self.main, number)),
        }
    }

    /// Reads the names of functions in one unit.
    pub fn names(
        &self,
        unit: usize,
        places: &[EntryPlace],
        window: &mut Window,
    ) -> Option<Vec<Name<'d>>> {
        let (units, index) = self.numbered(unit)?;
        let unit = units.open(index, window)?;
        let is_supplementary = !std::ptr::eq(units, &self.main);
        let names = Names::new(&units.dwarf, &unit, units.strings(), is_supplementary);
        Some(places.iter().map(|p| names.function_name(*p)).collect())
    }
}
