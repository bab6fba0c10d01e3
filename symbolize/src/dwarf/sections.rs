//! The sections of debug information, in memory.
//!
//! Sections that only tell of variables and types are not read.

use gimli::{Dwarf, DwarfPackageSections, DwarfSections, EndianSlice, LittleEndian, SectionId};

use crate::OpenError;
use crate::object::Object;

pub type Slice<'d> = EndianSlice<'d, LittleEndian>;

/// Those that lines and functions are in.
const NEEDED: [SectionId; 10] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugInfo,
    SectionId::DebugLine,
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

/// How many bytes were read, of all sections and of `.debug_info`, and how
/// many may be.
#[derive(Debug, Clone, Copy)]
struct Loaded {
    all: u64,
    info: u64,
    max: u64,
}

impl Loaded {
    fn up_to(max: u64) -> Loaded {
        Loaded {
            all: 0,
            info: 0,
            max,
        }
    }
}

#[derive(Debug)]
enum Kind {
    Whole(Box<DwarfSections<Vec<u8>>>),
    Package(Box<DwarfPackageSections<Vec<u8>>>),
}

impl Sections {
    pub fn read(object: &Object, bytes_max: u64) -> Result<Sections, OpenError> {
        let mut loaded = Loaded::up_to(bytes_max);
        let sections = DwarfSections::load(|id| load(object, id, Some(id.name()), &mut loaded))?;
        Ok(Sections {
            kind: Kind::Whole(Box::new(sections)),
            loaded,
        })
    }

    /// Those of a `.dwo` file, whose names end so.
    pub fn read_split(object: &Object, bytes_max: u64) -> Result<Sections, OpenError> {
        let mut loaded = Loaded::up_to(bytes_max);
        let sections = DwarfSections::load(|id| load(object, id, id.dwo_name(), &mut loaded))?;
        Ok(Sections {
            kind: Kind::Whole(Box::new(sections)),
            loaded,
        })
    }

    /// Those of a `.dwp` file: many `.dwo` files in one.
    pub fn read_package(object: &Object, bytes_max: u64) -> Result<Sections, OpenError> {
        let mut loaded = Loaded::up_to(bytes_max);
        let load = |id: SectionId| {
            let name = match id {
                SectionId::DebugCuIndex | SectionId::DebugTuIndex => Some(id.name()),
                _ => id.dwo_name(),
            };
            // The index cuts each section that it lists, needed or not.
            read(object, id, name, &mut loaded).map_err(LoadError)
        };
        let sections = DwarfPackageSections::load(load).map_err(|error| error.0)?;
        Ok(Sections {
            kind: Kind::Package(Box::new(sections)),
            loaded,
        })
    }

    pub fn dwarf(&self) -> Dwarf<Slice<'_>> {
        match &self.kind {
            Kind::Whole(sections) => sections.borrow(|bytes| slice(bytes)),
            Kind::Package(_) => Dwarf::default(),
        }
    }

    /// The unit of a package with that number.
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

    pub fn is_empty(&self) -> bool {
        self.info_bytes() == 0
    }

    pub fn info_bytes(&self) -> usize {
        self.loaded.info as usize
    }

    pub fn heap_bytes(&self) -> usize {
        self.loaded.all as usize
    }
}

fn slice(bytes: &[u8]) -> Slice<'_> {
    EndianSlice::new(bytes, LittleEndian)
}

fn load(
    object: &Object,
    id: SectionId,
    name: Option<&'static str>,
    loaded: &mut Loaded,
) -> Result<Vec<u8>, OpenError> {
    match NEEDED.contains(&id) {
        true => read(object, id, name, loaded),
        false => Ok(Vec::new()),
    }
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
    let bytes = object.debug_section(name, loaded.max - loaded.all)?;
    loaded.all += bytes.len() as u64;
    if id == SectionId::DebugInfo {
        loaded.info = bytes.len() as u64;
    }
    Ok(bytes)
}

/// gimli wants to add its own errors, which are those of the package's index.
struct LoadError(OpenError);

impl From<gimli::Error> for LoadError {
    fn from(_: gimli::Error) -> LoadError {
        LoadError(OpenError::Damaged("split debug information"))
    }
}
