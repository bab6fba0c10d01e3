//! Finds the offset of a member in a structure of the running kernel, from its BTF.
//!
//! aya relocates C programs by BTF, but offers no way to look up an offset, neither to its Rust
//! programs nor to their users.

mod mapped;

use mapped::Mapped;
use std::fs::{self, File};
use std::io;
use symbolize::kernel::{Btf, BtfType, btf_kind};

const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

/// The types of the running kernel: some megabytes, which are fetched once for all look-ups.
pub struct KernelTypes(Bytes);

enum Bytes {
    Mapped(Mapped),
    Read(Vec<u8>),
}

impl KernelTypes {
    /// Fetches the types. Fails if the kernel was built without them (`CONFIG_DEBUG_INFO_BTF`).
    pub fn read() -> io::Result<Self> {
        // Reading takes some milliseconds, as the kernel gives a page at a time.
        let mapped = File::open(VMLINUX).and_then(|file| Mapped::of(&file));
        Ok(Self(match mapped {
            Ok(mapped) => Bytes::Mapped(mapped),
            // Before Linux 6.16 it cannot be mapped.
            Err(_) => Bytes::Read(fs::read(VMLINUX)?),
        }))
    }

    fn bytes(&self) -> &[u8] {
        match &self.0 {
            Bytes::Mapped(mapped) => mapped.bytes(),
            Bytes::Read(bytes) => bytes,
        }
    }

    /// Returns the byte offset of a direct member of a structure.
    pub fn offset(&self, structure: &str, member: &str) -> io::Result<u32> {
        let [offset] = self.offsets([(structure, member)])?;
        Ok(offset)
    }

    /// Returns the byte offsets of several members, all of which must exist.
    pub fn offsets<const N: usize>(&self, members: [(&str, &str); N]) -> io::Result<[u32; N]> {
        Ok(self.bit_offsets(members)?.map(|bits| bits / 8))
    }

    /// Returns the size of a structure in bytes.
    pub fn size(&self, structure: &str) -> io::Result<u32> {
        let btf = Btf::parse(self.bytes());
        let size = btf.as_ref().and_then(|btf| size(btf, structure));
        size.ok_or_else(|| missing(structure))
    }

    /// Returns offset and size of per-CPU variables in their section; `None` for a variable that
    /// this kernel does not have.
    pub fn of_each_cpu<const N: usize>(&self, names: [&str; N]) -> [Option<(u32, u32)>; N] {
        let btf = Btf::parse(self.bytes());
        btf.map_or([None; N], |btf| of_each_cpu(&btf, names))
    }

    /// Returns offsets of members in bits, as needed for members of a single bit.
    pub fn bit_offsets<const N: usize>(&self, members: [(&str, &str); N]) -> io::Result<[u32; N]> {
        let btf = Btf::parse(self.bytes());
        let found = btf.map_or([None; N], |btf| bit_offsets(&btf, members));
        let mut offsets = [0; N];
        for (at, (structure, member)) in members.into_iter().enumerate() {
            offsets[at] = found[at].ok_or_else(|| missing(&format!("{structure}.{member}")))?;
        }
        Ok(offsets)
    }
}

fn missing(what: &str) -> io::Error {
    let message = format!("{VMLINUX} has no {what}");
    io::Error::new(io::ErrorKind::NotFound, message)
}

fn size(btf: &Btf<'_>, structure: &str) -> Option<u32> {
    let is_it = |t: &BtfType<'_>| {
        t.kind == btf_kind::STRUCT && btf.string(t.name) == Some(structure.as_bytes())
    };
    btf.types().find(is_it).map(|t| t.size_or_type)
}

/// The kernel's section of per-CPU variables.
const OF_EACH_CPU: &[u8] = b".data..percpu";

fn of_each_cpu<const N: usize>(btf: &Btf<'_>, names: [&str; N]) -> [Option<(u32, u32)>; N] {
    let mut numbers = [None; N];
    let mut section: &[u8] = &[];
    // The first type is number 1.
    for (number, t) in (1u32..).zip(btf.types()) {
        let name = match t.kind {
            btf_kind::VAR | btf_kind::DATASEC => btf.string(t.name),
            _ => None,
        };
        let Some(name) = name else {
            continue;
        };
        if t.kind == btf_kind::DATASEC {
            section = if name == OF_EACH_CPU { t.rest } else { section };
        } else if let Some(at) = names.iter().position(|wanted| wanted.as_bytes() == name) {
            numbers[at] = Some(number);
        }
    }
    // Each entry has the number of a variable, its offset and its size.
    let (entries, _) = section.as_chunks::<12>();
    let word = |entry: &[u8; 12], at: usize| {
        u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]])
    };
    numbers.map(|number| {
        let entry = entries
            .iter()
            .find(|entry| Some(word(entry, 0)) == number)?;
        Some((word(entry, 4), word(entry, 8)))
    })
}

