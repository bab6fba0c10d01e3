//! Stubs of the procedure linkage table: the few instructions through which a
//! file calls functions of other files. They have no symbols; they are named
//! `foo@plt` after the function whose address they jump to.
//!
//! x86-64 psABI, "Procedure Linkage Table". A stub is decoded to learn which
//! slot of the GOT it jumps through; counting stubs goes wrong with linkers
//! that reorder or pad them.

use std::cmp::Reverse;
use std::collections::HashMap;

use object::elf;

use super::candidates::{Binding, Candidate};
use super::strings::{Name, Names, Table};
use super::tables::{Loaded, SYMBOL_BYTES};
use crate::OpenError;
use crate::bytes::{u32_at, u32_in, u64_at};
use crate::object::{Object, Section};

/// 16 bytes per imported function.
const PLT_BYTES_MAX: u64 = 16 << 20;

/// 24 bytes per relocation; a large program has a million of them.
const RELOCATIONS_BYTES_MAX: u64 = 128 << 20;

/// All names together.
const NAMES_BYTES_MAX: usize = 64 << 20;

const RELOCATION_BYTES: usize = 24;

/// Names of one resolver that are looked at. They have two or three.
const ALIASES_MAX: usize = 16;

/// Where a stub gets the address from that it jumps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Target {
    /// The slot of the GOT at this link address.
    Got(u64),
    /// The relocation of this number in `.rela.plt`: the lazy half of a stub.
    Relocation(u32),
}

/// What the loader puts there.
#[derive(Debug, Clone, Copy)]
enum Function {
    /// The function of this dynamic symbol.
    Symbol(u32),
    /// What the resolver at this address chooses, in a static program.
    Resolver(u64),
}

/// The named stubs of a file.
#[derive(Debug, Default)]
pub struct Stubs {
    names: Vec<u8>,
    candidates: Vec<Candidate>,
}

impl Stubs {
    /// `functions` are those known so far, sorted.
    pub fn find(
        &mut self,
        object: &Object,
        loaded: &Loaded,
        names: &Names,
        functions: &[Candidate],
    ) -> Result<(), OpenError> {
        if object.machine() != elf::EM_X86_64.0 {
            return Ok(());
        }
        let stubs = decode_all(object);
        let targets = resolve(object, &stubs);
        for stub in &stubs {
            let Some(function) = targets.get(&stub.target) else {
                continue;
            };
            let name = match *function {
                Function::Symbol(index) => symbol_name(loaded, index),
                Function::Resolver(addr) => name_at(functions, names, addr),
            };
            if let Some(name) = name {
                self.add(stub, names.get(name)?);
            }
        }
        Ok(())
    }

    pub fn take_names(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.names)
    }

    pub fn into_candidates(self) -> Vec<Candidate> {
        self.candidates
    }

    fn add(&mut self, stub: &Stub, name: &[u8]) {
        let offset = self.names.len();
        if name.is_empty() || offset + name.len() > NAMES_BYTES_MAX {
            return;
        }
        self.names.extend_from_slice(name);
        self.names.extend_from_slice(b"@plt\0");
        self.candidates.push(Candidate {
            start: stub.addr,
            size: stub.size,
            name: Name {
                table: Table::Stub,
                offset: offset as u32,
            },
            section: stub.section,
            binding: Binding::Stub,
            old_version: false,
        });
    }
}

#[derive(Debug)]
struct Stub {
    addr: u64,
    size: u64,
    section: u16,
    target: Target,
}

fn decode_all(object: &Object) -> Vec<Stub> {
    let mut stubs = Vec::new();
    for (index, section) in (0..).zip(object.sections()) {
        let name = object.section_name(section);
        let is_plt = matches!(name, b".plt" | b".plt.sec" | b".plt.got" | b".iplt");
        if !is_plt || !section.is_executable() {
            continue;
        }
        // A table that cannot be read only costs the names of its stubs.
        let Ok(code) = object.section_data(section, PLT_BYTES_MAX, "linkage table") else {
            continue;
        };
        let size = match section.entry_size {
            8 => 8,
            _ => 16,
        };
        let addrs = (section.addr..=u64::MAX).step_by(size);
        stubs.extend(
            addrs
                .zip(code.chunks_exact(size))
                .filter_map(|(addr, code)| {
                    Some(Stub {
                        addr,
                        size: size as u64,
                        section: index,
                        target: decode(code, addr)?,
                    })
                }),
        );
    }
    stubs
}

