//! The identity of a file's contents, wherever the file is: the key of mappings, tables, symbols
//! and caches.

use std::fmt;
use std::sync::Arc;

use crate::OpenError;
use crate::source::Source;

/// Maximum length of a GNU build-id, the kernel's limit (BUILD_ID_SIZE_MAX): it never reports a
/// longer one.
const GNU_BYTES_MAX: usize = 20;

/// Maximum length of Go's build-ids. They have 83 characters; anything longer is not one.
const GO_BYTES_MAX: usize = 256;

/// Number of blocks of a file without build-id that are hashed, see [`FileId::Content`].
const HASHED_BLOCKS: u64 = 16;
const HASHED_BLOCK_BYTES: u64 = 16 << 10;

/// The identity of a file's contents.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileId {
    /// The GNU build-id, at most its first 20 bytes.
    Gnu(BuildId),
    /// Go's build-id, for binaries that have no GNU one.
    Go(Arc<str>),
    /// For files without either: the length, and the 64-bit FNV-1a hash of the contents. In a file
    /// larger than 256 KiB, 16 blocks of 16 KiB are hashed, in ascending order, block `i` at `i *
    /// (len - 16 KiB) / 15` rounded down: the first block has the headers and the last one ends the
    /// file.
    Content {
        /// The hash of the blocks.
        hash: u64,
        /// The length of the file.
        len: u64,
    },
}

impl FileId {
    /// The identity of a file with this GNU build-id, which is cut to 20 bytes.
    pub fn gnu(id: &[u8]) -> FileId {
        FileId::Gnu(BuildId::new(id))
    }

    /// The identity of a file with this build-id of Go's linker.
    pub(crate) fn go(id: &[u8]) -> FileId {
        let id = &id[..id.len().min(GO_BYTES_MAX)];
        FileId::Go(String::from_utf8_lossy(id).into())
    }

    /// The identity of a file without a build-id; reads the blocks to be hashed.
    pub(crate) fn of_content(source: &Source) -> Result<FileId, OpenError> {
        let len = source.len();
        let mut hash = Fnv::default();
        if len <= HASHED_BLOCKS * HASHED_BLOCK_BYTES {
            hash.write(&source.read(0, len, "content")?);
        } else {
            for block in 0..HASHED_BLOCKS {
                let offset = block * (len - HASHED_BLOCK_BYTES) / (HASHED_BLOCKS - 1);
                hash.write(&source.read(offset, HASHED_BLOCK_BYTES, "content")?);
            }
        }
        Ok(FileId::Content { hash: hash.0, len })
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileId::Gnu(id) => id.fmt(f),
            FileId::Go(id) => write!(f, "go:{id}"),
            FileId::Content { hash, len } => write!(f, "content:{hash:016x}-{len}"),
        }
    }
}

/// A GNU build-id, displayed as hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId {
    bytes: [u8; GNU_BYTES_MAX],
    len: u8,
}

impl BuildId {
    /// A build-id of these bytes, cut to 20.
    pub fn new(id: &[u8]) -> BuildId {
        let len = id.len().min(GNU_BYTES_MAX);
        let mut bytes = [0; GNU_BYTES_MAX];
        bytes[..len].copy_from_slice(&id[..len]);
        let len = len as u8;
        BuildId { bytes, len }
    }

    /// The bytes, 20 at most.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Whether a build-id that the kernel reports for a mapping is this one. Some kernel interfaces
    /// pad shorter ids with zeros.
    pub fn is_reported_as(&self, reported: &[u8]) -> bool {
        let padding = reported.strip_prefix(self.as_bytes());
        padding.is_some_and(|padding| padding.iter().all(|&byte| byte == 0))
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

/// FNV-1a. It only has to distinguish builds; a collision gives an attacker nothing more than a
/// forged build-id does.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: Vec<u8>) -> FileId {
        FileId::of_content(&Source::Memory(bytes.into())).unwrap()
    }

    #[test]
    fn shown_as_users_know_it() {
        assert_eq!(FileId::gnu(&[0xab, 0x01]).to_string(), "ab01");
        assert_eq!(FileId::go(b"x/y").to_string(), "go:x/y");
        assert_eq!(
            of(b"foobar".to_vec()).to_string(),
            // The published FNV-1a test vector.
            "content:85944171f73967e8-6"
        );
    }

    #[test]
    fn content_is_told_apart_at_both_ends_and_by_length() {
        let zeros = vec![0; 1 << 20];
        let mut first = zeros.clone();
        first[0] = 1;
        let mut last = zeros.clone();
        *last.last_mut().unwrap() = 1;
        let longer = vec![0; (1 << 20) + 1];
        let ids = [of(zeros.clone()), of(first), of(last), of(longer)];
        for (i, id) in ids.iter().enumerate() {
            assert!(!ids[..i].contains(id));
        }
        assert_eq!(of(zeros), ids[0]);
    }

    #[test]
    fn longer_build_ids_are_cut_as_the_kernel_cuts_them() {
        assert_eq!(FileId::gnu(&[7; 32]), FileId::gnu(&[7; 20]));
    }

    #[test]
    fn reports_may_be_padded() {
        let id = BuildId::new(&[1, 2]);
        for (reported, same) in [
            (&[1, 2][..], true),
            (&[1, 2, 0, 0], true),
            (&[1, 2, 3], false),
            (&[1], false),
        ] {
            assert_eq!(id.is_reported_as(reported), same, "{reported:?}");
        }
    }
}
