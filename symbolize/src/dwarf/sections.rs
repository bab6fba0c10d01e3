//! The sections of debug information: entries and lines are read unit by unit, strings when the
//! needed ones are known, the others are in memory.
//!
//! Sections that are only about variables and types are not read.

use gimli::{Dwarf, DwarfPackageSections, DwarfSections, EndianSlice, LittleEndian, SectionId};

use crate::OpenError;
use crate::object::{Object, SectionBytes};

/// Bytes of a section of a little-endian file, as gimli reads them.
pub type Slice<'d> = EndianSlice<'d, LittleEndian>;

/// The sections that lines and functions refer to.
const NEEDED: [SectionId; 7] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

/// The sections of one file.
#[derive(Debug)]
pub struct Sections {
    kind: Kind,
    loaded: Loaded,
}

/// How much may be read in parts, as a multiple of the memory limit: the more there is, the longer
/// it takes to find the unit of an address.
const IN_PARTS: u64 = 16;

/// Sizes of all sections and of `.debug_info`, how many bytes are in memory, and how many may be.
#[derive(Debug, Clone, Copy)]
struct Loaded {
    all: u64,
    info: u64,
    held: u64,
    held_max: u64,
}

impl Loaded {
    fn up_to(held_max: u64) -> Loaded {
        Loaded {
            all: 0,
            info: 0,
            held: 0,
            held_max,
        }
    }

    /// Number of bytes that may still be loaded.
    fn left(&self) -> u64 {
        self.held_max.saturating_sub(self.held)
    }

    fn add(&mut self, size: usize, held: usize, name: &'static str) -> Result<(), OpenError> {
        self.all += size as u64;
        self.held += held as u64;
        if self.all > self.held_max.saturating_mul(IN_PARTS) {
            Err(OpenError::Refused(name))
        } else {
            Ok(())
        }
    }
}

/// The sections that are not in memory: nine tenths of all bytes.
#[derive(Debug)]
pub struct UnitBytes {
    /// Whether code may be Thumb. Assemblers set the lowest bit of its addresses, which is not part
    /// of the address.
    pub may_be_thumb: bool,
    /// `.debug_info`.
    pub info: SectionBytes,
    /// `.debug_line`.
    pub line: SectionBytes,
    /// `.debug_ranges`.
    pub ranges: SectionBytes,
    /// `.debug_str`; `None` if it is in memory.
    pub strings: Option<SectionBytes>,
    /// `.debug_aranges`, from which only an index is made.
    pub aranges: SectionBytes,
    /// Maximum size of a unit: link-time optimization can make one unit of a whole program.
    pub unit_max: usize,
}

#[derive(Debug)]
enum Kind {
    /// The sections of a file itself: entries and lines are in the second field, all others in the
    /// first.
    Whole(Box<DwarfSections<Vec<u8>>>, Box<UnitBytes>),
    Split(Box<DwarfSections<Vec<u8>>>),
    Package(Box<DwarfPackageSections<Vec<u8>>>),
}

impl Sections {
    /// Reads the sections. At most `bytes_max` are in memory, including the unit that is being
    /// read.
    pub fn read(object: &Object, bytes_max: u64) -> Result<Sections, OpenError> {
        Sections::read_whole(object, bytes_max, true)
    }

    /// Reads the sections of a supplementary file, with its strings in memory: units of several
    /// files refer to them.
    pub fn read_supplementary(object: &Object, bytes_max: u64) -> Result<Sections, OpenError> {
        Sections::read_whole(object, bytes_max, false)
    }

    fn read_whole(
        object: &Object,
        bytes_max: u64,
        strings_later: bool,
    ) -> Result<Sections, OpenError> {
        let mut loaded = Loaded::up_to(bytes_max);
        let mut parts = |id: SectionId| {
            let bytes = object.debug_section_parts(id.name(), loaded.left())?;
            loaded.add(bytes.size(), bytes.heap_bytes(), id.name())?;
            Ok(bytes)
        };
        let mut units = UnitBytes {
            may_be_thumb: object.machine() == object::elf::EM_ARM.0,
            info: parts(SectionId::DebugInfo)?,
            line: parts(SectionId::DebugLine)?,
            ranges: parts(SectionId::DebugRanges)?,
            aranges: parts(SectionId::DebugAranges)?,
            strings: if strings_later {
                Some(parts(SectionId::DebugStr)?)
            } else {
                None
            },
            unit_max: 0,
        };
        loaded.info = units.info.size() as u64;
        let is_later = |id| match id {
            SectionId::DebugStr => strings_later,
            SectionId::DebugRanges => true,
            _ => false,
        };
        let is_needed = |id| NEEDED.contains(&id) && !is_later(id);
        let needed = |id: SectionId| {
            if is_needed(id) {
                read(object, id, Some(id.name()), &mut loaded)
            } else {
                Ok(Vec::new())
            }
        };
        let sections = DwarfSections::load(needed)?;
        units.unit_max = loaded.left().try_into().unwrap_or(usize::MAX);
        Ok(Sections {
            kind: Kind::Whole(Box::new(sections), Box::new(units)),
            loaded,
        })
    }

