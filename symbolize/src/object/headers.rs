//! The file header, program headers and section headers of an ELF file (gABI chapters 4 and 5),
//! decoded from bytes of any alignment.

use std::borrow::Cow;

use object::elf;

use super::class::{Class, FILE_HEADER, PROGRAM_HEADER, Record, SECTION_HEADER};
use crate::OpenError;
use crate::bytes::{u16_at, u32_at, u64_at};
use crate::source::Source;

const FILE_HEADER_BYTES: usize = FILE_HEADER.wide;
const PROGRAM_HEADER_BYTES: usize = PROGRAM_HEADER.wide;
const SECTION_HEADER_BYTES: usize = SECTION_HEADER.wide;

/// Maximum number of sections, whose headers take 4 MiB. Executables have some dozens; only
/// unlinked object files have as many as the 16-bit count allows.
const SECTIONS_MAX: u64 = 1 << 16;

/// The needed fields of the file header.
#[derive(Debug)]
pub struct FileHeader {
    /// Whether its fields have 32 or 64 bits.
    pub class: Class,
    /// `e_machine`.
    pub machine: u16,
    /// Entry point of a program; meaningless for a library.
    pub entry: u64,
    /// Index of the section with the names of sections (`e_shstrndx`).
    pub names_section: u16,
    phoff: u64,
    phnum: u16,
    shoff: u64,
    shnum: u16,
}

impl FileHeader {
    /// Reads the file header; an error if it is no ELF file or not a supported one.
    pub fn read(source: &Source) -> Result<FileHeader, OpenError> {
        let have = source.len().min(FILE_HEADER_BYTES as u64);
        let bytes = source.read(0, have, "file header")?;
        if bytes.get(..4) != Some(&elf::ELFMAG) {
            return Err(OpenError::NotElf);
        }
        let damaged = OpenError::Damaged("file header");
        let class = class(&bytes)?;
        let bytes = class.widen(&FILE_HEADER, bytes);
        let bytes: &[u8; FILE_HEADER_BYTES] = bytes.first_chunk().ok_or(damaged)?;
        let header = FileHeader {
            class,
            machine: u16_at(bytes, 18),
            entry: u64_at(bytes, 24),
            phoff: u64_at(bytes, 32),
            shoff: u64_at(bytes, 40),
            phnum: u16_at(bytes, 56),
            shnum: u16_at(bytes, 60),
            names_section: u16_at(bytes, 62),
        };
        if class == Class::Narrow && !NARROW_MACHINES.contains(&header.machine) {
            return Err(OpenError::Unsupported);
        }
        let entry_size = usize::from(u16_at(bytes, 54));
        if header.phnum != 0 && entry_size != class.size_of(&PROGRAM_HEADER) {
            return Err(OpenError::Damaged("program header size"));
        }
        Ok(header)
    }

    /// Reads the program headers.
    pub fn program_headers(&self, source: &Source) -> Result<Vec<ProgramHeader>, OpenError> {
        let count = u64::from(self.phnum);
        let bytes = self.read_records(
            source,
            &PROGRAM_HEADER,
            self.phoff,
            count,
            "program headers",
        )?;
        let (headers, _) = bytes.as_chunks::<PROGRAM_HEADER_BYTES>();
        Ok(headers.iter().map(ProgramHeader::decode).collect())
    }

    /// Reads the section headers; empty if the file has none. Fails if there are more than 65,536.
    pub fn sections(&self, source: &Source) -> Result<Vec<Section>, OpenError> {
        if self.shoff == 0 {
            return Ok(Vec::new());
        }
        let count = match self.shnum {
            // With 0xff00 sections or more, the count is in the first section header.
            0 => self.read_sections(source, 1)?.first().map_or(0, |s| s.size),
            count => u64::from(count),
        };
        if count > SECTIONS_MAX {
            return Err(OpenError::Refused("too many sections"));
        }
        self.read_sections(source, count)
    }

    fn read_sections(&self, source: &Source, count: u64) -> Result<Vec<Section>, OpenError> {
        let bytes = self.read_records(
            source,
            &SECTION_HEADER,
            self.shoff,
            count,
            "section headers",
        )?;
        let (headers, _) = bytes.as_chunks::<SECTION_HEADER_BYTES>();
        Ok(headers.iter().map(Section::decode).collect())
    }

    fn read_records(
        &self,
        source: &Source,
        record: &Record,
        offset: u64,
        count: u64,
        what: &'static str,
    ) -> Result<Cow<'static, [u8]>, OpenError> {
        let len = count * self.class.size_of(record) as u64;
        let bytes = source.read(offset, len, what)?;
        Ok(self.class.widen(record, bytes))
    }
}

/// Machines whose 32-bit files are supported.
const NARROW_MACHINES: [u16; 2] = [elf::EM_386.0, elf::EM_ARM.0];

