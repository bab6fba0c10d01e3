//! Rules of AArch64: as compilers and the C library write them, and of code without unwind
//! information.

use symbolize::LinkAddr;
use symbolize::unwind::{Linked, Saved, Unsupported, UnwindRule, UnwindTable};

use crate::cfi::{Cfi, Common};
use crate::elf::{Elf, SHF_EXECINSTR, TEXT};

const AARCH64: u16 = 183;
const FUNCTION_BYTES: u64 = 0x100;

/// What every CIE starts with: `DW_CFA_def_cfa: sp, 0`.
const ENTRY: &[u8] = &[0x0c, 31, 0];

fn elf() -> Elf {
    let mut elf = Elf::new();
    elf.machine = AARCH64;
    elf
}

fn table_of(augmentation: &'static [u8], instructions: &[u8]) -> UnwindTable {
    let common = Common {
        augmentation,
        code_alignment: 4,
        data_alignment: -8,
        return_address: 30,
    };
    let cfi = Cfi::eh_frame()
        .cie(common, ENTRY)
        .fde_z(TEXT, FUNCTION_BYTES, instructions);
    elf().with(".eh_frame", 0x1000, cfi.data).table().unwrap()
}

#[track_caller]
fn check(instructions: &[u8], expected: &[(u64, UnwindRule)]) {
    let table = table_of(b"z", instructions);
    for (offset, rule) in expected {
        let found = table.lookup(LinkAddr(TEXT + offset));
        assert_eq!(found, Some(*rule), "at {offset:#x}");
    }
}

fn frame(base: u8, offset: i32, x29: Option<i32>, x30: Option<i32>) -> UnwindRule {
    let place = |at: Option<i32>| at.map_or(Saved::Not, Saved::AtCfa);
    UnwindRule::Linked(Linked {
        base,
        offset,
        x29: place(x29),
        x30: place(x30),
    })
}

/// With signed return addresses, and the frame pointer in use.
#[test]
fn a_pair_and_a_signed_return_address() {
    check(
        &[
            0x41, 0x2d, // paciasp: negate_ra_state
            0x41, 0x0e, 32, // stp x29, x30, [sp, #-32]!: def_cfa_offset 32
            0x9d, 4, 0x9e, 3, // x29 at cfa-32, x30 at cfa-24
            0x41, 0x0d, 29, // mov x29, sp: def_cfa_register x29
            0x4a, 0x0a, // remember_state
            0x41, 0xdd, 0xde, 0x0c, 31, 0, // ldp: restore both, def_cfa sp 0
            0x41, 0x2d, // autiasp
            0x41, 0x0b, // restore_state
        ],
        &[
            (0, frame(31, 0, None, None)),
            (4, frame(31, 0, None, None)),
            (8, frame(31, 32, Some(-32), Some(-24))),
            (12, frame(29, 32, Some(-32), Some(-24))),
            (56, frame(31, 0, None, None)),
            (64, frame(29, 32, Some(-32), Some(-24))),
        ],
    );
}

#[test]
fn a_link_register_alone_or_apart() {
    check(
        &[
            0x41, 0x0e, 48, 0x9e, 6, // str x30, [sp, #-48]!
            0x41, 0x9d, 2, // str x29, [sp, #32]
        ],
        &[
            (4, frame(31, 48, None, Some(-48))),
            (8, frame(31, 48, Some(-16), Some(-48))),
        ],
    );
}

#[test]
fn the_first_function_and_other_registers() {
    check(&[0x07, 30], &[(0, UnwindRule::EndOfStack)]);
    check(&[0x07, 29], &[(0, frame(31, 0, None, None))]);
    // mov x16, sp: def_cfa_register x16
    check(&[0x41, 0x0d, 16], &[(4, frame(16, 0, None, None))]);
    // CFA breg31 16; plus_uconst 8
    let expression = &[0x0f, 4, 0x8f, 16, 0x23, 8];
    check(expression, &[(0, frame(31, 24, None, None))]);
}

