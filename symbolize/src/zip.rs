//! Reads members of zip archives: Python imports modules from them, and gives their functions a
//! path such as `/srv/app.pyz/shop/cart.py`. Only the parts of the format (PKWARE's APPNOTE) that
//! archives of source text use are supported: no 64-bit sizes, no encryption.

use crate::OpenError;
use crate::bytes::{u16_at, u32_at};
use crate::inflate;
use crate::source::Source;

/// Length of the `end of central directory record`, without its comment.
const END_BYTES: usize = 22;
const END_MAGIC: &[u8; 4] = b"PK\x05\x06";

/// Maximum length of the comment after it.
const COMMENT_MAX: u64 = 0xffff;

/// Length of a `central directory header`, without name, extra field and comment.
const ENTRY_BYTES: usize = 46;
const ENTRY_MAGIC: &[u8; 4] = b"PK\x01\x02";

/// Length of a `local file header`, without name and extra field.
const LOCAL_BYTES: usize = 30;
const LOCAL_MAGIC: &[u8; 4] = b"PK\x03\x04";

/// Maximum size of an archive's directory: some hundred thousand members.
const DIRECTORY_BYTES_MAX: u64 = 16 << 20;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

const WHAT: &str = "a zip archive";
const DAMAGED: OpenError = OpenError::Damaged(WHAT);

/// Reads the member with a name, if it has at most `max` bytes; `None` if there is none, or if the
/// file is not an archive.
pub fn read_member(source: &Source, name: &[u8], max: u64) -> Result<Option<Vec<u8>>, OpenError> {
    let tail = source.len().min(COMMENT_MAX + END_BYTES as u64);
    let tail_start = source.len() - tail;
    let bytes = source.read(tail_start, tail, WHAT)?;
    let Some(at) = memchr::memmem::rfind(&bytes, END_MAGIC) else {
        return Ok(None);
    };
    let end: &[u8; END_BYTES] = bytes[at..].first_chunk().ok_or(DAMAGED)?;
    let directory_len = u64::from(u32_at(end, 12));
    if directory_len > DIRECTORY_BYTES_MAX {
        return Err(OpenError::Refused(WHAT));
    }
    // Offsets do not include what precedes the archive, such as the first line of a zipapp.
    let end_at = tail_start + at as u64;
    let directory_at = end_at.checked_sub(directory_len).ok_or(DAMAGED)?;
    let told_at = u64::from(u32_at(end, 16));
    let before = directory_at.checked_sub(told_at).ok_or(DAMAGED)?;
    let directory = source.read(directory_at, directory_len, WHAT)?;
    match find(&directory, name)? {
        Some(entry) => read(source, before, &entry, max).map(Some),
        None => Ok(None),
    }
}

/// The directory entry of a member.
struct Entry {
    method: u16,
    packed: u64,
    size: u64,
    local: u64,
}

fn find(directory: &[u8], name: &[u8]) -> Result<Option<Entry>, OpenError> {
    let mut rest = directory;
    while let Some(entry) = rest.first_chunk::<ENTRY_BYTES>() {
        if !entry.starts_with(ENTRY_MAGIC) {
            return Err(DAMAGED);
        }
        let lengths = [28, 30, 32].map(|at| usize::from(u16_at(entry, at)));
        let own = rest.get(ENTRY_BYTES..ENTRY_BYTES + lengths[0]);
        if own.ok_or(DAMAGED)? == name {
            return Ok(Some(Entry {
                method: u16_at(entry, 10),
                packed: u32_at(entry, 20).into(),
                size: u32_at(entry, 24).into(),
                local: u32_at(entry, 42).into(),
            }));
        }
        let len = ENTRY_BYTES + lengths.iter().sum::<usize>();
        rest = rest.get(len..).ok_or(DAMAGED)?;
    }
    Ok(None)
}

fn read(source: &Source, before: u64, entry: &Entry, max: u64) -> Result<Vec<u8>, OpenError> {
    if entry.size > max || entry.packed > max {
        return Err(OpenError::Refused(WHAT));
    }
    let local = before + entry.local;
    let header = source.read(local, LOCAL_BYTES as u64, WHAT)?;
    let header: &[u8; LOCAL_BYTES] = header.first_chunk().ok_or(DAMAGED)?;
    if !header.starts_with(LOCAL_MAGIC) {
        return Err(DAMAGED);
    }
    let names = u64::from(u16_at(header, 26)) + u64::from(u16_at(header, 28));
    let packed = source.read(local + LOCAL_BYTES as u64 + names, entry.packed, WHAT)?;
    match entry.method {
        STORED if entry.packed == entry.size => Ok(packed),
        DEFLATED => inflate::deflate(&packed, entry.size, WHAT),
        _ => Err(OpenError::Unsupported),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::process::Command;
    use test_support::{Random, Scratch, run_tool};

    /// An archive as Python makes it, with a prefix.
    fn archive(scratch: &Scratch) -> Option<Vec<u8>> {
        let path = scratch.join("app.pyz");
        let make = "import sys, zipfile\n\
                    with open(sys.argv[1], 'wb') as f:\n\
                    \x20f.write(b'#!/usr/bin/python3\\n')\n\
                    \x20with zipfile.ZipFile(f, 'a') as z:\n\
                    \x20\x20z.writestr('shop/__init__.py', '')\n\
                    \x20\x20z.writestr('shop/cart.py', 'total = 1\\n' * 500, zipfile.ZIP_DEFLATED)\n";
        run_tool(Command::new("python3").args(["-c", make]).arg(&path))?;
        Some(std::fs::read(path).unwrap())
    }

    #[test]
    fn members_are_found_by_name() {
        let scratch = Scratch::new();
        let Some(bytes) = archive(&scratch) else {
            return;
        };
        let path = scratch.join("app.pyz");
        let source = Source::file(&File::open(path).unwrap()).unwrap();
        let member = |name: &str, max| read_member(&source, name.as_bytes(), max);
        let cart = member("shop/cart.py", 1 << 20).unwrap().unwrap();
        assert_eq!(cart, b"total = 1\n".repeat(500));
        let empty = member("shop/__init__.py", 1 << 20).unwrap();
        assert_eq!(empty, Some(Vec::new()));
        assert_eq!(member("shop/other.py", 1 << 20).unwrap(), None);
        assert!(member("shop/cart.py", 4999).is_err(), "it is larger");
        let other = Source::Memory(vec![7; 100].into());
        assert_eq!(read_member(&other, b"a", 9).unwrap(), None);
        let empty = Source::Memory(Vec::new().into());
        assert_eq!(read_member(&empty, b"a", 9).unwrap(), None);
        drop(bytes);
    }

    #[test]
    fn damaged_archives_do_no_harm() {
        let scratch = Scratch::new();
        let Some(bytes) = archive(&scratch) else {
            return;
        };
        let mut random = Random::new(7);
        for _ in 0..2000 {
            let mut damaged = bytes.clone();
            for _ in 0..1 + random.index(20) {
                let at = random.index(damaged.len());
                damaged[at] = random.byte();
            }
            damaged.truncate(damaged.len() - random.index(30));
            let found = read_member(&Source::Memory(damaged.into()), b"shop/cart.py", 1 << 20);
            assert!(
                found
                    .ok()
                    .flatten()
                    .is_none_or(|text| text.len() <= 1 << 20)
            );
        }
    }
}
