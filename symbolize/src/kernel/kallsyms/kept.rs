//! The kernel's functions, kept on disk for later runs: the kernel takes 40 ms or more to list
//! them, and reading them back takes 3.
//!
//! What is kept holds until the kernel is started anew or its modules change. Both are written
//! beside it, with the beginning of the list, and compared as they are ([`Facts`]). Code that comes
//! and goes without a module, which is that of BPF programs, is not kept.
//!
//! A file is:
//!
//! ```text
//! 8 bytes  the magic, with the version
//! 4        checksum of all that follows (CRC-32)
//! 4 × 4    numbers of bytes of the facts, of entries, of bytes of the names, of modules
//! …        the facts
//! 16 each  entries: u64 address, u32 place of the name, u16 module, u16 length of the name
//! …        the names
//! each     modules: u16 length, name
//! ```
//!
//! All numbers are little endian.

use super::{Entry, HOLE, KernelSymbols};
use crate::cache_directory::Directory;
use crate::crc::crc32;
use std::fs::File;
use std::io::{self, Read as _};

const MAGIC: &[u8; 8] = b"ksyms 1\n";

/// The file's name in the directory.
const NAME: &str = "kallsyms";

/// An ordinary kernel's list has 4 MB, one that is built with everything some 40.
const BYTES_MAX: u64 = 128 << 20;

/// How much of the beginning of `/proc/kallsyms` is compared: a page, as the kernel lists it a page
/// at a time.
const HEAD_BYTES: u64 = 4096;

/// `/proc/modules` of thousands of modules has less.
const MODULES_BYTES_MAX: u64 = 4 << 20;

/// What the list of functions depends on, as bytes that are compared.
#[derive(Debug, PartialEq, Eq)]
struct Facts(Vec<u8>);

impl Facts {
    /// Reads the facts of the running kernel. `None` if it hides its addresses, or if they cannot be
    /// read.
    fn now() -> Option<Facts> {
        let mut facts = read("/proc/sys/kernel/random/boot_id", HEAD_BYTES).ok()?;
        let head = read("/proc/kallsyms", HEAD_BYTES).ok()?;
        if KernelSymbols::parse(&head).is_hidden() {
            return None;
        }
        facts.extend(head);
        // A kernel without modules has no such file.
        let modules = read("/proc/modules", MODULES_BYTES_MAX).unwrap_or_default();
        facts.extend(without_users(&modules));
        Some(Facts(facts))
    }
}

fn read(path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Of each line of `/proc/modules` its name, size, state and address. How often a module is used,
/// and by which others, changes all the time.
fn without_users(modules: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    for line in modules.split(|byte| *byte == b'\n') {
        let words = line.split(|byte| *byte == b' ').enumerate();
        for (_, word) in words.filter(|(at, _)| ![2, 3].contains(at)) {
            kept.extend_from_slice(word);
            kept.push(b' ');
        }
        kept.push(b'\n');
    }
    kept
}

impl KernelSymbols {
    /// The kernel's functions, from the directory if they are kept there, else as the kernel lists
    /// them; then they are kept, if that can be done.
    pub fn load_or_keep(directory: &Directory) -> KernelSymbols {
        let Some(facts) = Facts::now() else {
            return Self::load();
        };
        let bytes = directory.read(NAME, BYTES_MAX).unwrap_or_default();
        if let Some(symbols) = from_bytes(&bytes, &facts) {
            return symbols;
        }
        let symbols = Self::load();
        if !symbols.is_hidden() {
            // If it cannot be written, the next run asks the kernel again.
            _ = directory.write(NAME, &to_bytes(&symbols, &facts));
        }
        symbols
    }
}

/// The file of these functions.
fn to_bytes(symbols: &KernelSymbols, facts: &Facts) -> Vec<u8> {
    let comes_and_goes = |entry: &Entry| {
        let module = usize::from(entry.module).checked_sub(1);
        let module = module.map(|index| &*symbols.modules[index]);
        module.is_some_and(|module| module == "bpf" || module.starts_with("__builtin__"))
    };
    let mut body = Vec::new();
    let counts = [
        facts.0.len(),
        symbols.entries.len(),
        symbols.names.len(),
        symbols.modules.len(),
    ];
    for count in counts {
        // All of them are below 2^32, as places of names are.
        body.extend((count as u32).to_le_bytes());
    }
    body.extend(&facts.0);
    for entry in &symbols.entries {
        let entry = if entry.name != HOLE && comes_and_goes(entry) {
            Entry::hole(entry.start)
        } else {
            *entry
        };
        body.extend(entry.start.to_le_bytes());
        body.extend(entry.name.to_le_bytes());
        body.extend(entry.module.to_le_bytes());
        body.extend(entry.name_len.to_le_bytes());
    }
    body.extend(symbols.names.as_bytes());
    for module in &symbols.modules {
        body.extend((module.len() as u16).to_le_bytes());
        body.extend(module.as_bytes());
    }
    let checksum = crc32(&body).to_le_bytes();
    [&MAGIC[..], &checksum, &body].concat()
}

/// The functions that a file has, if it is whole and these facts still hold.
fn from_bytes(bytes: &[u8], facts: &Facts) -> Option<KernelSymbols> {
    let (checksum, body) = bytes.strip_prefix(MAGIC)?.split_first_chunk()?;
    if crc32(body) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let mut rest = Rest(body);
    let [facts_len, entries, names, modules] = [(); 4].map(|()| rest.number());
    if rest.take(facts_len?)? != facts.0 {
        return None;
    }
    let (entries, _) = rest.take(entries?.checked_mul(16)?)?.as_chunks::<16>();
    let names = std::str::from_utf8(rest.take(names?)?).ok()?.to_owned();
    let modules = (0..modules?)
        .map(|_| rest.module())
        .collect::<Option<Vec<_>>>()?;
    let entries: Vec<Entry> = entries.iter().map(entry_of).collect();
    let is_sorted = entries.is_sorted_by(|a, b| a.start < b.start);
    let is_right = |entry: &Entry| {
        let start = entry.name as usize;
        let end = start + usize::from(entry.name_len);
        entry.name == HOLE
            || names.get(start..end).is_some() && usize::from(entry.module) <= modules.len()
    };
    (is_sorted && entries.iter().all(is_right)).then_some(KernelSymbols {
        entries,
        names,
        modules,
        hidden: false,
        is_of_earlier_run: true,
    })
}

fn entry_of(bytes: &[u8; 16]) -> Entry {
    let word = u128::from_le_bytes(*bytes);
    Entry {
        start: word as u64,
        name: (word >> 64) as u32,
        module: (word >> 96) as u16,
        name_len: (word >> 112) as u16,
    }
}

/// The bytes of a file that were not read yet.
struct Rest<'b>(&'b [u8]);

