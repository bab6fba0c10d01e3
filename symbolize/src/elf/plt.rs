//! Stubs of the procedure linkage table: the few instructions through which a file calls functions
//! of other files. They have no symbols. They are named `foo@plt` after the function whose address
//! they jump to.
//!
//! | module | holds |
//! |---|---|
//! | `decode` | which slot of the GOT a stub jumps through |
//! | `relocations` | which function's address the loader puts into each slot |

mod decode;
mod relocations;

use std::cmp::Reverse;
use std::collections::HashMap;

use super::candidates::{Binding, Candidate};
use super::place::SYMBOL_BYTES;
use super::strings::{Name, Names, Table};
use super::tables::Loaded;
use crate::bytes::{u32_at, u32_in};
use crate::object::{Object, Section};
use crate::{LinkAddr, OpenError};

use decode::Linkage;
use relocations::{Function, Relocation};

/// Maximum size of all such sections; there are 16 bytes per imported function.
const PLT_BYTES_MAX: u64 = 16 << 20;

/// Maximum size of all names together.
const NAMES_BYTES_MAX: usize = 64 << 20;

/// Maximum number of names of one resolver that are compared. Real ones have two or three.
const ALIASES_MAX: usize = 16;

/// Maximum number of resolvers whose address is looked up in the file: static programs have some
/// dozens.
const RESOLVERS_MAX: usize = 4096;

/// Where a stub gets its jump target from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Target {
    /// The slot of the GOT at this link address.
    Got(u64),
    /// The relocation with this number in `.rela.plt` or `.rel.plt`: the stub is the lazy half of a
    /// pair.
    Relocation(u32),
}

/// The named stubs of a file.
#[derive(Debug, Default)]
pub struct Stubs {
    names: Vec<u8>,
    candidates: Vec<Candidate>,
}

impl Stubs {
    /// Finds and names the stubs; `functions` are those known so far, sorted.
    pub fn find(
        &mut self,
        object: &Object,
        loaded: &Loaded,
        names: &Names,
        functions: &[Candidate],
    ) -> Result<(), OpenError> {
        let Some(linkage) = Linkage::of(object) else {
            return Ok(());
        };
        let stubs = decode_all(object, linkage);
        let targets = resolve(object, linkage, &stubs);
        let mut resolvers = 0..RESOLVERS_MAX;
        for stub in &stubs {
            let Some(function) = targets.get(&stub.target) else {
                continue;
            };
            let name = match *function {
                Function::Symbol(index) => symbol_name(loaded, index),
                Function::Resolver(addr) => name_at(functions, names, addr),
                Function::ResolverIn(slot) => resolvers
                    .next()
                    .and_then(|_| word_in(object, slot))
                    .and_then(|addr| name_at(functions, names, addr)),
            };
            if let Some(name) = name {
                self.add(stub, names.get(name)?);
            }
        }
        Ok(())
    }

    /// Takes the names of all stubs, each ended by a NUL. The [`Name`]s of stubs are offsets into
    /// them.
    pub fn take_names(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.names)
    }

    /// Returns the stubs as functions, in the order in which they were added.
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

/// Returns the sections with stubs, and their numbers.
pub fn sections(object: &Object) -> impl Iterator<Item = (u16, &Section)> {
    (0..).zip(object.sections()).filter(|(_, section)| {
        let name = object.section_name(section);
        let is_plt = matches!(name, b".plt" | b".plt.sec" | b".plt.got" | b".iplt");
        is_plt && section.is_executable()
    })
}

fn decode_all(object: &Object, linkage: Linkage) -> Vec<Stub> {
    let mut stubs = Vec::new();
    let mut left = PLT_BYTES_MAX;
    for (index, section) in sections(object) {
        // If a table cannot be read, only the names of its stubs are missing.
        let Ok(code) = object.section_data(section, left, "linkage table") else {
            continue;
        };
        // The sections of a forged file may all refer to the same bytes.
        left -= code.len() as u64;
        stubs.extend(linkage.stubs(section, &code).map(|stub| Stub {
            addr: section.addr.wrapping_add(stub.within),
            size: stub.size,
            section: index,
            target: stub.target,
        }));
    }
    stubs
}

/// Finds the relocations that fill the slots. Most are in `.rela.plt`; the others, for `.plt.got`,
/// in the much larger `.rela.dyn`.
fn resolve(object: &Object, linkage: Linkage, stubs: &[Stub]) -> HashMap<Target, Function> {
    let mut wanted: HashMap<Target, Option<Function>> =
        stubs.iter().map(|stub| (stub.target, None)).collect();
    for (section, is_numbered) in relocations::sections(object) {
        if wanted.values().all(Option::is_some) {
            break;
        }
        relocations::each(object, section, |number, relocation: Relocation| {
            let Some(function) = linkage.function(&relocation) else {
                return;
            };
            let by_number = is_numbered.then_some(Target::Relocation(number));
            let by_slot = Target::Got(relocation.slot);
            for target in [Some(by_slot), by_number].into_iter().flatten() {
                if let Some(found) = wanted.get_mut(&target) {
                    found.get_or_insert(function);
                }
            }
        });
    }
    let found = wanted.into_iter();
    found.filter_map(|(t, f)| f.map(|f| (t, f))).collect()
}

/// Returns the address that the file has in a 32-bit slot.
fn word_in(object: &Object, slot: u64) -> Option<u64> {
    let offset = object.segments().to_file(LinkAddr(slot))?;
    let bytes = object.source().read(offset.0, 4, "linkage table").ok()?;
    u32_in(&bytes, 0).map(u64::from)
}

fn symbol_name(loaded: &Loaded, index: u32) -> Option<Name> {
    let (symbols, _) = loaded.dynamic.as_chunks::<SYMBOL_BYTES>();
    Some(Name {
        table: Table::Dynamic,
        offset: u32_at(symbols.get(index as usize)?, 0),
    })
}

/// Returns the most public name of a resolver: `memmove`, not `__libc_memmove_ifunc`.
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
