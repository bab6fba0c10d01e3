//! An opened ELF file: its headers, and its sections on request.
//!
//! Only the headers are read on opening. Everything in them is untrusted;
//! each table has a limit and each range is checked against the file's size.

mod build_id;
mod class;
mod headers;
mod inflated;
mod layout;
mod notes;
mod section_bytes;

use std::fs::File;

use crate::OpenError;
use crate::address::{LinkAddr, Segment, Segments};
use crate::file_id::FileId;
use crate::source::Source;

pub use class::{Class, DYNAMIC, Record, SYMBOL};
pub use headers::{ProgramHeader, Section};
pub use notes::{Note, notes};
pub use section_bytes::SectionBytes;

/// Real files have about ten of each kind of segment; the lookup is linear.
const LOADS_MAX: usize = 256;

/// Section names: real tables have a few hundred bytes.
const SECTION_NAMES_BYTES_MAX: u64 = 16 << 20;

/// An opened ELF file, little-endian.
#[derive(Debug)]
pub struct Object {
    source: Source,
    class: Class,
    machine: u16,
    entry: u64,
    program_headers: Vec<ProgramHeader>,
    segments: Segments,
    sections: Vec<Section>,
    section_names: Vec<u8>,
}

impl Object {
    /// Reads the headers of a file. The file stays open, through a descriptor of its own.
    pub fn read(file: &File) -> Result<Object, OpenError> {
        Object::from_source(Source::file(file)?)
    }

    /// The file that was opened; `None` for what was in memory from the beginning, or was
    /// unpacked there.
    pub(crate) fn file(&self) -> Option<&File> {
        match &self.source {
            Source::File {
                file, is_unpacked, ..
            } => (!is_unpacked).then_some(file),
            Source::Memory(_) => None,
        }
    }

    /// The same file, read once more.
    pub fn again(&self) -> Result<Object, OpenError> {
        match &self.source {
            Source::File {
                file,
                len,
                is_unpacked,
            } => Object::from_source(Source::File {
                file: file.clone(),
                len: *len,
                is_unpacked: *is_unpacked,
            }),
            Source::Memory(bytes) => Object::from_source(Source::Memory(bytes.clone())),
        }
    }

    /// Reads the headers. Damaged section headers are left out; damaged program headers are
    /// an error.
    pub fn from_source(source: Source) -> Result<Object, OpenError> {
        let header = headers::FileHeader::read(&source)?;
        let program_headers = header.program_headers(&source)?;
        // Damaged or cut-off section headers are as good as none: the segments
        // are what the process runs by.
        let sections = header.sections(&source).unwrap_or_default();
        let section_names = sections
            .get(usize::from(header.names_section))
            .filter(|names| names.size <= SECTION_NAMES_BYTES_MAX)
            .and_then(|names| source.read(names.offset, names.size, "section names").ok())
            .unwrap_or_default();
        Ok(Object {
            class: header.class,
            machine: header.machine,
            entry: header.entry,
            segments: loads(&program_headers)?,
            program_headers,
            sections,
            section_names,
            source,
        })
    }

    /// A file of debug information, as it belongs to `main`: where code is only
    /// that one tells, and of what is loaded this one has no bytes.
    pub fn belonging_to(self, main: &Object) -> Object {
        Object {
            segments: main.segments.clone(),
            program_headers: Vec::new(),
            ..self
        }
    }

    /// Whether it has debug information alone: it knows of code, and has not a
    /// byte of it. (Of a segment there may be some: Go's has the file's header.)
    pub fn is_debug_only(&self) -> bool {
        let mut code = self
            .sections
            .iter()
            .filter(|s| s.is_executable())
            .peekable();
        code.peek().is_some() && code.all(|section| !section.has_data())
    }

    /// A file of debug information whose program is not here: where code was in
    /// that one is told from its addresses, unless (of `eu-strip`) its headers
    /// are still those of the program.
    pub fn laid_out(self) -> Object {
        let loads = self
            .program_headers
            .iter()
            .filter(|header| header.is_load());
        let mut code = loads.filter(|header| header.is_executable());
        let is_told = code.all(|header| header.filesz == header.memsz);
        let segments = if is_told {
            self.segments
        } else {
            Segments::new(layout::segments(&self.program_headers))
        };
        Object {
            segments,
            program_headers: Vec::new(),
            ..self
        }
    }

    /// Whether addresses have 32 bits or 64.
    pub fn class(&self) -> Class {
        self.class
    }

    /// `e_machine`.
    pub fn machine(&self) -> u16 {
        self.machine
    }

    /// Where the file says that a program begins.
    pub fn entry(&self) -> LinkAddr {
        LinkAddr(self.entry)
    }

    /// The parts of the file that processes map.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// The program headers, in the file's order.
    pub fn program_headers(&self) -> &[ProgramHeader] {
        &self.program_headers
    }

    /// Empty for a file without section headers.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The name of a section; empty if it has none.
    pub fn section_name(&self, section: &Section) -> &[u8] {
        let rest = self
            .section_names
            .get(section.name as usize..)
            .unwrap_or_default();
        let end = memchr::memchr(0, rest).unwrap_or(rest.len());
        &rest[..end]
    }

    /// The first section of that name; `None` if there is none.
    pub fn section_by_name(&self, name: &[u8]) -> Option<&Section> {
        self.sections
            .iter()
            .find(|section| self.section_name(section) == name)
    }

    /// The bytes of a section as they are in the file, if no more than `max`.
    pub fn section_data(
        &self,
        section: &Section,
        max: u64,
        what: &'static str,
    ) -> Result<Vec<u8>, OpenError> {
        if !section.has_data() {
            return Ok(Vec::new());
        }
        if section.size > max {
            return Err(OpenError::Refused(what));
        }
        self.source.read(section.offset, section.size, what)
    }

    /// The bytes that it is read from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The bytes that it is read from, without what was read of them.
    pub fn into_source(self) -> Source {
        self.source
    }

    /// The GNU build-id, as the linker wrote it.
    pub fn build_id(&self) -> Option<Vec<u8>> {
        build_id::gnu(self)
    }

    /// Whether Go's linker has put its build-id into the file.
    pub fn has_go_build_id(&self) -> bool {
        build_id::go(self).is_some()
    }

    /// What names this file's content wherever it lies.
    pub fn file_id(&self) -> Result<FileId, OpenError> {
        if let Some(id) = self.build_id() {
            return Ok(FileId::gnu(&id));
        }
        match build_id::go(self) {
            Some(id) => Ok(FileId::go(&id)),
            None => FileId::of_content(&self.source),
        }
    }
}

fn loads(program_headers: &[ProgramHeader]) -> Result<Segments, OpenError> {
    let loads: Vec<Segment> = program_headers
        .iter()
        .filter(|header| header.is_load())
        .map(|header| Segment {
            offset: header.offset,
            vaddr: header.vaddr,
            filesz: header.filesz,
            executable: header.is_executable(),
        })
        .collect();
    if loads.len() > LOADS_MAX {
        return Err(OpenError::Refused("too many segments"));
    }
    Ok(Segments::new(loads))
}
