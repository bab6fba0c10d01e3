//! Where a member lies in a structure of the running kernel, from its BTF.
//!
//! aya relocates C programs by BTF, but neither its Rust programs nor its users
//! can ask for an offset; so the few bytes of the format that this takes are
//! read here (Documentation/bpf/btf.rst).

use std::{fs, io};

const VMLINUX: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u16 = 0xeb9f;

const KIND_INT: u32 = 1;
const KIND_ARRAY: u32 = 3;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_ENUM: u32 = 6;
const KIND_FUNC_PROTO: u32 = 13;
const KIND_VAR: u32 = 14;
const KIND_DATASEC: u32 = 15;
const KIND_DECL_TAG: u32 = 17;
const KIND_ENUM64: u32 = 19;

/// Byte offset of a direct member of a structure of the running kernel.
pub fn kernel_offset(structure: &str, member: &str) -> io::Result<u32> {
    let bytes = fs::read(VMLINUX)?;
    Btf::new(&bytes)
        .and_then(|btf| btf.offset(structure, member))
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("{VMLINUX} has no {structure}.{member}"),
            )
        })
}

struct Btf<'a> {
    types: &'a [u8],
    strings: &'a [u8],
}

impl<'a> Btf<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        if u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?) != MAGIC {
            return None;
        }
        let field = |offset| word(bytes, offset).map(|value| value as usize);
        let body = bytes.get(field(4)?..)?;
        Some(Self {
            types: part(body, field(8)?, field(12)?)?,
            strings: part(body, field(16)?, field(20)?)?,
        })
    }

    fn offset(&self, structure: &str, member: &str) -> Option<u32> {
        let mut at = 0;
        loop {
            let info = word(self.types, at + 4)?;
            let kind = info >> 24 & 31;
            let count = info as usize & 0xffff;
            if kind == KIND_STRUCT && self.is_called(word(self.types, at)?, structure) {
                return self.member_offset(at + 12, count, info >> 31 == 1, member);
            }
            at += 12 + extra_bytes(kind, count);
        }
    }

    fn member_offset(&self, at: usize, count: usize, packed: bool, name: &str) -> Option<u32> {
        (0..count).map(|index| at + 12 * index).find_map(|at| {
            let bits = word(self.types, at + 8)?;
            // With bit fields around, the size in bits is in the upper byte.
            let bits = if packed { bits & 0xff_ffff } else { bits };
            self.is_called(word(self.types, at)?, name)
                .then_some(bits / 8)
        })
    }

    fn is_called(&self, offset: u32, name: &str) -> bool {
        self.strings
            .get(offset as usize..)
            .and_then(|rest| rest.strip_prefix(name.as_bytes()))
            .is_some_and(|rest| rest.first() == Some(&0))
    }
}

/// Bytes behind the 12 that every type begins with.
fn extra_bytes(kind: u32, count: usize) -> usize {
    match kind {
        KIND_INT | KIND_VAR | KIND_DECL_TAG => 4,
        KIND_ARRAY => 12,
        KIND_STRUCT | KIND_UNION | KIND_DATASEC | KIND_ENUM64 => 12 * count,
        KIND_ENUM | KIND_FUNC_PROTO => 8 * count,
        _ => 0,
    }
}

fn part(bytes: &[u8], offset: usize, length: usize) -> Option<&[u8]> {
    bytes.get(offset..offset.checked_add(length)?)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(
        bytes.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
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
            KIND_INT << 24,
            4,
            32, // int
            5,
            KIND_STRUCT << 24 | 2,
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
        bytes.extend(MAGIC.to_le_bytes());
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
        let btf = Btf::new(&bytes).unwrap();
        assert_eq!(btf.offset("task", "tgid"), Some(4));
        assert_eq!(btf.offset("task", "a"), Some(0));
        assert_eq!(btf.offset("task", "pid"), None);
        assert_eq!(btf.offset("tas", "a"), None);
    }

    #[test]
    fn this_kernel_has_a_tgid() {
        if !std::path::Path::new(VMLINUX).exists() {
            {
                use std::io::Write as _;
                // Not `eprintln`: the test harness would keep it to itself.
                _ = writeln!(std::io::stderr(), "skipped: {VMLINUX} does not exist");
            }
            return;
        }
        assert!(kernel_offset("task_struct", "tgid").unwrap() > 0);
        assert!(kernel_offset("task_struct", "no_such_member").is_err());
    }

    proptest! {
        #[test]
        fn a_damaged_one_is_harmless(at in 0usize..100, value in any::<u8>()) {
            let mut bytes = small();
            let at = at % bytes.len();
            bytes[at] = value;
            if let Some(btf) = Btf::new(&bytes) {
                let _ = btf.offset("task", "tgid");
            }
        }
    }
}
