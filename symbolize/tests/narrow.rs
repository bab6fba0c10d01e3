//! ELF files of 32 bits that are stored with the tests, as not every machine has a compiler for
//! them.

use std::path::{Path, PathBuf};

use symbolize::debug_file::DebugFiles;
use symbolize::dwarf::DebugInfo;
use symbolize::object::Object;
use symbolize::source::Source;
use symbolize::{ElfSymbols, FileSource, LinkAddr, OpenError, Reason, RemoteFiles};

fn fixture(name: &str) -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.join("tests/fixtures/narrow").join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(fixture(name)).unwrap()
}

fn object(bytes: Vec<u8>) -> Object {
    Object::from_source(Source::Memory(bytes.into())).unwrap()
}

/// A listed function: name, start and size.
type Listed = (&'static str, u64, u64);

/// The functions of a fixture, as `nm` and a disassembler list them: a Thumb function
/// begins where its code does, one byte before what its symbol says.
const FUNCTIONS: [(&str, [Listed; 3]); 2] = [
    (
        "i386",
        [
            ("shown", 0x12a0, 46),
            ("hidden", 0x12d0, 49),
            ("elsewhere@plt", 0x1320, 16),
        ],
    ),
    (
        "arm",
        [
            ("shown", 0x10218, 18),
            ("hidden", 0x1022a, 22),
            ("elsewhere@plt", 0x10260, 12),
        ],
    ),
];

#[test]
fn functions_and_stubs() {
    for (name, functions) in FUNCTIONS {
        let symbols = ElfSymbols::from_object(object(bytes(name))).unwrap();
        for (expected, start, size) in functions {
            for addr in [start, start + size - 1].map(LinkAddr) {
                let found = symbols.find_link(addr).unwrap();
                let told = (found.name, found.start, found.size);
                assert_eq!(told, (expected.as_bytes(), LinkAddr(start), size), "{name}");
            }
            let behind = symbols.find_link(LinkAddr(start + size));
            assert_ne!(behind.map(|found| found.start), Ok(LinkAddr(start)));
        }
        let names: Vec<_> = symbols.functions().map(|f| f.name).collect();
        assert_eq!(names.len(), functions.len(), "{name}: {names:?}");
    }
}

#[test]
fn without_section_headers() {
    for (name, [(_, shown, _), (_, hidden, _), _]) in FUNCTIONS {
        let mut bytes = bytes(name);
        // e_shoff; e_shnum and e_shstrndx.
        bytes[32..36].fill(0);
        bytes[48..52].fill(0);
        let whole = object(self::bytes(name));
        let symbols = ElfSymbols::from_object(object(bytes)).unwrap();
        let found = symbols.find_link(LinkAddr(shown + 2)).unwrap();
        assert_eq!((found.name, found.start), (&b"shown"[..], LinkAddr(shown)));
        let found = symbols.find_link(LinkAddr(hidden));
        assert_eq!(found, Err(Reason::Stripped));
        assert_eq!(Some(symbols.id()), whole.file_id().ok().as_ref());
    }
}

/// Unwind information says to which function code without a name belongs.
#[test]
fn the_extent_of_a_function_without_a_name() {
    let mut bytes = bytes("i386");
    bytes[32..36].fill(0);
    bytes[48..52].fill(0);
    let symbols = ElfSymbols::from_object(object(bytes)).unwrap();
    let extent = symbols.extent(LinkAddr(0x12e0));
    assert_eq!(extent, Some(LinkAddr(0x12d0)..LinkAddr(0x1301)));
}

/// Returns function and line, innermost first.
fn lines(name: &str, addr: u64) -> Vec<(String, u32)> {
    lines_in(name, bytes(name), addr)
}

fn lines_in(name: &str, bytes: Vec<u8>, addr: u64) -> Vec<(String, u32)> {
    let path = fixture(name);
    let files = DebugFiles::of(&FileSource::new(&path), RemoteFiles::Skip);
    let info = DebugInfo::read(&object(bytes), files, 1 << 20);
    let table = info
        .unwrap()
        .unwrap()
        .table_at(LinkAddr(addr))
        .unwrap_or_else(|| panic!("{name}: nothing at {addr:#x}"));
    let frame = |frame: symbolize::table::SourceFrame<'_>| {
        assert_eq!(&*frame.path(), b"/fixture/narrow.c");
        let function = String::from_utf8_lossy(frame.function.unwrap_or_default());
        (function.into_owned(), frame.line)
    };
    table.find(LinkAddr(addr)).map(frame).collect()
}

