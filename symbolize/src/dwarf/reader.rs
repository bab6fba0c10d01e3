//! The units of a file, and the names of functions anywhere in it.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use gimli::{AttributeValue, DebugInfoOffset, Dwarf, Unit, UnitOffset};

use super::files::Files;
use super::flatten::Scratch;
use super::sections::{Sections, Slice};
use super::split::{Split, SplitUnit};
use super::{flatten, rows, scopes};
use crate::table::unit::UnitRanges;

/// The largest known programs have 100,000.
const UNITS_MAX: usize = 1 << 20;

/// Entries that refer to one another until there is a name: real ones two or
/// three.
const REFERENCES_MAX: usize = 16;

/// A place in `.debug_info`, of the file itself or of the supplementary one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EntryPlace {
    pub supplementary: bool,
    pub offset: usize,
}

/// Where in `.debug_info` units start. What follows a damaged header is lost.
pub fn unit_offsets(sections: &Sections) -> Vec<usize> {
    offsets(&sections.dwarf())
}

fn offsets(dwarf: &Dwarf<Slice<'_>>) -> Vec<usize> {
    let mut headers = dwarf.units();
    let mut offsets = Vec::new();
    while let Ok(Some(header)) = headers.next()
        && offsets.len() < UNITS_MAX
    {
        offsets.extend(header.debug_info_offset().map(|offset| offset.0));
    }
    offsets
}

type SharedUnit<'d> = Arc<Unit<Slice<'d>>>;

/// `None` inside if it cannot be read.
type Lazy<T> = OnceLock<Option<T>>;

/// Units of one `.debug_info`, read when they are needed.
struct Units<'d> {
    dwarf: Dwarf<Slice<'d>>,
    offsets: std::borrow::Cow<'d, [usize]>,
    /// Those that others refer to. The rest is not kept: a unit has all its
    /// abbreviations and files, which together are more than the section.
    referred: Box<[Lazy<SharedUnit<'d>>]>,
}

impl<'d> Units<'d> {
    fn new(dwarf: Dwarf<Slice<'d>>, offsets: std::borrow::Cow<'d, [usize]>) -> Units<'d> {
        Units {
            referred: offsets.iter().map(|_| OnceLock::new()).collect(),
            dwarf,
            offsets,
        }
    }

    fn read(&self, index: usize) -> Option<Unit<Slice<'d>>> {
        let offset = DebugInfoOffset(*self.offsets.get(index)?);
        let header = self.dwarf.unit_header(offset).ok()?;
        self.dwarf.unit(header).ok()
    }

    /// The unit that holds a place of the section, and where in it that is.
    fn unit_of(&self, offset: usize) -> Option<(SharedUnit<'d>, UnitOffset)> {
        let behind = self.offsets.partition_point(|&start| start <= offset);
        let index = behind.checked_sub(1)?;
        let read = || self.read(index).map(Arc::new);
        let unit = self.referred[index].get_or_init(read).clone()?;
        let within = UnitOffset(offset - self.offsets[index]);
        Some((unit, within))
    }
}

/// Reads units of one file. Made for each use: what it keeps borrows from the
/// sections.
pub struct Reader<'d> {
    main: Units<'d>,
    supplementary: Option<Units<'d>>,
}

impl<'d> Reader<'d> {
    pub fn new(
        sections: &'d Sections,
        supplementary: Option<&'d Sections>,
        units: &'d [usize],
    ) -> Reader<'d> {
        let mut dwarf = sections.dwarf();
        let supplementary = supplementary.map(|sections| {
            dwarf.set_sup(sections.dwarf());
            let dwarf = sections.dwarf();
            let offsets = offsets(&dwarf);
            Units::new(dwarf, offsets.into())
        });
        Reader {
            main: Units::new(dwarf, units.into()),
            supplementary,
        }
    }

    /// A reader of the entries of one split unit.
    pub fn of_split(dwarf: Dwarf<Slice<'d>>) -> Reader<'d> {
        let offsets = offsets(&dwarf);
        Reader {
            main: Units::new(dwarf, offsets.into()),
            supplementary: None,
        }
    }

    pub fn dwarf(&self) -> &Dwarf<Slice<'d>> {
        &self.main.dwarf
    }

    pub fn units(&self) -> usize {
        self.main.offsets.len()
    }

    pub fn unit(&self, index: usize) -> Option<Unit<Slice<'d>>> {
        self.main.read(index)
    }

    /// What a unit says of its code.
    pub fn unit_ranges(
        &self,
        index: usize,
        split: &Split,
        columns: bool,
        scratch: &mut Scratch,
    ) -> Option<UnitRanges<'d>> {
        let unit = self.unit(index)?;
        let skeleton = Relocated::of(&unit);
        let dwarf = self.dwarf();
        let rows = rows::read(&unit, columns, std::mem::take(&mut scratch.rows));
        let mut files = Files::new(dwarf, &unit);
        let found = unit.dwo_id.and_then(|id| split.find(dwarf, &unit, id));
        let ranges = match found {
            Some(found) => found.with(dwarf, |entries| {
                let SplitUnit { reader, mut unit } = SplitUnit::new(entries)?;
                skeleton.apply(&mut unit);
                let ranges = reader.flat(&unit, &rows, &mut files, columns, scratch);
                Some(ranges.into_owned())
            }),
            None => Some(self.flat(&unit, &rows, &mut files, columns, scratch)),
        };
        scratch.rows = rows;
        ranges
    }

    /// The entries of a unit, with its rows.
    fn flat<'f: 'o, 'o>(
        &self,
        unit: &Unit<Slice<'d>>,
        rows: &[rows::Row],
        files: &mut Files<'_, 'f>,
        columns: bool,
        scratch: &mut Scratch,
    ) -> UnitRanges<'o>
    where
        'd: 'o,
    {
        let room = std::mem::take(&mut scratch.scopes);
        let mut scopes = scopes::read(self.dwarf(), unit, columns, room);
        let names = Names::new(self, unit);
        let ranges = flatten::flatten(&names, &mut scopes, rows, files, scratch);
        scratch.scopes = scopes;
        ranges
    }
}