/// Finds all members in one pass over the types, which takes longer than everything else.
fn bit_offsets<const N: usize>(btf: &Btf<'_>, members: [(&str, &str); N]) -> [Option<u32>; N] {
    let mut offsets = [None; N];
    for t in btf.types().filter(|t| t.kind == btf_kind::STRUCT) {
        let name = btf.string(t.name);
        for (offset, (structure, member)) in offsets.iter_mut().zip(members) {
            if offset.is_none() && name == Some(structure.as_bytes()) {
                *offset = within(btf, t, member, NESTED_MAX);
            }
        }
        if offsets.iter().all(Option::is_some) {
            break;
        }
    }
    offsets
}

/// Maximum nesting of unnamed structures that are searched.
const NESTED_MAX: u32 = 4;

/// Returns the bit offset of a member in a structure, or in unnamed structures inside of it.
fn within(btf: &Btf<'_>, structure: BtfType<'_>, member: &str, depth: u32) -> Option<u32> {
    let is_called = |name: u32| btf.string(name) == Some(member.as_bytes());
    let direct = members(structure).find(|(name, _, _)| is_called(*name));
    if let Some((_, offset, _)) = direct {
        return Some(offset);
    }
    let mut unnamed = members(structure).filter(|(name, _, _)| *name == 0 && depth > 0);
    unnamed.find_map(|(_, offset, number)| {
        // The first type is number 1.
        let index = (number as usize).checked_sub(1)?;
        let nested = btf.types().nth(index)?;
        let is_nested = [btf_kind::STRUCT, btf_kind::UNION].contains(&nested.kind);
        let inner = is_nested.then(|| within(btf, nested, member, depth - 1))??;
        offset.checked_add(inner)
    })
}

/// The members of a structure: offset of the name, bit offset, number of the type.
fn members(structure: BtfType<'_>) -> impl Iterator<Item = (u32, u32, u32)> {
    let (members, _) = structure.rest.as_chunks::<12>();
    members.iter().map(move |member| {
        let word = |at: usize| {
            let bytes = [member[at], member[at + 1], member[at + 2], member[at + 3]];
            u32::from_le_bytes(bytes)
        };
        // If the structure has bit fields, the size in bits is in the upper byte.
        let bits = if structure.flag {
            word(8) & 0xff_ffff
        } else {
            word(8)
        };
        (word(0), bits, word(4))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `int`, then `struct task { int a; int tgid; }`.
    fn small() -> Vec<u8> {
        let strings = b"\0int\0task\0a\0tgid\0";
        let words = [
            1,
            btf_kind::INT << 24,
            4,
            32, // int
            5,
            btf_kind::STRUCT << 24 | 2,
            8, // struct task
            10,
            1,
            0, // a
            12,
            1,
            32, // tgid
        ];
        let types: Vec<u8> = words
            .iter()
            .flat_map(|word: &u32| word.to_le_bytes())
            .collect();
        let mut bytes = Vec::new();
        bytes.extend(0xeb9f_u16.to_le_bytes());
        bytes.extend([1, 0]);
        for word in [
            24,
            0,
            types.len() as u32,
            types.len() as u32,
            strings.len() as u32,
        ] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(types);
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn a_member_is_found() {
        let bytes = small();
        let btf = Btf::parse(&bytes).unwrap();
        let members = [
            ("task", "tgid"),
            ("task", "a"),
            ("task", "pid"),
            ("tas", "a"),
        ];
        let found = bit_offsets(&btf, members);
        assert_eq!(found, [Some(32), Some(0), None, None]);
    }

    #[test]
    fn this_kernel_has_a_tgid() {
        if !std::path::Path::new(VMLINUX).exists() {
            test_support::skip(format_args!("{VMLINUX} does not exist"));
            return;
        }
        let types = KernelTypes::read().unwrap();
        assert!(types.offset("task_struct", "tgid").unwrap() > 0);
        assert!(types.offset("task_struct", "no_such_member").is_err());
    }

    proptest! {
        #[test]
        fn a_damaged_one_is_harmless(at in 0usize..100, value in any::<u8>()) {
            let mut bytes = small();
            let at = at % bytes.len();
            bytes[at] = value;
            if let Some(btf) = Btf::parse(&bytes) {
                let _ = bit_offsets(&btf, [("task", "tgid")]);
            }
        }
    }
}
