//! The cache of `ldconfig`: maps the names of libraries to files.
//!
//! The layout is that of `struct cache_file_new` in glibc's `dl-cache.h`. Since 2.32 it is the
//! whole file, before that it comes after the older table.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

const PATH: &str = "/etc/ld.so.cache";

/// Maximum size of the file: it has some hundred bytes for each library.
const BYTES_MAX: u64 = 64 << 20;

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEADER_BYTES: usize = 48;
const ENTRY_BYTES: usize = 24;

/// The files of each name.
#[derive(Debug, Default)]
pub struct Cache(HashMap<OsString, Vec<PathBuf>>);

impl Cache {
    /// Reads the cache of this system; empty if there is none.
    pub fn read() -> Self {
        let mut bytes = Vec::new();
        let read = File::open(PATH).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes));
        match read {
            Ok(_) => Self::parse(&bytes).unwrap_or_default(),
            Err(_) => Self::default(),
        }
    }

    /// The files of this name.
    pub fn paths(&self, name: &OsStr) -> Vec<PathBuf> {
        self.0.get(name).cloned().unwrap_or_default()
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        // Offsets of texts are relative to this.
        let start = bytes.windows(MAGIC.len()).position(|part| part == MAGIC)?;
        let table = &bytes[start..];
        let count = word(table, MAGIC.len())? as usize;
        let entries = table
            .get(HEADER_BYTES..)?
            .chunks_exact(ENTRY_BYTES)
            .take(count);
        let mut paths: HashMap<OsString, Vec<PathBuf>> = HashMap::new();
        for entry in entries {
            let text = |at| text(table, word(entry, at)? as usize);
            if let (Some(name), Some(path)) = (text(4), text(8)) {
                paths.entry(name).or_default().push(path.into());
            }
        }
        Some(Self(paths))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*word))
}

fn text(bytes: &[u8], at: usize) -> Option<OsString> {
    let rest = bytes.get(at..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    Some(OsStr::from_bytes(&rest[..end]).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache of two files of one name, behind some bytes of an older table.
    fn cache() -> Vec<u8> {
        let mut table = MAGIC.to_vec();
        table.extend(2u32.to_ne_bytes());
        table.resize(HEADER_BYTES, 0);
        let texts = HEADER_BYTES + 2 * ENTRY_BYTES;
        for path in [8, 19] {
            let mut entry = [0; ENTRY_BYTES];
            entry[4..8].copy_from_slice(&(texts as u32).to_ne_bytes());
            entry[8..12].copy_from_slice(&((texts + path) as u32).to_ne_bytes());
            table.extend(entry);
        }
        table.extend(b"liba.so\0/x/liba.so\0/y/liba.so\0");
        [&b"ld.so-1.7.0\0"[..], &table].concat()
    }

    #[test]
    fn a_name_leads_to_all_of_its_files() {
        let cache = Cache::parse(&cache()).unwrap();
        let expected = ["/x/liba.so", "/y/liba.so"].map(PathBuf::from);
        assert_eq!(cache.paths(OsStr::new("liba.so")), expected);
        assert!(cache.paths(OsStr::new("libb.so")).is_empty());
    }

    #[test]
    fn a_cache_that_is_cut_or_spoilt_does_no_harm() {
        let whole = cache();
        for len in 0..whole.len() {
            let _ = Cache::parse(&whole[..len]);
        }
        let mut random = test_support::Random::new(1);
        for _ in 0..10_000 {
            let mut bytes = whole.clone();
            let at = random.index(bytes.len());
            bytes[at] = random.byte();
            let _ = Cache::parse(&bytes);
        }
    }
}