fn class(header: &[u8]) -> Result<Class, OpenError> {
    let is_little = |byte: &u8| *byte == elf::ELFDATA2LSB.0;
    let class = header.get(4).copied().map(elf::FileClass);
    match (class, header.get(5)) {
        (Some(elf::ELFCLASS64), Some(order)) if is_little(order) => Ok(Class::Wide),
        (Some(elf::ELFCLASS32), Some(order)) if is_little(order) => Ok(Class::Narrow),
        (Some(_), Some(_)) => Err(OpenError::Unsupported),
        _ => Err(OpenError::Damaged("file header")),
    }
}

/// One entry of the program header table.
#[derive(Debug, Clone, Copy)]
pub struct ProgramHeader {
    kind: u32,
    flags: u32,
    /// Offset of its bytes in the file (`p_offset`).
    pub offset: u64,
    /// The link address of its first byte (`p_vaddr`).
    pub vaddr: u64,
    /// Number of its bytes in the file (`p_filesz`).
    pub filesz: u64,
    /// Number of its bytes in memory (`p_memsz`).
    pub memsz: u64,
    /// Offset and address are equal modulo this number (`p_align`).
    pub align: u64,
}

impl ProgramHeader {
    #[cfg(test)]
    pub(super) fn load(vaddr: u64, memsz: u64, flags: u32, align: u64) -> ProgramHeader {
        ProgramHeader {
            kind: elf::PT_LOAD.0,
            flags,
            offset: 0,
            vaddr,
            filesz: 0,
            memsz,
            align,
        }
    }

    fn decode(bytes: &[u8; PROGRAM_HEADER_BYTES]) -> ProgramHeader {
        ProgramHeader {
            kind: u32_at(bytes, 0),
            flags: u32_at(bytes, 4),
            offset: u64_at(bytes, 8),
            vaddr: u64_at(bytes, 16),
            filesz: u64_at(bytes, 32),
            memsz: u64_at(bytes, 40),
            align: u64_at(bytes, 48),
        }
    }

    /// Whether processes map it: `PT_LOAD`.
    pub fn is_load(&self) -> bool {
        self.kind == elf::PT_LOAD.0
    }

    /// Whether it has notes, such as the build-id: `PT_NOTE`.
    pub fn is_note(&self) -> bool {
        self.kind == elf::PT_NOTE.0
    }

    /// Whether it is the path of the dynamic loader: `PT_INTERP`.
    pub fn is_loader_name(&self) -> bool {
        self.kind == elf::PT_INTERP.0
    }

    /// Whether it is for the dynamic linker: `PT_DYNAMIC`.
    pub fn is_dynamic(&self) -> bool {
        self.kind == elf::PT_DYNAMIC.0
    }

    /// Whether it is `.eh_frame_hdr`, which says where `.eh_frame` is.
    pub fn is_eh_frame_header(&self) -> bool {
        self.kind == elf::PT_GNU_EH_FRAME.0
    }

    /// Whether it is mapped as code.
    pub fn is_executable(&self) -> bool {
        self.flags & elf::PF_X.0 != 0
    }
}

/// One entry of the section header table.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// Offset of its name in the section of names.
    pub(super) name: u32,
    kind: u32,
    flags: u64,
    /// The link address of its first byte; 0 if it is not mapped (`sh_addr`).
    pub addr: u64,
    /// Offset of its bytes in the file (`sh_offset`).
    pub offset: u64,
    /// Size in bytes (`sh_size`).
    pub size: u64,
    /// Index of an associated section (`sh_link`).
    pub link: u32,
    /// Alignment of its address (`sh_addralign`).
    pub align: u64,
    /// Size of one entry, if it is a table (`sh_entsize`).
    pub entry_size: u64,
}

impl Section {
    fn decode(bytes: &[u8; SECTION_HEADER_BYTES]) -> Section {
        Section {
            name: u32_at(bytes, 0),
            kind: u32_at(bytes, 4),
            flags: u64_at(bytes, 8),
            addr: u64_at(bytes, 16),
            offset: u64_at(bytes, 24),
            size: u64_at(bytes, 32),
            link: u32_at(bytes, 40),
            align: u64_at(bytes, 48),
            entry_size: u64_at(bytes, 56),
        }
    }

    /// Whether it is of that type (`sh_type`).
    pub fn is_kind(&self, kind: elf::SectionType) -> bool {
        self.kind == kind.0
    }

    /// Whether it has code.
    pub fn is_executable(&self) -> bool {
        self.flags & elf::SHF_EXECINSTR.0 != 0
    }

    /// Whether the bytes in the file have to be inflated first.
    pub fn is_compressed(&self) -> bool {
        self.flags & elf::SHF_COMPRESSED.0 != 0
    }

    /// Whether the section has bytes in this file; `.bss` has none, nor have the loaded sections of
    /// a separate debug file.
    pub fn has_data(&self) -> bool {
        !self.is_kind(elf::SHT_NOBITS) && !self.is_kind(elf::SHT_NULL)
    }

    /// The link address after its last byte.
    pub fn end(&self) -> u64 {
        self.addr.saturating_add(self.size)
    }
}
