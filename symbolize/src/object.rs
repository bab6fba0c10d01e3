//! An opened ELF file: its headers, and its sections on demand.
//!
//! Only the headers are read on opening. Nothing in them is trusted; each table has a limit and
//! each range is checked against the file's size.

mod build_id;
mod class;
mod dynamic;
mod exports;
mod headers;
mod inflated;
mod layout;
mod notes;
mod section_bytes;
mod summary;

use std::fs::File;

use crate::OpenError;
use crate::address::{LOADS_MAX, LinkAddr, Segment, Segments};
use crate::file_id::FileId;
use crate::source::Source;

pub use class::{Class, DYNAMIC, Record, SYMBOL};
pub use dynamic::entries as dynamic_entries;
pub use exports::exports;
pub use headers::{ProgramHeader, Section};
pub use notes::{Note, notes};
pub use section_bytes::SectionBytes;
pub use summary::{
    ASYNCIO_SECTION, BUILD_ID_BYTES_MAX, PYTHON_STATE, Summary, read_answer, write_answer,
};

/// Maximum size of the section names: real tables have a few hundred bytes.
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

    /// The file that was opened; `None` for an object that was in memory from the beginning, or was
    /// unpacked there.
    pub(crate) fn file(&self) -> Option<&File> {
        match &self.source {
            Source::File {
                file, is_unpacked, ..
            } => (!is_unpacked).then_some(file),
            Source::Memory(_) => None,
        }
    }

    /// Opens the same file once more.
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

    /// Reads the headers. Damaged section headers are ignored; damaged program headers are an
    /// error.
    pub fn from_source(source: Source) -> Result<Object, OpenError> {
        let header = headers::FileHeader::read(&source)?;
        let program_headers = header.program_headers(&source)?;
        // Damaged or cut-off section headers count as none: the process runs by the segments.
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

    /// Combines a file of debug information with the program `main` that it belongs to: the
    /// segments are taken from `main`, as this file has none of their bytes.
    pub fn belonging_to(self, main: &Object) -> Object {
        Object {
            segments: main.segments.clone(),
            program_headers: Vec::new(),
            ..self
        }
    }

    /// Whether it has only debug information: it describes code segments, but has none of their
    /// bytes. (It may have a few bytes of a segment: Go's has the file's header.)
    pub fn is_debug_only(&self) -> bool {
        let mut code = self
            .sections
            .iter()
            .filter(|s| s.is_executable())
            .peekable();
        code.peek().is_some() && code.all(|section| !section.has_data())
    }

    /// Guesses the segments of the program from a file of debug information, for the case that the
    /// program is missing. The headers that `eu-strip` writes are those of the program and are
    /// kept.
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

    /// The entry point of a program.
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

    /// Section headers; empty for a file without them.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Name of a section; empty if it has none.
    pub fn section_name(&self, section: &Section) -> &[u8] {
        let rest = self
            .section_names
            .get(section.name as usize..)
            .unwrap_or_default();
        let end = memchr::memchr(0, rest).unwrap_or(rest.len());
        &rest[..end]
    }

    /// The first section with that name; `None` if there is none.
    pub fn section_by_name(&self, name: &[u8]) -> Option<&Section> {
        let is_it = |section: &&Section| self.has_name(section, name);
        self.sections.iter().find(is_it)
    }

    /// Whether a section has this name. The end of its own name is not searched: a hostile file can
    /// have 65,536 sections whose names are all of 16 MiB.
    fn has_name(&self, section: &Section, name: &[u8]) -> bool {
        let rest = self.section_names.get(section.name as usize..);
        let behind = rest.unwrap_or_default().strip_prefix(name);
        behind.is_some_and(|behind| behind.first().is_none_or(|byte| *byte == 0))
    }

    /// Reads the bytes of a section as stored in the file, if there are at most `max`.
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

    /// The bytes of the file.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the bytes of the file and drops everything that was parsed.
    pub fn into_source(self) -> Source {
        self.source
    }

    /// The GNU build-id, as the linker wrote it.
    pub fn build_id(&self) -> Option<Vec<u8>> {
        build_id::gnu(self)
    }

    /// The build-id that Go's linker has put into the file.
    pub fn go_build_id(&self) -> Option<Vec<u8>> {
        build_id::go(self)
    }

    /// The identity of the file's contents, wherever it is stored.
    pub fn file_id(&self) -> Result<FileId, OpenError> {
        if let Some(id) = self.build_id() {
            return Ok(FileId::gnu(&id));
        }
        match self.go_build_id() {
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
