//! Where the unwind information of a file may be, and how odd entries are read.

use std::io::Write as _;
use symbolize::unwind::{RbpRule, Register, UnwindRule, UnwindTable};
use symbolize::{LinkAddr, OpenError};

use crate::cfi::{Cfi, Common, ENTRY};
use crate::elf::{Elf, TEXT};

const EH_FRAME: u64 = 0x2000;
const SHF_COMPRESSED: u64 = 1 << 11;

fn eh_frame() -> Cfi {
    Cfi::eh_frame().cie(Common::default(), ENTRY)
}

fn debug_frame() -> Cfi {
    Cfi::debug_frame().cie(Common::default(), ENTRY)
}

fn frame(offset: i32) -> UnwindRule {
    UnwindRule::frame(Register::Rsp, offset, RbpRule::Same)
}

fn plain(table: &UnwindTable) -> Vec<(u64, UnwindRule)> {
    let rows = table.rows().iter();
    rows.map(|row| (u64::from(row.start), table.rule(row.rule)))
        .collect()
}

#[track_caller]
fn check(elf: &Elf, expected: &[(u64, UnwindRule)]) {
    assert_eq!(plain(&elf.table().unwrap()), expected);
}

#[test]
fn no_information_is_an_empty_table() {
    check(&Elf::new(), &[]);
    check(&Elf::new().with(".eh_frame", EH_FRAME, vec![]), &[]);
}

#[test]
fn without_section_headers() {
    let cfi = eh_frame().fde(TEXT, 16, &[]);
    // Another FDE after the zero, which ends the section for readers without section headers.
    let cfi = cfi.raw(&[0; 4]).fde(TEXT + 0x1000, 16, &[]);
    // Version 1; sdata4, omitted, omitted; the address of .eh_frame.
    let mut table = vec![1, 0x0b, 0xff, 0xff];
    table.extend((EH_FRAME as u32).to_le_bytes());
    let mut elf =
        Elf::new()
            .with(".eh_frame", EH_FRAME, cfi.data)
            .with(".eh_frame_hdr", 0x8000, table);
    let first = [(TEXT, frame(8)), (TEXT + 16, UnwindRule::Hole)];
    let second = [(TEXT + 0x1000, frame(8)), (TEXT + 0x1010, UnwindRule::Hole)];
    check(&elf, &[first, second].concat());
    elf.section_headers = false;
    check(&elf, &first);
}

#[test]
fn two_sections_of_one_file() {
    let moved = eh_frame().fde(TEXT, 16, &[0x0e, 16]);
    let original = eh_frame().fde(TEXT, 16, &[]).fde(TEXT + 0x100, 16, &[]);
    let elf = Elf::new()
        .with(".bolt.org.eh_frame", 0, original.data)
        .with(".eh_frame", EH_FRAME, moved.data);
    check(
        &elf,
        &[
            (TEXT, frame(16)),
            (TEXT + 16, UnwindRule::Hole),
            (TEXT + 0x100, frame(8)),
            (TEXT + 0x110, UnwindRule::Hole),
        ],
    );
}

/// Compresses a section as `objcopy --compress-debug-sections` does.
fn packed(data: &[u8]) -> Vec<u8> {
    let level = flate2::Compression::default();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), level);
    zlib.write_all(data).unwrap();
    let header = [1, data.len() as u64, 1].map(u64::to_le_bytes).concat();
    [header, zlib.finish().unwrap()].concat()
}

#[test]
fn debug_information_fills_the_holes() {
    let eh = eh_frame().fde(TEXT + 16, 16, &[]);
    let debug = debug_frame().fde(TEXT, 48, &[0x0e, 16]);
    let elf =
        Elf::new()
            .with(".eh_frame", EH_FRAME, eh.data)
            .with(".debug_frame", 0, debug.data.clone());
    check(
        &elf,
        &[
            (TEXT, frame(16)),
            (TEXT + 16, frame(8)),
            (TEXT + 32, frame(16)),
            (TEXT + 48, UnwindRule::Hole),
        ],
    );
    let alone = Elf::new().with(".debug_frame", 0, debug.data.clone());
    check(&alone, &[(TEXT, frame(16)), (TEXT + 48, UnwindRule::Hole)]);

    let packed = packed(&debug.data);
    let compressed = Elf::new().with_flags(".debug_frame", 0, SHF_COMPRESSED, packed);
    check(
        &compressed,
        &[(TEXT, frame(16)), (TEXT + 48, UnwindRule::Hole)],
    );
    let damaged = Elf::new().with_flags(".debug_frame", 0, SHF_COMPRESSED, debug.data);
    check(&damaged, &[]);
    assert_eq!(damaged.table().unwrap().statistics().damaged, 1);
}

