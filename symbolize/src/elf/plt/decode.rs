//! Decodes stubs as linkers write them, for each machine.
//!
//! A stub is decoded to find the GOT slot that it jumps through. Counting stubs instead goes wrong
//! with linkers that reorder or pad them.

use object::elf;

use super::Target;
use crate::bytes::{u32_at, u32_in};
use crate::object::{Class, Object, Section};

/// The calling sequence between files on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linkage {
    /// x86-64 psABI, "Procedure Linkage Table".
    X86_64,
    /// i386 psABI, with the address of the GOT, relative to which position-independent stubs
    /// address their slots.
    I386 { got: u64 },
    /// The ABI for Arm, "PLT sequences", of Arm code.
    Arm,
    /// The ABI for AArch64, "PLT sequences".
    Aarch64,
}

/// A stub and its position in its section.
#[derive(Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Offset in the section.
    pub within: u64,
    /// Length in bytes.
    pub size: u64,
    /// Where the stub gets its jump target from.
    pub target: Target,
}

/// The relocation types of a machine that put a function's address into a slot.
pub struct Kinds {
    /// Relocation types that refer to a symbol.
    pub symbols: [u32; 2],
    /// The function that a resolver in the file chooses.
    pub resolver: u32,
}

impl Linkage {
    /// The calling sequence of a file's machine; `None` if it is not supported.
    pub fn of(object: &Object) -> Option<Linkage> {
        match (object.class(), elf::Machine(object.machine())) {
            (Class::Wide, elf::EM_X86_64) => Some(Linkage::X86_64),
            (Class::Narrow, elf::EM_386) => {
                let section = |name: &[u8]| object.section_by_name(name);
                let got = section(b".got.plt")
                    .or_else(|| section(b".got"))
                    .map_or(0, |section| section.addr);
                Some(Linkage::I386 { got })
            }
            (Class::Narrow, elf::EM_ARM) => Some(Linkage::Arm),
            (Class::Wide, elf::EM_AARCH64) => Some(Linkage::Aarch64),
            _ => None,
        }
    }

    /// Decodes the stubs of a section.
    pub fn stubs(self, section: &Section, code: &[u8]) -> impl Iterator<Item = Decoded> {
        let (step, size) = match self {
            // Some are padded, and lengths differ: each word may begin one.
            Linkage::Arm => (4, ARM_STUB_BYTES),
            Linkage::Aarch64 => (4, AARCH64_STUB_BYTES),
            // In static i386 programs only the alignment of the section shows that it has stubs.
            _ if matches!((section.entry_size, section.align), (8, _) | (0, 8)) => (8, 8),
            _ => (16, 16),
        };
        let start = section.addr;
        (0..code.len()).step_by(step).filter_map(move |within| {
            let stub = code.get(within..within + size)?;
            let target = self.decode(stub, start.wrapping_add(within as u64))?;
            Some(Decoded {
                within: within as u64,
                size: size as u64,
                target,
            })
        })
    }

    /// Returns the relocation types that the loader processes for slots of the GOT.
    pub fn relocation_kinds(self) -> Kinds {
        match self {
            Linkage::X86_64 => Kinds {
                symbols: [elf::R_X86_64_JUMP_SLOT.0, elf::R_X86_64_GLOB_DAT.0],
                resolver: elf::R_X86_64_IRELATIVE.0,
            },
            Linkage::I386 { .. } => Kinds {
                symbols: [elf::R_386_JMP_SLOT.0, elf::R_386_GLOB_DAT.0],
                resolver: elf::R_386_IRELATIVE.0,
            },
            Linkage::Arm => Kinds {
                symbols: [elf::R_ARM_JUMP_SLOT.0, elf::R_ARM_GLOB_DAT.0],
                resolver: elf::R_ARM_IRELATIVE.0,
            },
            Linkage::Aarch64 => Kinds {
                symbols: [elf::R_AARCH64_JUMP_SLOT.0, elf::R_AARCH64_GLOB_DAT.0],
                resolver: elf::R_AARCH64_IRELATIVE.0,
            },
        }
    }

    fn decode(self, stub: &[u8], addr: u64) -> Option<Target> {
        match self {
            Linkage::X86_64 => x86_64(stub, addr),
            Linkage::I386 { got } => i386(stub, got),
            Linkage::Arm => arm(stub, addr),
            Linkage::Aarch64 => aarch64(stub, addr),
        }
    }
}

