//! Instructions as compilers, assemblers and linkers write them, and the rules
//! that they give.

use symbolize::LinkAddr;
use symbolize::unwind::{Cfa, RbpRule, Register, Unsupported, UnwindRule};

use crate::cfi::{Cfi, Common, ENTRY};
use crate::elf::{Elf, TEXT};

const FUNCTION_BYTES: u64 = 0x100;

/// Checks the rules at offsets in a function.
#[track_caller]
fn check(instructions: &[u8], expected: &[(u64, UnwindRule)]) {
    check_with(Common::default(), ENTRY, instructions, expected);
}

#[track_caller]
fn check_with(common: Common, entry: &[u8], instructions: &[u8], expected: &[(u64, UnwindRule)]) {
    let cfi = Cfi::eh_frame().cie(common, entry);
    let cfi = if common.augmentation.starts_with(b"z") {
        cfi.fde_z(TEXT, FUNCTION_BYTES, instructions)
    } else {
        cfi.fde(TEXT, FUNCTION_BYTES, instructions)
    };
    let table = Elf::new()
        .with(".eh_frame", 0x1000, cfi.data)
        .table()
        .unwrap();
    for (offset, rule) in expected {
        let found = table.lookup(LinkAddr(TEXT + offset));
        assert_eq!(found, Some(*rule), "at {offset:#x}");
    }
    let is_signal = common.augmentation.contains(&b'S');
    let behind = TEXT + FUNCTION_BYTES + u64::from(is_signal);
    assert_eq!(table.lookup(LinkAddr(behind)), Some(UnwindRule::Hole));
    assert_eq!(table.lookup(LinkAddr(TEXT - 1)), None);
}

fn rsp(offset: i32, rbp: RbpRule) -> UnwindRule {
    UnwindRule::frame(Register::Rsp, offset, rbp)
}

fn rbp(offset: i32, rbp: RbpRule) -> UnwindRule {
    UnwindRule::frame(Register::Rbp, offset, rbp)
}

fn deref(base: Register, offset: i32, addend: i32, rbp: RbpRule) -> UnwindRule {
    let cfa = Cfa {
        base,
        deref: true,
        offset,
        addend,
    };
    UnwindRule::Frame { cfa, rbp }
}

#[test]
fn frame_pointer() {
    check(
        &[
            0x41, // advance 1
            0x0e, 16, // def_cfa_offset 16
            0x86, 2,    // offset rbp at cfa-16
            0x43, // advance 3
            0x0d, 6, // def_cfa_register rbp
            0x02, 0x80, // advance1 128
            0x0a, // remember_state
            0x0c, 7, 8,    // def_cfa rsp 8
            0xc6, // restore rbp
            0x41, // advance 1
            0x0b, // restore_state
        ],
        &[
            (0, rsp(8, RbpRule::Same)),
            (1, rsp(16, RbpRule::AtCfa(-16))),
            (3, rsp(16, RbpRule::AtCfa(-16))),
            (4, rbp(16, RbpRule::AtCfa(-16))),
            (131, rbp(16, RbpRule::AtCfa(-16))),
            (132, rsp(8, RbpRule::Same)),
            (133, rbp(16, RbpRule::AtCfa(-16))),
            (255, rbp(16, RbpRule::AtCfa(-16))),
        ],
    );
}

/// GCC's `main` with an aligned local array.
#[test]
fn stack_realignment() {
    check(
        &[
            0x45, 0x0c, 10, 0, // lea 8(%rsp),%r10: def_cfa r10 0
            0x49, 0x10, 6, 2, 0x76, 0, // push %rbp: rbp at breg6 0
            0x45, 0x0f, 3, 0x76, 0x78, 0x06, // push %r10: CFA breg6 -8; deref
            0x60, 0x0c, 10, 0, // pop %r10: def_cfa r10 0
        ],
        &[
            (0, rsp(8, RbpRule::Same)),
            (5, UnwindRule::frame(Register::R10, 0, RbpRule::Same)),
            (14, UnwindRule::frame(Register::R10, 0, RbpRule::AtRbp(0))),
            (19, deref(Register::Rbp, -8, 0, RbpRule::AtRbp(0))),
            (51, UnwindRule::frame(Register::R10, 0, RbpRule::AtRbp(0))),
        ],
    );
}

/// OpenSSL's assembler code stores the caller's `rsp` in its frame.
#[test]
fn saved_stack_pointer() {
    check(
        &[
            0x44, 0x0d, 0, // mov %rsp,%rax: def_cfa_register rax
            0x50, 0x0f, 6, 0x77, 0x98, 0x01, 0x06, 0x23, 0x08,
        ],
        &[
            (4, UnwindRule::frame(Register::Rax, 8, RbpRule::Same)),
            (20, deref(Register::Rsp, 152, 8, RbpRule::Same)),
        ],
    );
}

