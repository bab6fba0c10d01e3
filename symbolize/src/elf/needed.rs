//! What an ELF file needs to run: the libraries that the dynamic loader maps before the program
//! begins, and the loader itself.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use object::elf;

use super::place::place_at;
use crate::object::{Object, ProgramHeader, dynamic_entries};

/// Longest text that is read: the limit of a path (PATH_MAX of Linux).
const TEXT_BYTES_MAX: u64 = 4096;

/// Maximum number of libraries: more than any real file needs directly.
const LIBRARIES_MAX: usize = 1024;

/// What an ELF file specifies for the dynamic loader, see ld.so(8).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needed {
    /// Path of the loader; `None` for libraries, and for statically linked programs.
    pub loader: Option<OsString>,
    /// Names or paths of libraries, in the order in which they are mapped.
    pub libraries: Vec<OsString>,
    /// Directories that are searched before those of `LD_LIBRARY_PATH`, separated by colons;
    /// `$ORIGIN` stands for the file's directory.
    pub rpath: Option<OsString>,
    /// Directories that are searched after those of `LD_LIBRARY_PATH`. A file that has them has no
    /// `rpath`.
    pub runpath: Option<OsString>,
}

impl Needed {
    /// Reads the dynamic segment of a file. A file without one needs nothing.
    pub fn of(object: &Object) -> Needed {
        let loader = object
            .program_headers()
            .iter()
            .find(|header| header.is_loader_name())
            .and_then(|header: &ProgramHeader| {
                text(object, header.offset, header.filesz.min(TEXT_BYTES_MAX))
            });
        let entries = dynamic_entries(object).unwrap_or_default();
        let values = |tag: elf::DynamicTag| {
            let of_tag = entries.iter().filter(move |entry| entry.0 == tag.0 as u64);
            of_tag.map(|entry| entry.1)
        };
        let first = |tag| values(tag).next();
        let strings = first(elf::DT_STRTAB).zip(first(elf::DT_STRSZ));
        let string = |at: u64| {
            let (addr, size) = strings?;
            let len = size.checked_sub(at)?.min(TEXT_BYTES_MAX);
            text(
                object,
                place_at(object, addr, size)?.offset.checked_add(at)?,
                len,
            )
        };
        let runpath = first(elf::DT_RUNPATH).and_then(string);
        let rpath = first(elf::DT_RPATH).and_then(string);
        let libraries = values(elf::DT_NEEDED)
            .take(LIBRARIES_MAX)
            .filter_map(string);
        Needed {
            loader,
            libraries: libraries.collect(),
            rpath: rpath.filter(|_| runpath.is_none()),
            runpath,
        }
    }
}

/// Returns the text at an offset of the file, up to its zero; `None` if there is none.
fn text(object: &Object, offset: u64, len: u64) -> Option<OsString> {
    let bytes = object
        .source()
        .read(offset, len, "name of a library")
        .ok()?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some(OsString::from_vec(bytes[..end].to_vec())).filter(|text| !text.is_empty())
}