#[test]
fn lines_and_inlined_functions() {
    let i386 = object(bytes("i386"));
    let info = i386.section_by_name(b".debug_info").unwrap();
    assert!(info.is_compressed(), "it is read as well");
    for (name, shown, twice) in [("i386", 0x12c1, 0x12e7), ("arm", 0x10222, 0x1022e)] {
        assert_eq!(lines(name, shown), [("shown".into(), 20)]);
        let inlined = [("twice".into(), 12), ("hidden".into(), 16)];
        assert_eq!(lines(name, twice), inlined);
    }
}

/// Assemblers give the address of a Thumb function in debug information as its symbol does, one
/// byte too high.
#[test]
fn a_thumb_function_of_an_assembler() {
    let mut bytes = bytes("arm");
    let whole = object(bytes.clone());
    let info = whole.section_by_name(b".debug_info").unwrap();
    let info = info.offset as usize..(info.offset + info.size) as usize;
    let shown = 0x10218u32.to_le_bytes();
    // The unit begins at the same address; its own entry comes first.
    let mut places = info.rev().filter(|at| bytes[*at..].starts_with(&shown));
    let function = places.next().unwrap();
    assert!(places.next().is_some());
    bytes[function] |= 1;
    assert_eq!(lines_in("arm", bytes, 0x10218), lines("arm", 0x10218));
}

#[test]
fn what_is_not_read_says_so() {
    let changes = [
        // Big-endian; MIPS; x86-64 with addresses of 32 bits; no class.
        (5, 2),
        (18, 8),
        (18, 62),
        (4, 3),
    ];
    for (at, value) in changes {
        let mut bytes = bytes("i386");
        bytes[at] = value;
        let found = Object::from_source(Source::Memory(bytes.into()));
        let error = found.expect_err("it is refused");
        assert!(matches!(error, OpenError::Unsupported), "{error}");
        assert_eq!(error.reason(), Reason::Unsupported);
    }
}

#[test]
fn damaged_and_cut() {
    let addresses: Vec<u64> = (0x1200..0x1340).chain(0x10200..0x10280).collect();
    for (name, _) in FUNCTIONS {
        let good = bytes(name);
        for at in 0..good.len() {
            let mut changed = good.clone();
            changed[at] ^= 0xff;
            for bytes in [changed, good[..at].to_vec()] {
                exercise(bytes, &addresses);
            }
        }
    }
}

fn exercise(bytes: Vec<u8>, addresses: &[u64]) {
    let len = bytes.len();
    let Ok(object) = Object::from_source(Source::Memory(bytes.into())) else {
        return;
    };
    let files = DebugFiles::of(&FileSource::new(Path::new("/nowhere")), RemoteFiles::Skip);
    if let Ok(Some(info)) = DebugInfo::read(&object, files, 1 << 20) {
        for addr in addresses.iter().step_by(7) {
            let table = info.table_at(LinkAddr(*addr));
            assert!(table.is_none_or(|table| table.find(LinkAddr(*addr)).count() <= 1000));
        }
    }
    let Ok(symbols) = ElfSymbols::from_object(object) else {
        return;
    };
    assert!(symbols.functions().count() <= len);
    for addr in addresses.iter().step_by(7) {
        _ = symbols.find_link(LinkAddr(*addr));
        _ = symbols.extent(LinkAddr(*addr));
    }
}