#[test]
fn debug_information_may_be_in_another_file() {
    let eh = eh_frame().fde(TEXT + 16, 16, &[]);
    let stripped = Elf::new().with(".eh_frame", EH_FRAME, eh.data).object();
    let debug = debug_frame().fde(TEXT, 0x8000, &[0x0e, 16]);
    let debug = Elf::new().with(".debug_frame", 0, debug.data).object();
    let table = UnwindTable::read(&stripped).unwrap();
    assert!(table.lacks_most(&stripped));
    let table = UnwindTable::read_with(&stripped, Some(&debug)).unwrap();
    assert!(!table.lacks_most(&stripped));
    let at = |address| table.lookup(LinkAddr(address));
    assert_eq!(at(TEXT + 8), Some(frame(16)));
    assert_eq!(at(TEXT + 24), Some(frame(8)));
}

#[test]
fn removed_functions() {
    let cfi = eh_frame()
        .fde(0, 16, &[])
        .fde(TEXT, 0, &[])
        .fde(u64::MAX, 16, &[])
        .fde(u64::MAX - 1, 1, &[])
        .fde(1 << 32, 16, &[])
        .fde(TEXT, 16, &[]);
    let elf = Elf::new().with(".eh_frame", EH_FRAME, cfi.data);
    check(&elf, &[(TEXT, frame(8)), (TEXT + 16, UnwindRule::Hole)]);
    let table = elf.table().unwrap();
    assert_eq!(table.statistics().discarded, 5);
    assert_eq!(table.statistics().functions, 1);
}

#[test]
fn damaged_entries_cost_only_themselves() {
    let unusual = Common {
        return_address: 15,
        ..Common::default()
    };
    let cfi = eh_frame()
        // restore_state of nothing
        .fde(TEXT + 0x100, 16, &[0x41, 0x0e, 16, 0x41, 0x0b])
        // no such instruction
        .fde(TEXT + 0x200, 16, &[0x3f])
        // cut off
        .fde(TEXT + 0x300, 16, &[0x0e])
        .cie(unusual, ENTRY)
        .fde(TEXT + 0x400, 16, &[])
        // An FDE whose CIE does not exist.
        .raw(&[20, 0, 0, 0])
        .raw(&[0xff; 20])
        .cie(Common::default(), ENTRY)
        .fde(TEXT, 16, &[])
        // Longer than the section.
        .raw(&[0xff, 0, 0, 0]);
    let elf = Elf::new().with(".eh_frame", EH_FRAME, cfi.data);
    check(&elf, &[(TEXT, frame(8)), (TEXT + 16, UnwindRule::Hole)]);
    assert_eq!(elf.table().unwrap().statistics().damaged, 6);
}

#[test]
fn rows_behind_the_end_of_a_function() {
    // advance 16 of 16 bytes
    let cfi = eh_frame().fde(TEXT, 16, &[0x48, 0x0e, 16, 0x48, 0x0e, 24]);
    check(
        &Elf::new().with(".eh_frame", EH_FRAME, cfi.data),
        &[
            (TEXT, frame(8)),
            (TEXT + 8, frame(16)),
            (TEXT + 16, UnwindRule::Hole),
        ],
    );
}

#[test]
fn refusals() {
    let refused = |elf: &Elf| match elf.table() {
        Err(OpenError::Refused(why)) => why,
        other => panic!("{other:?}"),
    };
    let mut other = Elf::new();
    other.machine = 243;
    let why = "unwinding is known for x86-64 and AArch64 only";
    assert_eq!(refused(&other), why);
    let mut high = Elf::new();
    high.text = 0xffff_ffff_8100_0000;
    assert_eq!(refused(&high), "code above 4 GiB");
}

#[test]
fn vdso() {
    let table = UnwindTable::of_vdso().unwrap();
    let vdso = symbolize::Vdso::load().unwrap();
    let mut functions = vdso.symbols().functions();
    let clock = functions.find(|f| f.name.ends_with(b"clock_gettime"));
    let found = table.lookup(clock.unwrap().start);
    assert_eq!(found, Some(frame(8)));
    assert_eq!(table.lookup(LinkAddr(0)), None);
}
