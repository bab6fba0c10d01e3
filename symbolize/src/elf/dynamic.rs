//! The symbol table that the dynamic segment describes: the only description left after `strip
//! --strip-section-headers`.

use object::elf;

use super::place::{FileRange, SYMBOLS_MAX, TablePlace, place_at, within_file};
use crate::bytes::{u32_at, u32_in};
use crate::object::{Object, SYMBOL, dynamic_entries};

/// Maximum size of hash tables. Buckets and chains have 4 bytes per symbol.
const HASH_BYTES_MAX: u64 = SYMBOLS_MAX * 8;

/// Returns the dynamic symbol table. It is found by DT_SYMTAB, DT_STRTAB, DT_STRSZ and, as no entry
/// has its length, a hash table of the symbols.
pub fn symbols(object: &Object) -> Option<TablePlace> {
    let entries = dynamic_entries(object)?;
    let value = |tag: elf::DynamicTag| {
        let (_, value) = entries.iter().find(|(entry, _)| *entry == tag.0 as u64)?;
        Some(*value)
    };
    let count = value(elf::DT_HASH)
        .and_then(|addr| count_by_hash(object, addr))
        .or_else(|| count_by_gnu_hash(object, value(elf::DT_GNU_HASH)?))?;
    let symbols_size = count.checked_mul(object.class().size_of(&SYMBOL) as u64)?;
    let strings = place_at(object, value(elf::DT_STRTAB)?, value(elf::DT_STRSZ)?)?;
    Some(TablePlace {
        symbols: place_at(object, value(elf::DT_SYMTAB)?, symbols_size)?,
        strings: within_file(object, strings),
        versions: value(elf::DT_VERSYM).and_then(|addr| place_at(object, addr, count * 2)),
    })
}

/// Returns the number of symbols by DT_HASH: its second word is the number of chains, one per
/// symbol.
fn count_by_hash(object: &Object, addr: u64) -> Option<u64> {
    let place = place_at(object, addr, 8)?;
    let header = object.source().read(place.offset, 8, "hash table").ok()?;
    Some(u64::from(u32_in(&header, 4)?))
}

/// Returns the number of symbols by DT_GNU_HASH: the last symbol is the end of the chain of the
/// highest bucket. Symbols before the first hashed one are imports.
fn count_by_gnu_hash(object: &Object, addr: u64) -> Option<u64> {
    let source = object.source();
    let read = |place: FileRange| source.read(place.offset, place.size, "GNU hash table").ok();

    let place = place_at(object, addr, 16)?;
    let header: [u8; 16] = read(place)?.try_into().ok()?;
    let buckets = u64::from(u32_at(&header, 0));
    let first = u64::from(u32_at(&header, 4));
    let filter = u64::from(u32_at(&header, 8)) * u64::from(object.class().address_size());
    let buckets = FileRange {
        offset: place.offset.checked_add(16 + filter)?,
        size: Some(buckets * 4).filter(|&size| size <= HASH_BYTES_MAX)?,
    };
    let highest = words(&read(buckets)?).max().map_or(0, u64::from);
    if highest < first {
        return Some(first);
    }
    let chains = buckets.offset + buckets.size;
    let start = chains.checked_add((highest - first) * 4)?;
    let rest = source.len().checked_sub(start)?;
    // The chain ends at a word with the lowest bit set.
    let chain = read(FileRange {
        offset: start,
        size: rest.min(CHAIN_BYTES_MAX) & !3,
    })?;
    let len = words(&chain).position(|word| word & 1 != 0)? as u64 + 1;
    Some(highest + len)
}

/// Maximum length of a chain. Real ones have a few symbols, those of one bucket.
const CHAIN_BYTES_MAX: u64 = 64 << 10;

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let (words, _) = bytes.as_chunks();
    words.iter().map(|word| u32::from_le_bytes(*word))
}
