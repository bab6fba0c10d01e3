//! Where a member lies in a structure of the running kernel, from its BTF.
//!
//! aya relocates C programs by BTF, but neither its Rust programs nor its users
//! can ask for an offset.

use std::{fs, io};
use symbolize::kernel::{Btf, BtfType, btf_kind};

const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

/// Byte offset of a direct member of a structure of the running kernel.
pub fn kernel_offset(structure: &str, member: &str) -> io::Result<u32> {
    let bytes = fs::read(VMLINUX)?;
    Btf::parse(&bytes)
        .and_then(|btf| offset(&btf, structure, member))
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("{VMLINUX} has no {structure}.{member}"),
            )
        })
}

fn offset(btf: &Btf<'_>, structure: &str, member: &str) -> Option<u32> {
    let is_called = |name: u32, wanted: &str| btf.string(name) == Some(wanted.as_bytes());
    let mut types = btf.types();
    types.find_map(|t| {
        let is_it = t.kind == btf_kind::STRUCT && is_called(t.name, structure);
        let mut members = is_it.then(|| members(t))?;
        members.find_map(|(name, offset)| is_called(name, member).then_some(offset))
    })
}

/// The name of each member, and where it starts in bytes.
fn members(structure: BtfType<'_>) -> impl Iterator<Item = (u32, u32)> {
    let (members, _) = structure.rest.as_chunks::<12>();
    members.iter().map(move |member| {
        let word = |at: usize| {
            let bytes = [member[at], member[at + 1], member[at + 2], member[at + 3]];
            u32::from_le_bytes(bytes)
        };
        // With bit fields around, the size in bits is in the upper byte.
        let bits = if structure.flag {
            word(8) & 0xff_ffff
        } else {
            word(8)
        };
        (word(0), bits / 8)
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
        assert_eq!(offset(&btf, "task", "tgid"), Some(4));
        assert_eq!(offset(&btf, "task", "a"), Some(0));
        assert_eq!(offset(&btf, "task", "pid"), None);
        assert_eq!(offset(&btf, "tas", "a"), None);
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
            if let Some(btf) = Btf::parse(&bytes) {
                let _ = offset(&btf, "task", "tgid");
            }
        }
    }
}