/// The names of the functions that a unit tells of, its own or others'.
pub struct Names<'n, 'd> {
    reader: &'n Reader<'d>,
    unit: &'n Unit<Slice<'d>>,
    /// Where in the section the unit is.
    place: Range<usize>,
}

impl<'n, 'd> Names<'n, 'd> {
    fn new(reader: &'n Reader<'d>, unit: &'n Unit<Slice<'d>>) -> Names<'n, 'd> {
        let start = unit.header.debug_info_offset().map_or(0, |start| start.0);
        Names {
            reader,
            unit,
            place: start..start.saturating_add(unit.header.length_including_self()),
        }
    }

    /// The name of the function that an entry tells of: as the linker knows
    /// it, else as in the source text, its own or that of the entry that it
    /// refers to.
    pub fn function_name(&self, place: EntryPlace) -> Option<&'d [u8]> {
        let mut name = None;
        let mut next = Some(place);
        for _ in 0..REFERENCES_MAX {
            let Some(place) = next.take() else { break };
            let Some(entry) = self.entry(place) else {
                break;
            };
            if entry.linkage_name.is_some() {
                return entry.linkage_name;
            }
            name = name.or(entry.name);
            next = entry.origin;
        }
        name
    }

    fn entry(&self, place: EntryPlace) -> Option<Entry<'d>> {
        let main = &self.reader.main;
        if !place.supplementary && self.place.contains(&place.offset) {
            let offset = UnitOffset(place.offset - self.place.start);
            return Entry::read(&main.dwarf, self.unit, offset, false);
        }
        let units = match place.supplementary {
            true => self.reader.supplementary.as_ref()?,
            false => main,
        };
        let (unit, offset) = units.unit_of(place.offset)?;
        Entry::read(&units.dwarf, &unit, offset, place.supplementary)
    }
}

/// What a split unit takes over from its skeleton.
struct Relocated {
    low_pc: u64,
    addr_base: gimli::DebugAddrBase,
    rnglists_base: gimli::DebugRngListsBase,
}

impl Relocated {
    fn of(skeleton: &Unit<Slice<'_>>) -> Relocated {
        Relocated {
            low_pc: skeleton.low_pc,
            addr_base: skeleton.addr_base,
            rnglists_base: skeleton.rnglists_base,
        }
    }

    fn apply(&self, unit: &mut Unit<Slice<'_>>) {
        unit.low_pc = self.low_pc;
        unit.addr_base = self.addr_base;
        if unit.header.version() < 5 {
            unit.rnglists_base = self.rnglists_base;
        }
    }
}

/// What an entry says of its function's name.
#[derive(Default)]
struct Entry<'d> {
    linkage_name: Option<&'d [u8]>,
    name: Option<&'d [u8]>,
    origin: Option<EntryPlace>,
}

impl<'d> Entry<'d> {
    fn read(
        dwarf: &Dwarf<Slice<'d>>,
        unit: &Unit<Slice<'d>>,
        offset: UnitOffset,
        supplementary: bool,
    ) -> Option<Entry<'d>> {
        let mut entries = unit.entries_raw(Some(offset)).ok()?;
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
                    found.origin = reference(unit, attribute.value(), supplementary);
                }
                _ => {}
            }
        }
        let text = |value| {
            let text = dwarf.attr_string(unit, value).ok()?;
            Some(text.slice()).filter(|text| !text.is_empty())
        };
        found.linkage_name = linkage_name.and_then(text);
        // A text is a look into a section that is mostly not in any cache.
        if found.linkage_name.is_none() {
            found.name = name.and_then(text);
        }
        Some(found)
    }
}

/// Where the entry is that an attribute refers to.
pub fn reference(
    unit: &Unit<Slice<'_>>,
    value: AttributeValue<Slice<'_>>,
    supplementary: bool,
) -> Option<EntryPlace> {
    let (supplementary, offset) = match value {
        AttributeValue::UnitRef(offset) => {
            let start = unit.header.debug_info_offset()?.0;
            (supplementary, start.checked_add(offset.0)?)
        }
        AttributeValue::DebugInfoRef(offset) => (supplementary, offset.0),
        AttributeValue::DebugInfoRefSup(offset) => (true, offset.0),
        _ => return None,
    };
    Some(EntryPlace {
        supplementary,
        offset,
    })
}
