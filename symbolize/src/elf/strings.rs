//! String tables, of which chunks are read when a name is looked up.
//!
//! A large library has 15 MB of names, of which a profile shows some hundreds.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::place::FileRange;
use super::tables::Tables;
use crate::OpenError;
use crate::object::Object;

/// Size of a chunk. Most of the cost of a `pread` is copying, and a process that looks up names
/// mostly needs one name of a chunk before the chunk is dropped.
const CHUNK_BYTES: u64 = 4 << 10;

/// Number of bytes that are first read beyond a chunk, for a name that crosses its end.
const OVERLAP_BYTES: u64 = 1 << 10;

/// Maximum length of a name; longer ones are cut. Compilers write names of some 10 KiB at times;
/// the demangler does not accept more than 8 KiB anyway.
const NAME_BYTES_MAX: usize = 64 << 10;

/// A name in one of a file's string tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    pub table: Table,
    /// Offset of its first byte in the table.
    pub offset: u32,
}

/// One of the string tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Table {
    /// The string table of `.symtab`.
    Full,
    /// The string table of `.dynsym`.
    Dynamic,
    /// Names that we made for stubs.
    Stub,
}

/// All names of one file.
#[derive(Debug)]
pub struct Names {
    full: StringTable,
    dynamic: StringTable,
    stubs: Box<[u8]>,
}

impl Names {
    /// Prepares for reading the string tables of `.symtab` and `.dynsym`. Reads nothing yet.
    pub fn new(object: &Arc<Object>, tables: &Tables) -> Names {
        let strings =
            |place: Option<FileRange>| StringTable::new(object, place.unwrap_or_default());
        Names {
            full: strings(tables.full.map(|table| table.strings)),
            dynamic: strings(tables.dynamic.map(|table| table.strings)),
            stubs: Box::default(),
        }
    }

    /// Sets the names of stubs, each ended by a NUL.
    pub fn set_stubs(&mut self, names: Vec<u8>) {
        self.stubs = names.into();
    }

    /// Returns a name without its version; empty if there is none.
    pub fn get(&self, name: Name) -> Result<&[u8], OpenError> {
        Ok(self.get_versioned(name)?.0)
    }

    /// Returns a name without its version, and whether the linker's `.symtab` marks it as an old
    /// version of the function, kept for programs linked against it.
    pub fn get_versioned(&self, name: Name) -> Result<(&[u8], bool), OpenError> {
        Ok(match name.table {
            Table::Full => without_version(self.full.get(name.offset)?),
            Table::Dynamic => (self.dynamic.get(name.offset)?, false),
            Table::Stub => {
                let rest = self.stubs.get(name.offset as usize..);
                (until_nul(rest.unwrap_or_default()), false)
            }
        })
    }

    /// Drops all names that were read.
    pub fn forget(&mut self) {
        self.full.forget();
        self.dynamic.forget();
    }

    /// Bytes of names that are cached.
    pub fn read_bytes(&self) -> usize {
        self.full.read_bytes.load(Ordering::Relaxed)
            + self.dynamic.read_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of heap in use, including those of the file if it is in memory.
    pub fn heap_bytes(&self) -> usize {
        let source = self.full.object.source().heap_bytes();
        source + self.stubs.len() + self.full.heap_bytes() + self.dynamic.heap_bytes()
    }
}

#[derive(Debug)]
struct StringTable {
    object: Arc<Object>,
    place: FileRange,
    chunks: Box<[OnceLock<Box<[u8]>>]>,
    /// Bytes of the cached chunks.
    read_bytes: AtomicUsize,
}

impl StringTable {
    fn new(object: &Arc<Object>, place: FileRange) -> StringTable {
        let chunks = place.size.div_ceil(CHUNK_BYTES);
        StringTable {
            object: Arc::clone(object),
            place,
            chunks: (0..chunks).map(|_| OnceLock::new()).collect(),
            read_bytes: AtomicUsize::new(0),
        }
    }

    fn forget(&mut self) {
        if std::mem::take(self.read_bytes.get_mut()) > 0 {
            self.chunks.fill_with(OnceLock::new);
        }
    }

    fn get(&self, offset: u32) -> Result<&[u8], OpenError> {
        let index = u64::from(offset) / CHUNK_BYTES;
        let Some(chunk) = self.chunks.get(index as usize) else {
            return Ok(&[]);
        };
        let bytes = match chunk.get() {
            Some(bytes) => bytes,
            None => {
                let bytes = self.read(index * CHUNK_BYTES)?;
                chunk.get_or_init(|| {
                    self.read_bytes.fetch_add(bytes.len(), Ordering::Relaxed);
                    bytes
                })
            }
        };
        let within = (u64::from(offset) % CHUNK_BYTES) as usize;
        Ok(until_nul(bytes.get(within..).unwrap_or_default()))
    }

    fn read(&self, start: u64) -> Result<Box<[u8]>, OpenError> {
        let rest = self.place.size - start;
        let mut overlap = OVERLAP_BYTES;
        loop {
            let len = (CHUNK_BYTES + overlap).min(rest);
            let source = self.object.source();
            let bytes = source.read(self.place.offset + start, len, "symbol names")?;
            let beyond = bytes.get(CHUNK_BYTES as usize..).unwrap_or_default();
            let whole = len == rest || memchr::memchr(0, beyond).is_some();
            if whole || overlap >= NAME_BYTES_MAX as u64 {
                return Ok(bytes.into());
            }
            overlap = NAME_BYTES_MAX as u64;
        }
    }

    fn heap_bytes(&self) -> usize {
        self.read_bytes.load(Ordering::Relaxed) + size_of_val::<[_]>(&self.chunks)
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    let bytes = &bytes[..bytes.len().min(NAME_BYTES_MAX)];
    &bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())]
}

/// Splits off the version. GNU ld writes versions into `.symtab`: `name@@VERSION` for the one that
/// new programs link to, `name@VERSION` for older ones. Returns the name, and whether it is an
/// older version.
fn without_version(name: &[u8]) -> (&[u8], bool) {
    let Some(at) = memchr::memchr(b'@', name).filter(|&at| at > 0) else {
        return (name, false);
    };
    let (base, version) = (&name[..at], &name[at + 1..]);
    let (version, old) = match version.strip_prefix(b"@") {
        Some(version) => (version, false),
        None => (version, true),
    };
    // Other languages use `@` in names.
    let is_version = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-+".contains(byte);
    if version.iter().all(is_version) {
        (base, old)
    } else {
        (name, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_cut() {
        let cases: [(&[u8], &[u8], bool); 5] = [
            (b"memcpy", b"memcpy", false),
            (b"memcpy@@GLIBC_2.14", b"memcpy", false),
            (b"memcpy@GLIBC_2.2.5", b"memcpy", true),
            (b"std.@\"a b\"", b"std.@\"a b\"", false),
            (b"@odd", b"@odd", false),
        ];
        for (name, base, old) in cases {
            assert_eq!(without_version(name), (base, old));
        }
    }
}
