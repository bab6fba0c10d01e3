//! Whether a file exports a symbol, by the hash table that the loader uses: a few reads of some
//! bytes, whatever the size of the file.

use object::elf;

use super::{Class, Object, SYMBOL, dynamic};
use crate::LinkAddr;
use crate::bytes::{u32_at, u32_in};

/// Maximum length of a chain of symbols in one bucket: real files have a few.
const CHAIN_MAX: u64 = 4096;

/// Whether the file exports `name`. False if it has no hash table of the GNU kind (`DT_GNU_HASH`),
/// which all linkers have written for twenty years.
pub fn exports(object: &Object, name: &[u8]) -> bool {
    find(object, name).is_some()
}

fn find(object: &Object, name: &[u8]) -> Option<()> {
    let entries = dynamic::entries(object)?;
    let value = |tag: elf::DynamicTag| {
        let (_, value) = entries.iter().find(|(entry, _)| *entry == tag.0 as u64)?;
        Some(*value)
    };
    let read = |address: u64, size: u64| {
        let place = object.segments().to_file(LinkAddr(address))?;
        let source = object.source();
        source.read(place.0, size, "GNU hash table").ok()
    };
    let word = |address: u64| u32_in(&read(address, 4)?, 0).map(u64::from);
    let table = value(elf::DT_GNU_HASH)?;
    let header: [u8; 16] = read(table, 16)?.try_into().ok()?;
    let [buckets, first, filter, shift] = [0, 4, 8, 12].map(|at| u64::from(u32_at(&header, at)));
    let hash = gnu_hash(name);
    // 1. The Bloom filter rules out most symbols that are not there.
    let size = u64::from(object.class().address_size());
    let bits = 8 * size;
    let nth = (hash / bits).checked_rem(filter)?;
    let wanted = 1u64 << (hash % bits) | 1 << ((hash >> (shift % 32)) % bits);
    let start = table.checked_add(16)?;
    let bytes = read(start.checked_add(nth * size)?, size)?;
    let held = match object.class() {
        Class::Wide => u64::from_le_bytes(bytes.try_into().ok()?),
        Class::Narrow => u64::from(u32_in(&bytes, 0)?),
    };
    if held & wanted != wanted {
        return None;
    }
    // 2. The symbols of its bucket are compared.
    let start = start.checked_add(filter * size)?;
    let begin = word(start.checked_add(hash.checked_rem(buckets)? * 4)?)?;
    let chains = start.checked_add(buckets * 4)?;
    let strings = value(elf::DT_STRTAB)?;
    let symbols = value(elf::DT_SYMTAB)?;
    for symbol in begin..begin.checked_add(CHAIN_MAX)? {
        let found = word(chains.checked_add(symbol.checked_sub(first)? * 4)?)?;
        if found | 1 == hash | 1 {
            let entry = object.class().size_of(&SYMBOL) as u64;
            let offset = word(symbols.checked_add(symbol * entry)?)?;
            let shown = read(strings.checked_add(offset)?, name.len() as u64 + 1)?;
            if shown.strip_suffix(&[0]) == Some(name) {
                return Some(());
            }
        }
        if found & 1 != 0 {
            return None;
        }
    }
    None
}

/// Returns the hash of a name (<https://flapenguin.me/elf-dt-gnu-hash>).
fn gnu_hash(name: &[u8]) -> u64 {
    let step = |hash: u32, byte: &u8| hash.wrapping_mul(33).wrapping_add(u32::from(*byte));
    u64::from(name.iter().fold(5381, step))
}