/// libgcrypt's assembler code goes back to a register without giving its offset.
#[test]
fn register_after_an_expression() {
    check(
        &[
            0x44, 0x0e, 56, // def_cfa_offset 56
            0x44, 0x0f, 6, 0x77, 0x98, 0x04, 0x06, 0x23, 56, // breg7 536; deref; plus 56
            0x44, 0x0e, 48, // def_cfa_offset 48: not in use
            0x44, 0x0d, 7, // def_cfa_register rsp
        ],
        &[
            (4, rsp(56, RbpRule::Same)),
            (8, deref(Register::Rsp, 536, 56, RbpRule::Same)),
            (12, deref(Register::Rsp, 536, 56, RbpRule::Same)),
            (16, rsp(48, RbpRule::Same)),
        ],
    );
}

#[test]
fn linkage_table() {
    let expression = [
        0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22,
    ];
    check(
        &[&[0x0e, 16, 0x46, 0x0e, 24, 0x4a][..], &expression].concat(),
        &[
            (0, rsp(16, RbpRule::Same)),
            (6, rsp(24, RbpRule::Same)),
            (16, UnwindRule::Plt { limit: 11 }),
        ],
    );
}

#[test]
fn end_of_stack() {
    // undefined rip, as in `_start`.
    check(&[0x07, 16], &[(0, UnwindRule::EndOfStack)]);
}

#[test]
fn signal_frame() {
    let common = Common {
        augmentation: b"zS",
        ..Common::default()
    };
    // CFA breg7 160; deref. rip breg7 168.
    let restore = [
        0x0f, 4, 0x77, 0xa0, 0x01, 0x06, 0x10, 16, 3, 0x77, 0xa8, 0x01,
    ];
    // Also right after the code, where a thread would continue after the system call at its end.
    let both = [0, FUNCTION_BYTES].map(|offset| (offset, UnwindRule::Signal));
    check_with(common, ENTRY, &restore, &both);
    let unknown = UnwindRule::Unsupported(Unsupported::SignalFrame);
    check_with(common, ENTRY, &[], &[(0, unknown)]);
}

#[test]
fn frame_pointer_lost_or_kept() {
    check(&[0x07, 6], &[(0, rsp(8, RbpRule::Same))]);
    check(&[0x08, 6], &[(0, rsp(8, RbpRule::Same))]);
}

#[test]
fn unsupported() {
    #[track_caller]
    fn check_cause(instructions: &[u8], why: Unsupported) {
        check(instructions, &[(0, UnwindRule::Unsupported(why))]);
    }
    // rip in xmm0
    check_cause(&[0x09, 16, 17], Unsupported::ReturnAddress);
    // rip in rcx, def_cfa rbp
    check_cause(&[0x09, 16, 2, 0x0d, 6], Unsupported::ReturnAddress);
    // rip at cfa-16
    check_cause(&[0x90, 2], Unsupported::ReturnAddress);
    // def_cfa xmm0
    check_cause(&[0x0d, 17], Unsupported::CfaRegister);
    // CFA breg7 8; lit8; minus
    check_cause(&[0x0f, 4, 0x77, 8, 0x38, 0x1c], Unsupported::CfaExpression);
    // rbp in rcx
    check_cause(&[0x09, 6, 2], Unsupported::RbpRule);
    // rbp = cfa-16
    check_cause(&[0x14, 6, 2], Unsupported::RbpRule);
    // rbp at breg7 0
    check_cause(&[0x10, 6, 2, 0x77, 0], Unsupported::RbpExpression);
    // def_cfa_offset 2^32
    check_cause(&[0x0e, 0x80, 0x80, 0x80, 0x80, 0x10], Unsupported::Offset);
}

#[test]
fn a_return_address_in_a_register() {
    let in_rdi = |offset| UnwindRule::ReturnInRegister {
        register: Register::Rdi,
        offset,
    };
    // As vfork in glibc: advance 1, def_cfa_offset 0, rip in rdi; advance 8,
    // def_cfa_offset 8.
    check(
        &[0x41, 0x0e, 0, 0x09, 16, 5, 0x48, 0x0e, 8],
        &[(1, in_rdi(0)), (8, in_rdi(0)), (9, in_rdi(8))],
    );
}

#[test]
fn a_return_address_that_nothing_is_said_of() {
    let why = UnwindRule::Unsupported(Unsupported::ReturnAddress);
    check_with(Common::default(), &[0x0c, 7, 8], &[], &[(0, why)]);
}
