//! The names of a unit's source files, as its line number program lists them.

use std::borrow::Cow;

use gimli::{Dwarf, LineProgramHeader, Unit};

use super::rows::NO_FILE;
use super::sections::Slice;
use crate::hash::FastState;
use crate::table::unit::UnitBuilder;
use std::collections::HashMap;

/// Files that were asked for, by their number in the unit's list.
pub struct Files<'f, 'd> {
    dwarf: &'f Dwarf<Slice<'d>>,
    unit: &'f Unit<Slice<'d>>,
    known: HashMap<u32, Option<u32>, FastState>,
    /// The one that was asked for last, as it mostly is again.
    latest: (u32, Option<u32>),
}

impl<'f, 'd> Files<'f, 'd> {
    pub fn new(dwarf: &'f Dwarf<Slice<'d>>, unit: &'f Unit<Slice<'d>>) -> Files<'f, 'd> {
        Files {
            dwarf,
            unit,
            known: HashMap::default(),
            latest: (NO_FILE, None),
        }
    }

    /// The number of a file in `out`, where its name is put at first use.
    pub fn add_to<'o>(&mut self, out: &mut UnitBuilder<'o>, file: u32) -> Option<u32>
    where
        'd: 'o,
    {
        if file != self.latest.0 {
            let added = match self.known.get(&file) {
                Some(known) => *known,
                None => {
                    let name = self.name(file);
                    let added = name.map(|(directory, name)| out.add_file(directory, name.into()));
                    self.known.insert(file, added);
                    added
                }
            };
            self.latest = (file, added);
        }
        self.latest.1
    }

    /// Directory and name.
    fn name(&self, file: u32) -> Option<(Cow<'d, [u8]>, &'d [u8])> {
        let header = self.unit.line_program.as_ref()?.header();
        let entry = header.file(file.into())?;
        let name = self.dwarf.attr_string(self.unit, entry.path_name()).ok()?;
        let name = name.slice();
        let directory = match is_absolute(name) {
            true => Cow::Borrowed(&[][..]),
            false => self.directory(header, entry.directory_index()),
        };
        Some((directory, name))
    }

    fn directory(&self, header: &LineProgramHeader<Slice<'d>>, index: u64) -> Cow<'d, [u8]> {
        let compiled_in = self.unit.comp_dir.map_or(&[][..], |dir| dir.slice());
        // 0 is where it was compiled; before DWARF 5 it is not in the list.
        if index == 0 && (header.version() < 5 || !compiled_in.is_empty()) {
            return compiled_in.into();
        }
        let named = header.directory(index);
        let named = named.and_then(|value| self.dwarf.attr_string(self.unit, value).ok());
        let named = named.map_or(&[][..], |name| name.slice());
        match is_absolute(named) || compiled_in.is_empty() {
            true => named.into(),
            false => joined(compiled_in, named),
        }
    }
}

fn joined<'d>(base: &'d [u8], below: &'d [u8]) -> Cow<'d, [u8]> {
    if below.is_empty() {
        return base.into();
    }
    let between: &[u8] = if base.ends_with(b"/") { b"" } else { b"/" };
    [base, between, below].concat().into()
}

/// In the way of Unix or of Windows.
fn is_absolute(path: &[u8]) -> bool {
    let drive = path.first().is_some_and(u8::is_ascii_alphabetic) && path.get(1) == Some(&b':');
    let after_drive = path.get(2).is_some_and(|byte| b"/\\".contains(byte));
    path.starts_with(b"/") || path.starts_with(b"\\\\") || drive && after_drive
}
