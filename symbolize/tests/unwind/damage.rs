//! Damaged files: no panic, no table that breaks its promises, no memory out of proportion to the
//! bytes.

use symbolize::object::Object;
use symbolize::unwind::{RuleId, UnwindTable};
use test_support::Random;

use crate::cfi::{Cfi, Common, ENTRY};
use crate::elf::{self, Elf, TEXT};
use crate::files;

fn check(object: &Object, section_bytes: usize) {
    let Ok(table) = UnwindTable::read(object) else {
        return;
    };
    let rows = table.rows();
    assert!(rows.is_sorted_by(|a, b| a.start < b.start && a.rule != b.rule));
    assert!(rows.last().is_none_or(|row| row.rule == RuleId::HOLE));
    assert!(rows.first().is_none_or(|row| row.rule != RuleId::HOLE));
    let rules = table.rules().len();
    assert!(rows.iter().all(|row| usize::from(row.rule.0) < rules));
    // A row takes at least one byte; the end of its function, and the continuation of a function
    // around it, are two more rows.
    assert!(rows.len() <= 3 * section_bytes + 1);
}

/// Overwrites bytes or moves some, once or many times.
fn damage(bytes: &mut [u8], random: &mut Random) {
    let times = 1 << random.index(8);
    for _ in 0..times {
        let at = random.index(bytes.len());
        match random.index(3) {
            0 => bytes[at] = random.byte(),
            1 => bytes[at] ^= 1 << random.index(8),
            _ => {
                let from = random.index(bytes.len());
                let len = random.index(8).min(bytes.len() - from.max(at));
                bytes.copy_within(from..from + len, at);
            }
        }
    }
}

#[test]
fn a_small_file_anywhere() {
    let cfi = (0..20).fold(
        Cfi::eh_frame().cie(Common::default(), ENTRY),
        |cfi, number| {
            let start = TEXT + number * 0x20;
            let expression = [0x0f, 3, 0x76, 0x78, 0x06];
            let program = [
                &[0x41, 0x0e, 16, 0x86, 2, 0x0a, 0x44][..],
                &expression,
                &[0x42, 0x0b],
            ];
            cfi.fde(start, 0x30, &program.concat())
        },
    );
    let len = cfi.data.len();
    let mut table = vec![1, 0x0b, 0x03, 0x3b];
    table.extend(0x2000u32.to_le_bytes());
    table.extend(20u32.to_le_bytes());
    let mut elf =
        Elf::new()
            .with(".eh_frame", 0x2000, cfi.data)
            .with(".eh_frame_hdr", 0x8000, table);
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    for section_headers in [true, false] {
        elf.section_headers = section_headers;
        let whole = elf.bytes();
        check(&elf::object(whole.clone()).unwrap(), len);
        for _ in 0..1000 {
            let mut bytes = whole.clone();
            damage(&mut bytes, &mut random);
            if let Ok(object) = elf::object(bytes) {
                check(&object, whole.len());
            }
        }
    }
}

#[test]
fn the_unwind_information_of_the_c_library() {
    let whole = std::fs::read(files::c_library()).unwrap();
    let object = elf::object(whole.clone()).unwrap();
    let section = object.section_by_name(b".eh_frame").unwrap();
    let (start, len) = (section.offset as usize, section.size as usize);
    let times = if cfg!(debug_assertions) { 30 } else { 1000 };
    let mut random = Random::new(0xd6e8_feb8_6659_fd93);
    for _ in 0..times {
        let mut bytes = whole.clone();
        damage(&mut bytes[start..start + len], &mut random);
        check(&elf::object(bytes).unwrap(), len);
    }
}

/// The most expensive contents for their size: long CIEs, remembered states, and nested
/// functions.
#[test]
fn the_worst_that_bytes_can_ask_for() {
    let nested = (0..5_000).fold(
        Cfi::eh_frame().cie(Common::default(), ENTRY),
        |cfi, number| cfi.fde(TEXT + number, 20_000 - 2 * number, &[0x0e, number as u8]),
    );
    let remembering =
        Cfi::eh_frame()
            .cie(Common::default(), ENTRY)
            .fde(TEXT, 16, &vec![0x0a; 1 << 20]);
    let long = Cfi::eh_frame().cie(Common::default(), &vec![0; 1 << 20]);
    let long = (0..5_000).fold(long, |cfi, number| cfi.fde(TEXT + number, 1, &[]));
    for cfi in [nested, remembering, long] {
        let len = cfi.data.len();
        let elf = Elf::new().with(".eh_frame", 0x2000, cfi.data);
        check(&elf.object(), len);
    }
}