impl<'b> Rest<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<usize> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        usize::try_from(u32::from_le_bytes(*number)).ok()
    }

    fn module(&mut self) -> Option<Box<str>> {
        let (length, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        let name = self.take(u16::from_le_bytes(*length).into())?;
        std::str::from_utf8(name).ok().map(Box::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
ffffffff81000000 T start_kernel
ffffffff81000050 t helper
ffffffffc0001000 t mod_read\t[ext4]
ffffffffc0001100 t mod_write\t[ext4]
ffffffffc0002000 t bpf_prog_6deef7357e7b4530_egress\t[bpf]
ffffffffc0003000 t ftrace_trampoline\t[__builtin__ftrace]
ffffffffc0004000 t xfs_read\t[xfs]
";

    fn facts(text: &str) -> Facts {
        Facts(text.as_bytes().to_vec())
    }

    fn names(symbols: &KernelSymbols) -> Vec<Option<(String, Option<String>, u64)>> {
        let addrs = TEXT.split(|byte| *byte == b'\n').filter_map(|line| {
            let addr = std::str::from_utf8(line.get(..16)?).ok()?;
            u64::from_str_radix(addr, 16).ok()
        });
        let name = |addr| {
            let found = symbols.find(addr + 4).ok()?;
            Some((
                found.name.to_owned(),
                found.module.map(str::to_owned),
                found.offset,
            ))
        };
        addrs.map(name).collect()
    }

    #[test]
    fn what_is_kept_is_what_was_read_but_for_code_that_comes_and_goes() {
        let read = KernelSymbols::parse(TEXT);
        let file = to_bytes(&read, &facts("boot 1"));
        let kept = from_bytes(&file, &facts("boot 1")).expect("it is whole");
        let mut expected = names(&read);
        expected[4] = None;
        expected[5] = None;
        assert_eq!(names(&kept), expected);
        assert!(kept.is_of_earlier_run && !read.is_of_earlier_run);
        assert_eq!(from_bytes(&file, &facts("boot 2")).map(|_| ()), None);
    }

    #[test]
    fn a_damaged_file_is_none() {
        let read = KernelSymbols::parse(TEXT);
        let file = to_bytes(&read, &facts("boot 1"));
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            assert!(from_bytes(&damaged, &facts("boot 1")).is_none(), "{at}");
            assert!(from_bytes(&file[..at], &facts("boot 1")).is_none(), "{at}");
        }
        // With a checksum that fits, wrong contents name nothing that is not in the file.
        for at in 12..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x80;
            let checksum = crc32(&damaged[12..]);
            damaged[8..12].copy_from_slice(&checksum.to_le_bytes());
            if let Some(kept) = from_bytes(&damaged, &facts("boot 1")) {
                names(&kept);
                kept.extent(0xffff_ffff_8100_0000);
            }
        }
    }

    #[test]
    fn users_of_modules_are_no_part_of_the_facts() {
        let before = without_users(b"xfs 20 1 - Live 0xffffffffc0004000\n");
        let used = without_users(b"xfs 20 2 raid, Live 0xffffffffc0004000\n");
        let moved = without_users(b"xfs 20 1 - Live 0xffffffffc0005000\n");
        assert_eq!(before, used);
        assert_ne!(before, moved);
    }

    #[test]
    fn the_second_time_they_come_from_the_directory() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::open(folder.path(), &["kernel"]).unwrap();
        let first = KernelSymbols::load_or_keep(&directory);
        assert!(!first.is_of_earlier_run);
        if first.is_hidden() {
            test_support::skip("the kernel's addresses are hidden");
            assert!(directory.files().is_empty());
            return;
        }
        let second = KernelSymbols::load_or_keep(&directory);
        assert!(second.is_of_earlier_run);
        let bpf = |entry: &&Entry| entry.name == HOLE;
        assert!(second.len() > 1000 && second.len() <= first.len());
        assert!(second.entries.iter().filter(bpf).count() >= 1);
        for entry in second.entries.iter().filter(|entry| entry.name != HOLE) {
            let (kept, read) = (second.find(entry.start), first.find(entry.start));
            assert_eq!(kept, read);
        }
    }
}