/// Decodes one of these stubs:
///
/// ```text
/// [endbr64] [bnd] jmp *slot(%rip) ...      ff 25 disp32
/// [endbr64] push number; [bnd] jmp plt0    68 imm32
/// ```
fn x86_64(stub: &[u8], addr: u64) -> Option<Target> {
    const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
    const BND: &[u8] = &[0xf2];
    let rest = stub.strip_prefix(ENDBR64).unwrap_or(stub);
    if let [0x68, ..] = rest {
        return Some(Target::Relocation(u32_in(rest, 1)?));
    }
    let rest = rest.strip_prefix(BND).unwrap_or(rest);
    let [0xff, 0x25, rest @ ..] = rest else {
        return None;
    };
    let displacement = u32_in(rest, 0)? as i32;
    let next = addr.wrapping_add((stub.len() - rest.len() + 4) as u64);
    Some(Target::Got(
        next.wrapping_add_signed(i64::from(displacement)),
    ))
}

/// Decodes one of these stubs:
///
/// ```text
/// [endbr32] jmp *slot ...                  ff 25 abs32
/// [endbr32] jmp *slot-got(%ebx) ...        ff a3 disp32
/// [endbr32] push 8*number; jmp plt0        68 imm32
/// ```
fn i386(stub: &[u8], got: u64) -> Option<Target> {
    const ENDBR32: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfb];
    let rest = stub.strip_prefix(ENDBR32).unwrap_or(stub);
    match rest {
        [0x68, ..] => Some(Target::Relocation(u32_in(rest, 1)? / 8)),
        [0xff, 0x25, slot @ ..] => Some(Target::Got(u32_in(slot, 0)?.into())),
        [0xff, 0xa3, slot @ ..] => {
            let slot = (got as u32).wrapping_add(u32_in(slot, 0)?);
            Some(Target::Got(slot.into()))
        }
        _ => None,
    }
}

const ARM_STUB_BYTES: usize = 12;

/// ```text
/// add ip, pc, #a       e28fcXXX    pc is two instructions further
/// add ip, ip, #b       e28ccXXX
/// ldr pc, [ip, #c]!    e5bcfXXX    slot = ip + c
/// ```
fn arm(stub: &[u8], addr: u64) -> Option<Target> {
    let stub: &[u8; ARM_STUB_BYTES] = stub.try_into().ok()?;
    let [first, second, third] = [u32_at(stub, 0), u32_at(stub, 4), u32_at(stub, 8)];
    let is_stub = first & !0xfff == 0xe28f_c000
        && second & !0xfff == 0xe28c_c000
        && third & !0xfff == 0xe5bc_f000;
    // An immediate is a byte, rotated right by twice the four bits above it.
    let immediate = |word: u32| (word & 0xff).rotate_right((word >> 8 & 0xf) * 2);
    let slot = (addr as u32)
        .wrapping_add(8)
        .wrapping_add(immediate(first))
        .wrapping_add(immediate(second))
        .wrapping_add(third & 0xfff);
    is_stub.then_some(Target::Got(slot.into()))
}

const AARCH64_STUB_BYTES: usize = 16;

