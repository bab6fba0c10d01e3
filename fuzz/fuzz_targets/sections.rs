//! A section of debug information that is compressed: as zlib, as zstd, or as a `.zdebug_` section
//! of older GNU tools. The file around it is sound, so that all inputs reach what inflates.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbolize::object::Object;
use symbolize::source::Source;

/// The most that a section may inflate to.
const BYTES_MAX: u64 = 1 << 20;

const HEADER_BYTES: usize = 64;
const SECTION_BYTES: usize = 64;

/// The names of the sections, each where its section header says.
const NAMES: &[u8] = b"\0.debug_info\0.zdebug_line\0.names\0";

/// What section headers say of their kind, and of being compressed.
const PROGBITS: u32 = 1;
const STRTAB: u32 = 3;
const COMPRESSED: u64 = 1 << 11;

/// Returns a section header (Elf64_Shdr) of `size` bytes at `offset`.
fn section(name: u32, kind: u32, flags: u64, offset: usize, size: usize) -> Vec<u8> {
    let mut bytes = [name.to_le_bytes(), kind.to_le_bytes()].concat();
    for field in [flags, 0, offset as u64, size as u64, 0, 1, 0] {
        bytes.extend(field.to_le_bytes());
    }
    bytes
}

/// Returns an ELF file that has these bytes as its two sections of debug information.
fn file(info: &[u8], line: &[u8]) -> Vec<u8> {
    let info_at = HEADER_BYTES;
    let line_at = info_at + info.len();
    let names_at = line_at + line.len();
    let sections_at = names_at + NAMES.len();
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    // An executable file for x86-64, without segments.
    bytes.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    for field in [0, 0, sections_at as u64] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend([0; 4]);
    for field in [HEADER_BYTES, 56, 0, SECTION_BYTES, 4, 3] {
        bytes.extend((field as u16).to_le_bytes());
    }
    bytes.extend([info, line, NAMES].concat());
    bytes.extend(section(0, 0, 0, 0, 0));
    bytes.extend(section(1, PROGBITS, COMPRESSED, info_at, info.len()));
    bytes.extend(section(13, PROGBITS, 0, line_at, line.len()));
    bytes.extend(section(26, STRTAB, 0, names_at, NAMES.len()));
    bytes
}

// The first byte says by what it is compressed, four say how long it gets, the rest is the stream.
fuzz_target!(|bytes: &[u8]| {
    let Some((&[kind, a, b, c, d], stream)) = bytes.split_first_chunk() else {
        return;
    };
    let size = u64::from(u32::from_le_bytes([a, b, c, d]));
    let mut info = [u32::from(kind).to_le_bytes(), [0; 4]].concat();
    info.extend(size.to_le_bytes());
    info.extend(1u64.to_le_bytes());
    info.extend(stream);
    let mut line = b"ZLIB".to_vec();
    line.extend(size.to_be_bytes());
    line.extend(stream);
    let source = Source::Memory(file(&info, &line).into());
    let object = Object::from_source(source).expect("the file is sound");
    for name in [".debug_info", ".debug_line"] {
        if let Ok(inflated) = object.debug_section(name, BYTES_MAX) {
            assert_eq!(inflated.len() as u64, size, "{name}");
            assert!(size <= BYTES_MAX);
        }
    }
    assert!(object.has_debug_info());
});
