//! The names of a unit's source files, as its line number program lists them.

use std::borrow::Cow;

use gimli::{AttributeValue, Dwarf, LineProgramHeader, Unit};

use super::rows::NO_FILE;
use super::sections::Slice;
use super::strings::Strings;
use crate::hash::FastState;
use crate::table::pool;
use crate::table::unit::UnitBuilder;
use std::collections::HashMap;

type Text<'d> = Cow<'d, [u8]>;

/// The used files of a unit, by their number in the unit's list.
pub struct Files<'f, 'w, 'd> {
    dwarf: &'f Dwarf<Slice<'d>>,
    unit: &'f Unit<Slice<'w>>,
    strings: Strings<'f>,
    known: HashMap<u32, Option<u32>, FastState>,
    /// The last look-up and its result, as the next one is mostly for the same file.
    latest: (u32, Option<u32>),
}

impl<'f, 'w, 'd> Files<'f, 'w, 'd> {
    /// Prepares for the files of one unit. `strings` says where its texts are.
    pub fn new(
        dwarf: &'f Dwarf<Slice<'d>>,
        unit: &'f Unit<Slice<'w>>,
        strings: Strings<'f>,
    ) -> Files<'f, 'w, 'd> {
        Files {
            dwarf,
            unit,
            strings,
            known: HashMap::default(),
            latest: (NO_FILE, None),
        }
    }

    /// Returns the number of a file in `out`; adds its name at first use.
    pub fn add_to<'o>(&mut self, out: &mut UnitBuilder<'o>, file: u32) -> Option<u32>
    where
        'd: 'o,
    {
        if file != self.latest.0 {
            let added = match self.known.get(&file) {
                Some(known) => *known,
                None => {
                    let name = self.name(file);
                    let added = name.map(|(directory, name)| {
                        out.add_file(pool::Text::Bytes(directory), pool::Text::Bytes(name))
                    });
                    self.known.insert(file, added);
                    added
                }
            };
            self.latest = (file, added);
        }
        self.latest.1
    }

    /// Returns directory and name of a file.
    fn name(&self, file: u32) -> Option<(Text<'d>, Text<'d>)> {
        let header = self.unit.line_program.as_ref()?.header();
        let entry = header.file(file.into())?;
        let name = self.text(entry.path_name())?;
        let directory = if is_absolute(&name) {
            Cow::Borrowed(&[][..])
        } else {
            self.directory(header, entry.directory_index())
        };
        Some((directory, name))
    }

    fn text(&self, value: AttributeValue<Slice<'_>>) -> Option<Text<'d>> {
        self.strings.bytes(self.dwarf, self.unit, value)
    }

    fn directory(&self, header: &LineProgramHeader<Slice<'_>>, index: u64) -> Text<'d> {
        let compiled_in = self.unit.comp_dir.map_or(&[][..], |dir| dir.slice());
        // Directory 0 is the one in which the unit was compiled; before DWARF 5 it is not in the
        // list.
        if index == 0 && (header.version() < 5 || !compiled_in.is_empty()) {
            return compiled_in.to_vec().into();
        }
        let named = header
            .directory(index)
            .and_then(|value| self.text(value))
            .unwrap_or_default();
        if is_absolute(&named) || compiled_in.is_empty() {
            named
        } else {
            joined(compiled_in, &named).into()
        }
    }
}

fn joined(base: &[u8], below: &[u8]) -> Vec<u8> {
    if below.is_empty() {
        return base.to_vec();
    }
    let between: &[u8] = if base.ends_with(b"/") { b"" } else { b"/" };
    [base, between, below].concat()
}

/// Whether a path is absolute, by the rules of Unix or of Windows.
fn is_absolute(path: &[u8]) -> bool {
    let drive = path.first().is_some_and(u8::is_ascii_alphabetic) && path.get(1) == Some(&b':');
    let after_drive = path.get(2).is_some_and(|byte| b"/\\".contains(byte));
    path.starts_with(b"/") || path.starts_with(b"\\\\") || drive && after_drive
}
