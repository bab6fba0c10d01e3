//! Files of other systems: written by the tests, and damaged.

use object::write::{Object, StandardSection, Symbol, SymbolSection};
use object::{Architecture, BinaryFormat, Endianness, SymbolFlags, SymbolKind, SymbolScope};
use symbolize::foreign::{ForeignSymbols, Machine};
use symbolize::{LinkAddr, Reason, demangle};

const FUNCTIONS: [(&str, u64); 4] = [
    ("main", 0x10),
    ("_ZN2ns5twiceEi", 0x20),
    ("__alias_of_twice", 0x20),
    ("last", 0x38),
];

const CODE_BYTES: usize = 0x40;

fn file(format: BinaryFormat, architecture: Architecture) -> Vec<u8> {
    let mut object = Object::new(format, architecture, Endianness::Little);
    let text = object.section_id(StandardSection::Text);
    object.append_section_data(text, &[0x90; CODE_BYTES], 16);
    let data = object.section_id(StandardSection::Data);
    object.append_section_data(data, &[0; 64], 16);
    let mut add = |name: &str, value, kind, section| {
        object.add_symbol(Symbol {
            name: name.into(),
            value,
            size: 0,
            kind,
            scope: SymbolScope::Linkage,
            weak: false,
            section,
            flags: SymbolFlags::None,
        });
    };
    for (name, value) in FUNCTIONS {
        add(name, value, SymbolKind::Text, SymbolSection::Section(text));
    }
    add(
        "variable",
        0,
        SymbolKind::Data,
        SymbolSection::Section(data),
    );
    add("imported", 0, SymbolKind::Text, SymbolSection::Undefined);
    object.write().unwrap()
}

fn formats() -> [(BinaryFormat, Vec<u8>); 3] {
    [
        (BinaryFormat::MachO, Architecture::X86_64),
        (BinaryFormat::MachO, Architecture::Aarch64),
        (BinaryFormat::Coff, Architecture::X86_64),
    ]
    .map(|(format, architecture)| (format, file(format, architecture)))
}

/// Two programs in one file, as `lipo` writes it.
fn fat() -> Vec<u8> {
    let programs = [
        (
            0x0100_0007u32,
            file(BinaryFormat::MachO, Architecture::X86_64),
        ),
        (
            0x0100_000c,
            file(BinaryFormat::MachO, Architecture::Aarch64),
        ),
    ];
    let mut bytes = 0xcafe_babeu32.to_be_bytes().to_vec();
    bytes.extend(2u32.to_be_bytes());
    let mut offset = 4096;
    for (machine, program) in &programs {
        for word in [*machine, 0, offset, program.len() as u32, 12] {
            bytes.extend(word.to_be_bytes());
        }
        offset += 4096;
    }
    for (index, (_, program)) in programs.iter().enumerate() {
        bytes.resize(4096 * (index + 1), 0);
        bytes.extend(program);
    }
    bytes
}

#[test]
fn functions_by_address() {
    for (format, bytes) in formats() {
        let symbols = ForeignSymbols::parse(&bytes, None).unwrap();
        let name = |addr| {
            let symbol = symbols.find(LinkAddr(addr))?;
            Ok(demangle(symbol.name).short().into_owned())
        };
        assert_eq!(name(0xf), Err(Reason::NotCovered), "{format:?}");
        assert_eq!(name(0x10).as_deref(), Ok("main"), "{format:?}");
        assert_eq!(name(0x1f).as_deref(), Ok("main"), "{format:?}");
        assert_eq!(name(0x3f).as_deref(), Ok("last"), "{format:?}");
        assert_eq!(name(CODE_BYTES as u64 + 64), Err(Reason::NotCovered));
        // Mach-O has an underscore before each name, so the names in two of these files differ.
        assert_eq!(name(0x2f).as_deref(), Ok("ns::twice"), "{format:?}");
        assert_eq!(symbols.functions().count(), 3);
    }
}

#[test]
fn programs_for_several_machines() {
    let bytes = fat();
    for machine in [None, Some(Machine::X86_64), Some(Machine::Aarch64)] {
        let symbols = ForeignSymbols::parse(&bytes, machine).unwrap();
        assert_eq!(symbols.find(LinkAddr(0x10)).unwrap().name, b"main");
    }
    let mut one = bytes.clone();
    one[4..8].copy_from_slice(&1u32.to_be_bytes());
    assert!(ForeignSymbols::parse(&one, Some(Machine::Aarch64)).is_err());
}

#[test]
fn what_is_neither() {
    for bytes in [&b""[..], b"MZ", b"\x7fELF", b"!<arch>\n", &[0; 4096]] {
        assert!(ForeignSymbols::parse(bytes, None).is_err());
    }
}

#[test]
fn a_thousand_damaged_files() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut below = |end: usize| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    };
    let files = formats().map(|(_, bytes)| bytes);
    for whole in files.iter().chain([&fat()]) {
        for _ in 0..1000 {
            let mut bytes = whole.clone();
            for _ in 0..1 << below(6) {
                let at = below(bytes.len());
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff][below(5)];
            }
            bytes.truncate(bytes.len() - below(bytes.len()) * below(2));
            let Ok(symbols) = ForeignSymbols::parse(&bytes, None) else {
                continue;
            };
            // Names may overlap; each is cut at 64 KiB.
            let functions = symbols.functions().count();
            assert!(functions <= bytes.len());
            for addr in [0, 0x10, 0x2f, u64::MAX] {
                _ = symbols.find(LinkAddr(addr));
            }
        }
    }
}
