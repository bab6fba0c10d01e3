//! ELF files, made by hand.

use symbolize::OpenError;
use symbolize::object::Object;
use symbolize::source::Source;
use symbolize::unwind::UnwindTable;

/// The address of the code in all these files.
pub const TEXT: u64 = 0x1_0000;

const TEXT_BYTES: u64 = 0x1_0000;

const PT_LOAD: u32 = 1;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const PF_X: u32 = 1;
const PF_R: u32 = 4;
/// The flag of a section with code; its segment is executable as well.
pub const SHF_EXECINSTR: u64 = 4;
const SHT_PROGBITS: u32 = 1;
const SHT_STRTAB: u32 = 3;

#[derive(Debug, Clone)]
struct ElfPart {
    name: &'static str,
    addr: u64,
    flags: u64,
    data: Vec<u8>,
}

#[derive(Debug, Clone)]
pub struct Elf {
    pub machine: u16,
    pub text: u64,
    pub section_headers: bool,
    parts: Vec<ElfPart>,
}

impl Elf {
    pub fn new() -> Elf {
        Elf {
            machine: 62,
            text: TEXT,
            section_headers: true,
            parts: Vec::new(),
        }
    }

    /// Adds a section that is loaded at `addr`, or not loaded if that is 0.
    pub fn with(self, name: &'static str, addr: u64, data: Vec<u8>) -> Elf {
        self.with_flags(name, addr, 0, data)
    }

    pub fn with_flags(mut self, name: &'static str, addr: u64, flags: u64, data: Vec<u8>) -> Elf {
        let part = ElfPart {
            name,
            addr,
            flags,
            data,
        };
        self.parts.push(part);
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        let loaded = self.parts.iter().filter(|part| part.addr != 0);
        let tables = loaded.clone().filter(|part| part.name == ".eh_frame_hdr");
        let segments = 1 + loaded.clone().count() + tables.count();
        let mut names = vec![0];
        let mut data = Vec::new();
        let mut headers = Vec::new();
        let mut sections = vec![0; 64];
        let base = 64 + segments as u64 * 56;
        header(&mut headers, PT_LOAD, PF_R | PF_X, 0, self.text, TEXT_BYTES);
        for part in &self.parts {
            let offset = base + data.len() as u64;
            let len = part.data.len() as u64;
            if part.addr != 0 {
                let code = if part.flags & SHF_EXECINSTR != 0 {
                    PF_X
                } else {
                    0
                };
                header(&mut headers, PT_LOAD, PF_R | code, offset, part.addr, len);
            }
            if part.name == ".eh_frame_hdr" {
                header(&mut headers, PT_GNU_EH_FRAME, PF_R, offset, part.addr, len);
            }
            let name = names.len() as u32;
            names.extend(part.name.bytes().chain([0]));
            let kind = SHT_PROGBITS;
            section(
                &mut sections,
                name,
                kind,
                part.flags,
                part.addr,
                offset,
                len,
            );
            data.extend(&part.data);
        }
        let offset = base + data.len() as u64;
        section(
            &mut sections,
            0,
            SHT_STRTAB,
            0,
            0,
            offset,
            names.len() as u64,
        );
        data.extend(names);

        let count = self.parts.len() as u16 + 2;
        let (shoff, shnum) = if self.section_headers {
            (base + data.len() as u64, count)
        } else {
            (0, 0)
        };
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(16, 0);
        file.extend([3, 0]);
        file.extend(self.machine.to_le_bytes());
        file.extend([0; 12]);
        file.extend(64u64.to_le_bytes());
        file.extend(shoff.to_le_bytes());
        file.extend([0; 4]);
        for field in [64, 56, segments as u16, 64, shnum, shnum.saturating_sub(1)] {
            file.extend(field.to_le_bytes());
        }
        assert_eq!(file.len(), 64);
        file.extend(headers);
        file.extend(data);
        file.extend(sections);
        file
    }

    pub fn object(&self) -> Object {
        object(self.bytes()).unwrap()
    }

    pub fn table(&self) -> Result<UnwindTable, OpenError> {
        UnwindTable::read(&self.object())
    }
}

pub fn object(bytes: Vec<u8>) -> Result<Object, OpenError> {
    Object::from_source(Source::Memory(bytes.into()))
}

fn header(out: &mut Vec<u8>, kind: u32, flags: u32, offset: u64, addr: u64, len: u64) {
    out.extend(kind.to_le_bytes());
    out.extend(flags.to_le_bytes());
    for field in [offset, addr, addr, len, len, 1] {
        out.extend(field.to_le_bytes());
    }
}

fn section(out: &mut Vec<u8>, name: u32, kind: u32, flags: u64, addr: u64, offset: u64, len: u64) {
    out.extend(name.to_le_bytes());
    out.extend(kind.to_le_bytes());
    for field in [flags, addr, offset, len, 0, 1, 0] {
        out.extend(field.to_le_bytes());
    }
}
