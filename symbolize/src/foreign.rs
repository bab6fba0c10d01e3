//! Function names of files of other systems: Mach-O (with its dSYM) and PE.
//!
//! No process on this machine has them mapped. They are read as a whole, on request, to symbolize
//! crash logs of other systems.

mod boundaries;
mod choose;
mod dsym;

use crate::crc::crc32;
use std::fs::File;
use std::io::Read;

use object::read::{File as ObjectFile, FileKind};
use object::{Object as _, ObjectSection as _, SectionKind};

use crate::{LinkAddr, OpenError, Reason, Segment, Segments};

use choose::Function;

pub use choose::Machine;
pub use dsym::dsym_of;

/// Maximum file size. The largest programs with all their symbols are smaller.
const FILE_BYTES_MAX: u64 = 2 << 30;

const FUNCTIONS_MAX: usize = 8 << 20;

/// The functions of a Mach-O or PE file, by address.
#[derive(Debug)]
pub struct ForeignSymbols {
    base: u64,
    id: String,
    segments: Segments,
    functions: Vec<Function>,
    names: Vec<u8>,
    /// Whether it has only exported symbols.
    stripped: bool,
}

/// A function of a Mach-O or PE file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignSymbol<'s> {
    /// Name as the compiler wrote it: not demangled, not safe to display.
    pub name: &'s [u8],
    /// Address of its first byte.
    pub start: LinkAddr,
    /// Size of its code in bytes; 0 if unknown.
    pub size: u64,
}

impl ForeignSymbols {
    /// Reads a file; if it contains programs for several machines, the one for `machine`.
    pub fn read(file: &File, machine: Option<Machine>) -> Result<ForeignSymbols, OpenError> {
        let read = |source| OpenError::Read {
            what: "the file",
            source,
        };
        let metadata = file.metadata().map_err(read)?;
        if !metadata.is_file() {
            return Err(OpenError::Refused("not a regular file"));
        }
        if metadata.len() > FILE_BYTES_MAX {
            return Err(OpenError::Refused("the file is too large"));
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX)
            .read_to_end(&mut bytes)
            .map_err(read)?;
        ForeignSymbols::parse(&bytes, machine)
    }

    /// Reads a file from its bytes.
    pub fn parse(bytes: &[u8], machine: Option<Machine>) -> Result<ForeignSymbols, OpenError> {
        let program = choose::program(bytes, machine)?;
        match FileKind::parse(program) {
            Ok(FileKind::MachO64 | FileKind::Pe64 | FileKind::Coff) => {}
            _ => return Err(OpenError::Refused("neither a 64-bit Mach-O nor a PE file")),
        }
        let file =
            ObjectFile::parse(program).map_err(|_| OpenError::Damaged("Mach-O or PE headers"))?;
        let mut names = Vec::new();
        let mut functions = choose::symbols(&file, &mut names, FUNCTIONS_MAX);
        let stripped = functions.is_empty();
        if stripped {
            functions = choose::exports(&file, &mut names, FUNCTIONS_MAX);
        }
        let segments = code_segments(&file);
        let code: Vec<(u64, u64)> = segments
            .iter()
            .map(|code| (code.vaddr, code.vaddr.saturating_add(code.filesz)))
            .collect();
        let boundaries = boundaries::boundaries(&file, program);
        Ok(ForeignSymbols {
            base: file.relative_address_base(),
            id: id(&file, program),
            segments,
            functions: choose::ends(functions, &names, &code, &boundaries),
            names,
            stripped,
        })
    }

    /// Finds the function at a link address.
    pub fn find(&self, addr: LinkAddr) -> Result<ForeignSymbol<'_>, Reason> {
        let none = if self.stripped {
            Reason::Stripped
        } else {
            Reason::NotCovered
        };
        let behind = self.functions.partition_point(|f| f.start <= addr.0);
        let function = behind
            .checked_sub(1)
            .map(|index| &self.functions[index])
            .filter(|f| addr.0 < f.end)
            .ok_or(none)?;
        Ok(self.symbol(function))
    }

    /// The link address of the program, to which the addresses in crash logs are relative.
    pub fn base(&self) -> LinkAddr {
        LinkAddr(self.base)
    }

    /// The linker's identifier of this build, in hexadecimal: the UUID of a Mach-O file, the GUID
    /// and age of the PDB of a PE file; else a checksum.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The parts of the file that contain code.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// All functions by address.
    pub fn functions(&self) -> impl Iterator<Item = ForeignSymbol<'_>> {
        self.functions.iter().map(|function| self.symbol(function))
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        self.functions.capacity() * size_of::<Function>() + self.names.capacity()
    }

    fn symbol(&self, function: &Function) -> ForeignSymbol<'_> {
        ForeignSymbol {
            name: function.name(&self.names),
            start: LinkAddr(function.start),
            size: function.end - function.start,
        }
    }
}

/// The sections with code. A dSYM has their addresses, but not their bytes.
fn code_segments(file: &ObjectFile<'_>) -> Segments {
    let code = file
        .sections()
        .filter(|section| section.kind() == SectionKind::Text);
    let segment = |section: object::Section<'_, '_>| Segment {
        offset: section.file_range().map_or(0, |(offset, _)| offset),
        vaddr: section.address(),
        filesz: section.size(),
        executable: true,
    };
    Segments::new(code.map(segment).collect())
}

fn id(file: &ObjectFile<'_>, bytes: &[u8]) -> String {
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    if let Ok(Some(uuid)) = file.mach_uuid() {
        return hexadecimal(&uuid);
    }
    match file.pdb_info() {
        Ok(Some(pdb)) => hexadecimal(&pdb.guid()) + &format!("{:x}", pdb.age()),
        _ => format!("crc-{:08x}-{}", crc32(bytes), bytes.len()),
    }
}