#[test]
fn unsupported() {
    #[track_caller]
    fn check_cause(instructions: &[u8], why: Unsupported) {
        check(instructions, &[(0, UnwindRule::Unsupported(why))]);
    }
    // x30 in x1, and computed
    check_cause(&[0x09, 30, 1], Unsupported::ReturnAddress);
    check_cause(&[0x14, 30, 2], Unsupported::ReturnAddress);
    // x29 in x1, at an expression
    check_cause(&[0x09, 29, 1], Unsupported::RbpRule);
    check_cause(&[0x10, 29, 2, 0x8f, 0], Unsupported::RbpExpression);
    // CFA v0; CFA breg31 8; deref
    check_cause(&[0x0d, 64], Unsupported::CfaRegister);
    check_cause(&[0x0f, 3, 0x8f, 8, 0x06], Unsupported::CfaExpression);
    check_cause(&[0x0e, 0x80, 0x80, 0x80, 0x80, 0x10], Unsupported::Offset);
}

#[test]
fn a_signal_frame_is_known_by_the_augmentation() {
    // As in the vDSO of Linux 5.10: def_cfa x29 0, x29 at cfa, x30 at cfa+8
    let instructions = [0x0c, 29, 0, 0x9d, 0, 0x05, 30, 0x7f];
    let table = table_of(b"zS", &instructions);
    assert_eq!(table.lookup(LinkAddr(TEXT)), Some(UnwindRule::Signal));
}

fn bytes(code: &[u32]) -> Vec<u8> {
    code.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn stubs_of_the_linker() {
    const PLT: u64 = 0x8000;
    let first = [
        0xa9bf_7bf0,
        0x9000_0110,
        0xf940_0a11,
        0x9100_4210,
        0xd61f_0220,
    ];
    let mut code = first.to_vec();
    code.resize(8, 0xd503_201f);
    code.extend([0x9000_0110, 0xf940_0e11, 0x9100_6210, 0xd61f_0220]);
    let plt = |code: &[u32]| {
        let elf = elf().with_flags(".plt", PLT, SHF_EXECINSTR, bytes(code));
        elf.table().unwrap()
    };
    let leaf = frame(31, 0, None, None);
    let saved = frame(31, 16, None, Some(-8));
    let table = plt(&code);
    for (offset, rule) in [(0, leaf), (4, saved), (28, saved), (32, leaf), (44, leaf)] {
        assert_eq!(table.lookup(LinkAddr(PLT + offset)), Some(rule), "{offset}");
    }
    assert_eq!(table.lookup(LinkAddr(PLT + 48)), Some(UnwindRule::Hole));
    // The stub of a program with protected branch targets.
    code.insert(0, 0xd503_245f);
    let table = plt(&code);
    assert_eq!(table.lookup(LinkAddr(PLT + 4)), Some(leaf));
    assert_eq!(table.lookup(LinkAddr(PLT + 8)), Some(saved));
    // Stubs of another machine have their own unwind information, or their code describes them.
    let other = Elf::new().with_flags(".plt", PLT, SHF_EXECINSTR, bytes(&code));
    let table = other.table().unwrap();
    let of_this_machine = |rule: &UnwindRule| matches!(rule, UnwindRule::Linked(_));
    assert!(!table.rules().iter().any(of_this_machine));
}

/// The kernel, or musl, does not describe this code. Handlers return to its first byte; while the
/// kernel restores what ran before, a thread is behind its last one.
#[test]
fn the_return_of_a_signal_is_known_by_its_code() {
    let nop = 0xd503_201f;
    let code = bytes(&[nop, nop, 0xd280_1168, 0xd400_0001, nop]);
    const CODE: u64 = 0x8000;
    let elf = elf().with_flags(".text", CODE, SHF_EXECINSTR, code);
    let table = elf.table().unwrap();
    let found = |offset| table.lookup(LinkAddr(CODE + offset));
    assert_eq!(found(0), None);
    for offset in [4, 7, 8, 12, 15, 16] {
        assert_eq!(found(offset), Some(UnwindRule::Signal), "{offset}");
    }
    assert_eq!(found(17), Some(UnwindRule::Hole));
}
