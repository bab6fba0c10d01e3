//! Three kinds of address that must never be mixed, and the conversions between them:
//!
//! ```text
//! ProcessAddr ──Mapping──► FileOffset ◄──Segments──► LinkAddr
//! ```
//!
//! Subtracting the first mapping's start from an address looks simpler, but is wrong for files
//! whose segments are laid out differently in the file and in memory (lld, prelink, huge-page
//! alignment).

mod segments;

pub use segments::{LOADS_MAX, Segment, Segments};

/// An address in a running process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessAddr(pub u64);

/// An offset in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileOffset(pub u64);

/// An address assigned by the linker, as used in symbol tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkAddr(pub u64);

/// A part of a file that a process has mapped at `start..end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub start: ProcessAddr,
    /// The first address after it.
    pub end: ProcessAddr,
    /// Offset of `start` in the file (`pgoff`).
    pub file_offset: FileOffset,
}

impl Mapping {
    /// Whether an address lies in it.
    pub fn contains(&self, addr: ProcessAddr) -> bool {
        self.start <= addr && addr < self.end
    }

    /// `addr - start + file_offset`, or `None` outside of the mapping.
    pub fn to_file(&self, addr: ProcessAddr) -> Option<FileOffset> {
        if !self.contains(addr) {
            return None;
        }
        let within = addr.0 - self.start.0;
        self.file_offset.0.checked_add(within).map(FileOffset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64, file_offset: u64) -> Mapping {
        Mapping {
            start: ProcessAddr(start),
            end: ProcessAddr(end),
            file_offset: FileOffset(file_offset),
        }
    }

    #[test]
    fn mapping_is_half_open() {
        let text = mapping(0x7000, 0x9000, 0x2000);
        assert_eq!(text.to_file(ProcessAddr(0x6fff)), None);
        assert_eq!(text.to_file(ProcessAddr(0x7000)), Some(FileOffset(0x2000)));
        assert_eq!(text.to_file(ProcessAddr(0x8fff)), Some(FileOffset(0x3fff)));
        assert_eq!(text.to_file(ProcessAddr(0x9000)), None);
    }

    #[test]
    fn mapping_at_the_end_of_the_file_space_does_not_wrap() {
        let odd = mapping(0, u64::MAX, u64::MAX - 1);
        assert_eq!(
            odd.to_file(ProcessAddr(1)),
            Some(FileOffset(u64::MAX)),
            "the last offset there is"
        );
        assert_eq!(odd.to_file(ProcessAddr(2)), None);
    }
}
