//! Split DWARF: units of which the file has only a skeleton. The entries are in another file: a
//! `.dwo` for each unit, or a `.dwp` with all.
//!
//! The path of a `.dwo` file is not trusted: it is opened below the target's root, and accepted if
//! it contains the unit's number.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use gimli::{Dwarf, DwoId, Unit};

use super::reader::Reader;
use super::sections::{Sections, Slice};
use super::strings::Strings;
use crate::debug_file::DebugFiles;
use crate::object::{Object, SectionBytes};

/// Finds split units.
#[derive(Debug)]
pub struct Split {
    files: DebugFiles,
    bytes_max: u64,
    package: OnceLock<Option<Sections>>,
    /// Whether a unit was searched.
    is_needed: AtomicBool,
}

impl Split {
    /// Prepares to search near `files`, which belong to the program. Opens nothing yet. `bytes_max`
    /// is the maximum size in memory of the sections of each file.
    pub fn new(files: DebugFiles, bytes_max: u64) -> Split {
        Split {
            files,
            bytes_max,
            package: OnceLock::new(),
            is_needed: AtomicBool::new(false),
        }
    }

    /// Whether entries of a unit that was read are in another file.
    pub fn is_needed(&self) -> bool {
        self.is_needed.load(Ordering::Relaxed)
    }

    /// Finds the entries of a skeleton unit.
    pub fn find(
        &self,
        dwarf: &Dwarf<Slice<'_>>,
        unit: &Unit<Slice<'_>>,
        strings: Strings<'_>,
        id: DwoId,
    ) -> Option<Found<'_>> {
        self.is_needed.store(true, Ordering::Relaxed);
        let name = strings.bytes(dwarf, unit, unit.dwo_name().ok()??)?;
        if let Some(package) = self.package()
            && package.has_packaged(id)
        {
            return Some(Found::Packaged(package, id));
        }
        let name = Path::new(OsStr::from_bytes(&name));
        let compiled_in = unit.comp_dir.map_or(&[][..], |dir| dir.slice());
        let as_built = Path::new(OsStr::from_bytes(compiled_in)).join(name);
        // Files that were moved together with the program.
        let beside = self.files.path().parent().unwrap_or(Path::new("/"));
        let moved = [beside.join(name), beside.join(name.file_name()?)];
        let paths = [as_built.as_path(), &moved[0], &moved[1]];
        // On the host, the path from a container may lead to another build, so the unit's number is
        // compared.
        let belongs = |object: Object| {
            let sections = Sections::read_split(&object, self.bytes_max).ok()?;
            let found = Found::Alone(Box::new(sections), id);
            found.with(dwarf, |entries| SplitUnit::new(entries, None).map(|_| ()))?;
            Some(found)
        };
        self.files.named(&paths, belongs)
    }

    /// Opens `program.dwp` beside the program, in its own root; once.
    fn package(&self) -> Option<&Sections> {
        let read = || {
            let mut path = self.files.path().as_os_str().to_owned();
            path.push(".dwp");
            let object = self.files.beside(&PathBuf::from(path))?;
            Sections::read_package(&object, self.bytes_max).ok()
        };
        self.package.get_or_init(read).as_ref()
    }
}

/// Where the entries of a split unit were found.
pub enum Found<'s> {
    /// In the `.dwp` file beside the program, which has the entries of many units.
    Packaged(&'s Sections, DwoId),
    /// In a `.dwo` file, which has the entries of this unit only.
    Alone(Box<Sections>, DwoId),
}

impl Found<'_> {
    /// Calls `read` with the split unit's part of the sections.
    pub fn with<T>(
        &self,
        parent: &Dwarf<Slice<'_>>,
        read: impl for<'e> FnOnce((Dwarf<Slice<'e>>, DwoId)) -> Option<T>,
    ) -> Option<T> {
        match self {
            Found::Packaged(sections, id) => read((sections.packaged(*id, parent)?, *id)),
            Found::Alone(sections, id) => {
                let mut dwarf = sections.dwarf();
                dwarf.make_dwo(parent);
                read((dwarf, *id))
            }
        }
    }
}

/// A split unit that was found in its file.
pub struct SplitUnit<'e> {
    /// Reads the entries of the file.
    pub reader: Reader<'e>,
    /// The open unit.
    pub unit: Unit<Slice<'e>>,
}

impl<'e> SplitUnit<'e> {
    /// Opens the unit. `ranges` is the section of the file that has the skeleton.
    pub fn new(
        (dwarf, id): (Dwarf<Slice<'e>>, DwoId),
        ranges: Option<&'e SectionBytes>,
    ) -> Option<SplitUnit<'e>> {
        let reader = Reader::of_split(dwarf, ranges);
        let unit = (0..reader.units()).find_map(|index| {
            let unit = reader.in_memory(index)?;
            (unit.dwo_id == Some(id)).then_some(unit)
        })?;
        Some(SplitUnit { reader, unit })
    }
}