    /// Reads the sections of a `.dwo` file, whose names end in `.dwo`.
    pub fn read_split(object: &Object, bytes_max: u64) -> Result<Sections, OpenError> {
        let mut loaded = Loaded::up_to(bytes_max);
        let of_units = [SectionId::DebugInfo, SectionId::DebugLine];
        let needed = |id: SectionId| {
            if NEEDED.contains(&id) || of_units.contains(&id) {
                read(object, id, id.dwo_name(), &mut loaded)
            } else {
                Ok(Vec::new())
            }
        };
        let sections = DwarfSections::load(needed)?;
        Ok(Sections {
            kind: Kind::Split(Box::new(sections)),
            loaded,
        })
    }

    /// Reads the sections of a `.dwp` file: many `.dwo` files in one.
    pub fn read_package(object: &Object, bytes_max: u64) -> Result<Sections, OpenError> {
        let mut loaded = Loaded::up_to(bytes_max);
        let load = |id: SectionId| {
            let name = match id {
                SectionId::DebugCuIndex | SectionId::DebugTuIndex => Some(id.name()),
                _ => id.dwo_name(),
            };
            // The index has slices of each section that it lists, so all are loaded.
            read(object, id, name, &mut loaded).map_err(LoadError)
        };
        let sections = DwarfPackageSections::load(load).map_err(|error| error.0)?;
        Ok(Sections {
            kind: Kind::Package(Box::new(sections)),
            loaded,
        })
    }

    /// The sections that are in memory, in gimli's form; empty for a package.
    pub fn dwarf(&self) -> Dwarf<Slice<'_>> {
        match &self.kind {
            Kind::Whole(sections, _) | Kind::Split(sections) => {
                sections.borrow(|bytes| slice(bytes))
            }
            Kind::Package(_) => Dwarf::default(),
        }
    }

    /// The sections that are not in memory, and so not in `dwarf`.
    pub fn units(&self) -> Option<&UnitBytes> {
        match &self.kind {
            Kind::Whole(_, units) => Some(units),
            Kind::Split(_) | Kind::Package(_) => None,
        }
    }

    /// Whether a package has the unit with that number.
    pub fn has_packaged(&self, id: gimli::DwoId) -> bool {
        let Kind::Package(sections) = &self.kind else {
            return false;
        };
        let package = sections.borrow(|bytes| slice(bytes), slice(&[]));
        package.is_ok_and(|package| package.cu_index.find(id.0).is_some())
    }

    /// Returns the unit of a package with that number.
    pub fn packaged<'s>(
        &'s self,
        id: gimli::DwoId,
        parent: &Dwarf<Slice<'s>>,
    ) -> Option<Dwarf<Slice<'s>>> {
        let Kind::Package(sections) = &self.kind else {
            return None;
        };
        let package = sections.borrow(|bytes| slice(bytes), slice(&[])).ok()?;
        package.find_cu(id, parent).ok()?
    }

    /// Whether some parts could not be read.
    pub fn have_failed(&self) -> bool {
        let failed = |units: &UnitBytes| {
            let whole = [&units.info, &units.line, &units.ranges, &units.aranges];
            whole
                .into_iter()
                .chain(&units.strings)
                .any(SectionBytes::has_failed)
        };
        self.units().is_some_and(failed)
    }

    /// Whether the sections describe no code.
    pub fn is_empty(&self) -> bool {
        self.info_bytes() == 0
    }

    /// Size of `.debug_info`, which describes the code.
    pub fn info_bytes(&self) -> usize {
        self.loaded.info as usize
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        self.loaded.held as usize
    }
}

/// Wraps bytes so that gimli reads them as little-endian.
pub fn slice(bytes: &[u8]) -> Slice<'_> {
    EndianSlice::new(bytes, LittleEndian)
}

fn read(
    object: &Object,
    id: SectionId,
    name: Option<&'static str>,
    loaded: &mut Loaded,
) -> Result<Vec<u8>, OpenError> {
    let Some(name) = name else {
        return Ok(Vec::new());
    };
    let bytes = object.debug_section(name, loaded.left())?;
    loaded.add(bytes.len(), bytes.len(), name)?;
    if id == SectionId::DebugInfo {
        loaded.info = bytes.len() as u64;
    }
    Ok(bytes)
}

/// gimli requires an error type that its own errors, of the package's index, convert to.
struct LoadError(OpenError);

impl From<gimli::Error> for LoadError {
    fn from(_: gimli::Error) -> LoadError {
        LoadError(OpenError::Damaged("split debug information"))
    }
}