/// With branch protection a `bti c` precedes the stub; it does not belong to it.
///
/// ```text
/// adrp x16, slot               the slot's page
/// ldr  x17, [x16, #slot]       where in it
/// add  x16, x16, #slot
/// br   x17
/// ```
fn aarch64(stub: &[u8], addr: u64) -> Option<Target> {
    let stub: &[u8; AARCH64_STUB_BYTES] = stub.try_into().ok()?;
    let [page, load, add, jump] = [0, 4, 8, 12].map(|at| u32_at(stub, at));
    let is_stub = page & 0x9f00_001f == 0x9000_0010
        && load & 0xffc0_03ff == 0xf940_0211
        && add & 0xffc0_03ff == 0x9100_0210
        && jump == 0xd61f_0220;
    // A signed number of 21 bits, the lowest two stored separately.
    let pages = (page >> 5 & 0x7_ffff) << 2 | page >> 29 & 3;
    let pages = (pages << 11).cast_signed() >> 11;
    let page = (addr & !0xfff).wrapping_add_signed(i64::from(pages) << 12);
    let within = u64::from(load >> 10 & 0xfff) * 8;
    is_stub.then_some(Target::Got(page.wrapping_add(within)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: &[u8], expected: Option<Target>) {
        assert_eq!(Linkage::X86_64.decode(code, 0x1020), expected);
    }

    #[test]
    fn stubs_as_linkers_write_them() {
        // jmp *0x2fca(%rip); push $0x3; jmp plt0
        let lazy = [
            0xff, 0x25, 0xca, 0x2f, 0, 0, 0x68, 3, 0, 0, 0, 0xe9, 0xb0, 0xff, 0xff, 0xff,
        ];
        check(&lazy, Some(Target::Got(0x1020 + 6 + 0x2fca)));
        // endbr64; bnd jmp *0x2f75(%rip); nopl
        let with_ibt = [
            0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x75, 0x2f, 0, 0, 0x0f, 0x1f, 0x44, 0, 0,
        ];
        check(&with_ibt, Some(Target::Got(0x1020 + 11 + 0x2f75)));
        // endbr64; push $0x2; bnd jmp plt0; nop
        let first_call = [
            0xf3, 0x0f, 0x1e, 0xfa, 0x68, 2, 0, 0, 0, 0xf2, 0xe9, 0xd1, 0xff, 0xff, 0xff, 0x90,
        ];
        check(&first_call, Some(Target::Relocation(2)));
        // push 0x2fe2(%rip); jmp *0x2fe4(%rip): the entry to the loader, which belongs to no
        // function.
        let plt0 = [
            0xff, 0x35, 0xe2, 0x2f, 0, 0, 0xff, 0x25, 0xe4, 0x2f, 0, 0, 0, 0, 0, 0,
        ];
        check(&plt0, None);
        // jmp *-8(%rip)
        check(
            &[0xff, 0x25, 0xf8, 0xff, 0xff, 0xff, 0x66, 0x90],
            Some(Target::Got(0x1020 + 6 - 8)),
        );
        check(&[0xff, 0x25, 0], None);
        check(&[], None);
    }

    #[test]
    fn stubs_of_i386() {
        #[track_caller]
        fn check(code: &[u8], expected: Option<Target>) {
            let linkage = Linkage::I386 { got: 0x3ff4 };
            assert_eq!(linkage.decode(code, 0x1030), expected);
        }
        // jmp *0x804c000; push $0x10; jmp plt0
        let fixed = b"\xff\x25\0\xc0\x04\x08\x68\x10\0\0\0\xe9\xe0\xff\xff\xff";
        check(fixed, Some(Target::Got(0x804_c000)));
        // jmp *0xc(%ebx), and -0x10(%ebx); nop
        check(b"\xff\xa3\x0c\0\0\0\x66\x90", Some(Target::Got(0x4000)));
        check(
            b"\xff\xa3\xf0\xff\xff\xff\x66\x90",
            Some(Target::Got(0x3fe4)),
        );
        // endbr32; push $0x8; jmp plt0
        let lazy = b"\xf3\x0f\x1e\xfb\x68\x08\0\0\0\xe9\xe2\xff\xff\xff\x66\x90";
        check(lazy, Some(Target::Relocation(1)));
        // push 0x4(%ebx); jmp *0x8(%ebx): the entry to the loader.
        check(b"\xff\xb3\x04\0\0\0\xff\xa3\x08\0\0\0\0\0\0\0", None);
        check(b"\xff\xa3\0", None);
    }

    #[test]
    fn stubs_of_arm() {
        // As lld writes it: add ip, pc, #0, 12; add ip, ip, #32, 20; ldr pc, [ip, #0x8c]!
        let stub = b"\0\xc6\x8f\xe2\x20\xca\x8c\xe2\x8c\xf0\xbc\xe5";
        let target = Linkage::Arm.decode(stub, 0x201f0);
        assert_eq!(target, Some(Target::Got(0x40284)));
        assert_eq!(Linkage::Arm.decode(&stub[4..], 0x201f4), None);
        let mut other = *stub;
        other[11] = 0xe4;
        assert_eq!(Linkage::Arm.decode(&other, 0x201f0), None);
    }
    #[test]
    fn stubs_of_aarch64() {
        let code = |words: [u32; 4]| words.map(u32::to_le_bytes).concat();
        // adrp x16, +31 pages; ldr x17, [x16, #0xfb8]; add x16, x16, #0xfb8; br x17
        let stub = [0xf000_00f0, 0xf947_de11, 0x913e_e210, 0xd61f_0220];
        let target = Linkage::Aarch64.decode(&code(stub), 0x5d0);
        assert_eq!(target, Some(Target::Got(0x1_ffb8)));
        // adrp x16, -1 page
        let before = [0xf0ff_fff0, stub[1], stub[2], stub[3]];
        let target = Linkage::Aarch64.decode(&code(before), 0x2_0010);
        assert_eq!(target, Some(Target::Got(0x1_ffb8)));
        for other in 0..4 {
            let mut stub = stub;
            stub[other] ^= 1;
            assert_eq!(Linkage::Aarch64.decode(&code(stub), 0x5d0), None);
        }
    }
}
