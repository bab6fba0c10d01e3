//! Iterates over every defined symbol of a file by name, for the few that are searched by name.

use super::place::{SYMBOL_BYTES, TablePlace};
use super::tables;
use crate::bytes::{u16_at, u32_at, u64_at};
use crate::object::Object;
use crate::{LinkAddr, OpenError};

/// Larger string tables are read in part: symbols with names beyond are left out.
const STRINGS_BYTES_MAX: u64 = 64 << 20;

/// Calls `take` with name, address and size of each symbol that the file defines, from both of its
/// tables.
pub fn for_each_symbol(
    object: &Object,
    take: impl FnMut(&[u8], LinkAddr, u64),
) -> Result<(), OpenError> {
    for_each_symbol_with(object, b"", take)
}

/// Does the same as [`for_each_symbol`] if the file contains `word` in its names. Otherwise `take`
/// is not called, which costs far less than reading every symbol.
pub fn for_each_symbol_with(
    object: &Object,
    word: &[u8],
    mut take: impl FnMut(&[u8], LinkAddr, u64),
) -> Result<(), OpenError> {
    let found = tables::find(object);
    for table in [found.full, found.dynamic].into_iter().flatten() {
        of_table(object, table, word, &mut take)?;
    }
    Ok(())
}

fn of_table(
    object: &Object,
    table: TablePlace,
    word: &[u8],
    take: &mut impl FnMut(&[u8], LinkAddr, u64),
) -> Result<(), OpenError> {
    let size = table.strings.size.min(STRINGS_BYTES_MAX);
    let strings = object
        .source()
        .read(table.strings.offset, size, "symbol names")?;
    if memchr::memmem::find(&strings, word).is_none() {
        return Ok(());
    }
    tables::read_pieces(object, table.symbols, |symbols| {
        for symbol in symbols.as_chunks::<SYMBOL_BYTES>().0 {
            // Undefined: the symbol belongs to another file.
            if u16_at(symbol, 6) == 0 {
                continue;
            }
            let name = strings
                .get(u32_at(symbol, 0) as usize..)
                .unwrap_or_default();
            let end = memchr::memchr(0, name).unwrap_or(name.len());
            take(
                &name[..end],
                LinkAddr(u64_at(symbol, 8)),
                u64_at(symbol, 16),
            );
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::exports;
    use std::collections::HashSet;
    use std::fs::File;
    use std::path::{Path, PathBuf};

    fn libc() -> PathBuf {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let mut paths = maps
            .lines()
            .filter_map(|line| line.split_whitespace().nth(5));
        let path = paths.find(|path| path.contains("/libc.so") || path.contains("/libc-"));
        path.expect("a libc").into()
    }

    #[test]
    fn what_a_library_defines_is_found_and_nothing_else() {
        let narrow = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/narrow/i386");
        let mut found = 0;
        for path in [libc(), narrow] {
            let object = Object::read(&File::open(path).expect("a file")).expect("an object");
            let mut names = HashSet::new();
            let table = tables::find(&object).dynamic.expect("a table");
            let strings = table.strings;
            let strings = object
                .source()
                .read(strings.offset, strings.size, "names")
                .expect("names");
            for_each_symbol(&object, |name, _, _| _ = names.insert(name.to_vec()))
                .expect("symbols");
            for name in strings.split(|byte| *byte == 0).filter(|it| !it.is_empty()) {
                if exports(&object, name) {
                    assert!(names.contains(name), "{}", String::from_utf8_lossy(name));
                    found += 1;
                }
                assert!(!exports(&object, &[name, b"_not"].concat()));
            }
        }
        // libc exports thousands.
        assert!(found > 1000, "{found}");
    }
}
