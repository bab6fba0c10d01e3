//! Reads pointers of the file as they are after loading.
//!
//! In a position-independent file a relocation sets the pointer; what the file has in its place
//! depends on the linker.

use object::elf;

use crate::LinkAddr;
use crate::bytes::{u32_at, u64_at};
use crate::object::Object;

const RELOCATION_BYTES: usize = 24;

/// Maximum size of relocations: 4 million of them. A large Go program has a hundred thousand.
const RELOCATIONS_BYTES_MAX: u64 = 96 << 20;

const DYNAMIC_BYTES_MAX: u64 = 64 << 10;

/// Maximum number of places that are searched for one pointer: the runtime's record is among the
/// first few.
const PLACES_MAX: usize = 64;

const CHUNK_BYTES: usize = 1 << 20;

/// Maximum number of bytes that are searched for a pointer.
const SCAN_BYTES_MAX: u64 = 1 << 30;

/// The pointers of one file.
pub struct Pointers<'o> {
    object: &'o Object,
    relocations: Vec<u8>,
}

impl<'o> Pointers<'o> {
    /// Reads the relocations of a file. Without any, or if they cannot be read, pointers are as
    /// they are in the file.
    pub fn new(object: &'o Object) -> Pointers<'o> {
        Pointers {
            object,
            relocations: relocations(object).unwrap_or_default(),
        }
    }

    /// Returns the first result of `accept` for an address that holds the pointer `target`. The
    /// addresses that relocations set come first, then those of the last segment: what the runtime
    /// changes is there, and it is small.
    pub fn find_to<T>(&self, target: u64, accept: impl Fn(u64) -> Option<T>) -> Option<T> {
        let relocated = self.each().filter(|(_, pointer)| *pointer == target);
        let mut relocated = relocated.map(|(at, _)| at).take(PLACES_MAX);
        let found = relocated.find_map(&accept);
        if found.is_some() {
            return found;
        }
        let mut budget = SCAN_BYTES_MAX;
        let mut places = PLACES_MAX;
        for segment in self.object.program_headers().iter().rev() {
            if !segment.is_load() || segment.is_executable() {
                continue;
            }
            let len = segment.filesz.min(budget);
            budget -= len;
            let found = self.scan(segment.offset, len, target, |within| {
                let place = segment.vaddr.wrapping_add(within);
                if !place.is_multiple_of(8) || places == 0 {
                    return None;
                }
                places -= 1;
                accept(place)
            });
            if found.is_some() || places == 0 {
                return found;
            }
        }
        None
    }

    /// Reads words from an address on.
    pub fn words<const N: usize>(&self, addr: u64) -> Option<[u64; N]> {
        let offset = self.object.segments().to_file(LinkAddr(addr))?;
        let mut bytes = vec![0; N * 8];
        let have = self.object.source().read_some(offset.0, &mut bytes);
        let mut words = [0; N];
        let (chunks, _) = bytes[..have].as_chunks::<8>();
        for (word, chunk) in words.iter_mut().zip(chunks) {
            *word = u64::from_le_bytes(*chunk);
        }
        for (at, pointer) in self.each() {
            let within = at.wrapping_sub(addr);
            if within.is_multiple_of(8) && within < N as u64 * 8 {
                words[within as usize / 8] = pointer;
            }
        }
        Some(words)
    }

    /// All relative relocations: address, and the value that will be there.
    fn each(&self) -> impl Iterator<Item = (u64, u64)> {
        let (entries, _) = self.relocations.as_chunks::<RELOCATION_BYTES>();
        let relative = [elf::R_X86_64_RELATIVE.0, elf::R_AARCH64_RELATIVE.0];
        entries
            .iter()
            .filter(move |entry| relative.contains(&u32_at(entry, 8)))
            .map(|entry| (u64_at(entry, 0), u64_at(entry, 16)))
    }

    /// Calls `take` with the distance from `offset` of each place in the file that holds the
    /// pointer, until it returns something.
    fn scan<T>(
        &self,
        offset: u64,
        len: u64,
        target: u64,
        mut take: impl FnMut(u64) -> Option<T>,
    ) -> Option<T> {
        let finder = target.to_le_bytes();
        let finder = memchr::memmem::Finder::new(&finder);
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut done = 0;
        while done < len {
            let want = (len - done).min(CHUNK_BYTES as u64) as usize;
            let have = self
                .object
                .source()
                .read_some(offset + done, &mut buffer[..want]);
            let mut found = finder.find_iter(&buffer[..have]);
            if let Some(found) = found.find_map(|at| take(done + at as u64)) {
                return Some(found);
            }
            if have < CHUNK_BYTES {
                break;
            }
            // Segments need not begin at a multiple of 8.
            done += have as u64 - 7;
        }
        None
    }
}

/// Reads the relocations that the loader applies.
fn relocations(object: &Object) -> Option<Vec<u8>> {
    let header = object.program_headers().iter().find(|h| h.is_dynamic())?;
    let size = header.filesz.min(DYNAMIC_BYTES_MAX);
    let dynamic = object
        .source()
        .read(header.offset, size, "dynamic section")
        .ok()?;
    let (entries, _) = dynamic.as_chunks::<16>();
    let value = |tag: elf::DynamicTag| {
        let entry = entries
            .iter()
            .find(|entry| u64_at(entry, 0) == tag.0 as u64)?;
        Some(u64_at(entry, 8))
    };
    let size = value(elf::DT_RELASZ)?;
    if size > RELOCATIONS_BYTES_MAX {
        return None;
    }
    let offset = object.segments().to_file(LinkAddr(value(elf::DT_RELA)?))?;
    object.source().read(offset.0, size, "relocations").ok()
}