/// A stub is one of
///
/// ```text
/// [endbr64] [bnd] jmp *slot(%rip) ...      ff 25 disp32
/// [endbr64] push number; [bnd] jmp plt0    68 imm32
/// ```
fn decode(code: &[u8], addr: u64) -> Option<Target> {
    const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
    const BND: &[u8] = &[0xf2];
    let rest = code.strip_prefix(ENDBR64).unwrap_or(code);
    if let [0x68, ..] = rest {
        return Some(Target::Relocation(u32_in(rest, 1)?));
    }
    let rest = rest.strip_prefix(BND).unwrap_or(rest);
    let [0xff, 0x25, rest @ ..] = rest else {
        return None;
    };
    let displacement = u32_in(rest, 0)? as i32;
    let next = addr.wrapping_add((code.len() - rest.len() + 4) as u64);
    Some(Target::Got(
        next.wrapping_add_signed(i64::from(displacement)),
    ))
}

/// Finds the relocations that fill the slots. Most are in `.rela.plt`; the
/// rest, for `.plt.got`, in the much larger `.rela.dyn`.
fn resolve(object: &Object, stubs: &[Stub]) -> HashMap<Target, Function> {
    let mut wanted: HashMap<Target, Option<Function>> =
        stubs.iter().map(|stub| (stub.target, None)).collect();
    for name in [&b".rela.plt"[..], b".rela.dyn"] {
        if wanted.values().all(Option::is_some) {
            break;
        }
        let Some(section) = object.section_by_name(name) else {
            continue;
        };
        for (number, relocation) in (0..).zip(relocations(object, section)) {
            let Some((slot, function)) = decode_relocation(&relocation) else {
                continue;
            };
            let by_number = Some(Target::Relocation(number)).filter(|_| name == b".rela.plt");
            for target in [Some(Target::Got(slot)), by_number].into_iter().flatten() {
                if let Some(found) = wanted.get_mut(&target) {
                    found.get_or_insert(function);
                }
            }
        }
    }
    let found = wanted.into_iter();
    found.filter_map(|(t, f)| f.map(|f| (t, f))).collect()
}

fn relocations(object: &Object, section: &Section) -> Vec<[u8; RELOCATION_BYTES]> {
    let bytes = object.section_data(section, RELOCATIONS_BYTES_MAX, "relocations");
    bytes.unwrap_or_default().as_chunks().0.to_vec()
}

fn decode_relocation(relocation: &[u8; RELOCATION_BYTES]) -> Option<(u64, Function)> {
    let slot = u64_at(relocation, 0);
    let function = match elf::RelocationType(u32_at(relocation, 8)) {
        elf::R_X86_64_JUMP_SLOT | elf::R_X86_64_GLOB_DAT => {
            Function::Symbol(u32_at(relocation, 12))
        }
        elf::R_X86_64_IRELATIVE => Function::Resolver(u64_at(relocation, 16)),
        _ => return None,
    };
    Some((slot, function))
}

fn symbol_name(loaded: &Loaded, index: u32) -> Option<Name> {
    let (symbols, _) = loaded.dynamic.as_chunks::<SYMBOL_BYTES>();
    Some(Name {
        table: Table::Dynamic,
        offset: u32_at(symbols.get(index as usize)?, 0),
    })
}

/// The resolver's most public name: `memmove`, not `__libc_memmove_ifunc`.
fn name_at(functions: &[Candidate], names: &Names, addr: u64) -> Option<Name> {
    let index = functions.partition_point(|function| function.start < addr);
    let at_addr = functions[index..].iter().take_while(|f| f.start == addr);
    let underscores = |name| {
        let name = names.get(name).unwrap_or_default();
        name.iter().take_while(|&&byte| byte == b'_').count()
    };
    at_addr
        .take(ALIASES_MAX)
        .max_by_key(|f| (f.binding, Reverse(underscores(f.name))))
        .map(|f| f.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: &[u8], expected: Option<Target>) {
        assert_eq!(decode(code, 0x1020), expected);
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
        // push 0x2fe2(%rip); jmp *0x2fe4(%rip): the loader's entry, no function's.
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
}
