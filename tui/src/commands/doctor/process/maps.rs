//! The code mappings of a process that doctor examines.

use probe::proc_maps::{self, MapsLine};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use symbolize::{FileOffset, Files, Mapping, ProcessAddr};

/// The mark that the kernel writes behind the path of an unlinked file.
const DELETED: &[u8] = b" (deleted)";

/// One mapping of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeMapping {
    /// The address of the first byte, and of the first byte behind the mapping.
    pub range: (u64, u64),
    pub file_offset: u64,
    pub inode: u64,
    /// The path, without the mark ` (deleted)`. None for anonymous memory.
    pub path: Option<PathBuf>,
    /// Whether the file was unlinked, or another one was put in its place.
    pub deleted: bool,
}

/// Reads the mappings of code in a process, without those of the kernel (see [`CodeMapping::of`]).
pub fn read_code_mappings(pid: u32, way: &Files) -> io::Result<Vec<CodeMapping>> {
    let lines = proc_maps::read(pid, way)?;
    Ok(lines.iter().filter_map(CodeMapping::of).collect())
}

impl CodeMapping {
    /// Returns the mapping of a line. None for `[vdso]`, `[vsyscall]` and the like, and for
    /// `[uprobes]`, the page in which the kernel executes instructions that breakpoints have
    /// replaced; it stays mapped when the probes are removed.
    fn of(line: &MapsLine) -> Option<Self> {
        if line.path.starts_with(b"[v") || line.path == b"[uprobes]" {
            return None;
        }
        let unmarked = line.path.strip_suffix(DELETED);
        let path = unmarked.unwrap_or(&line.path);
        let is_file = line.file().is_some();
        Some(Self {
            range: (line.start, line.end),
            file_offset: line.file_offset,
            inode: line.inode,
            path: is_file.then(|| PathBuf::from(OsStr::from_bytes(path))),
            deleted: is_file && unmarked.is_some(),
        })
    }

    /// Whether both map one file. If a file was replaced between two mappings, its path has two
    /// inodes, which are two files here.
    pub fn is_of_same_file(&self, other: &CodeMapping) -> bool {
        (&self.path, self.inode) == (&other.path, other.inode)
    }

    /// Returns where the mapping is, in the process and in its file.
    pub fn place(&self) -> Mapping {
        Mapping {
            start: ProcessAddr(self.range.0),
            end: ProcessAddr(self.range.1),
            file_offset: FileOffset(self.file_offset),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Option<CodeMapping> {
        proc_maps::parse(line.as_bytes())
            .first()
            .and_then(CodeMapping::of)
    }

    #[test]
    fn a_deleted_file_is_known_by_its_mark() {
        let line = "7f12a000-7f12b000 r-xp 1000 fd:00 42     /opt/my app/lib.so (deleted)";
        let mapping = parse(line).unwrap();
        assert_eq!(mapping.range, (0x7f12_a000, 0x7f12_b000));
        assert_eq!(mapping.inode, 42);
        assert_eq!(mapping.path, Some(PathBuf::from("/opt/my app/lib.so")));
        assert!(mapping.deleted);
    }

    #[test]
    fn pages_of_the_kernel_are_left_out() {
        for line in [
            "1000-2000 r-xp 0 00:00 0                  [vdso]",
            "7fffffffe000-7ffffffff000 --xp 00000000 00:00 0                      [uprobes]",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    #[test]
    fn anonymous_code_has_no_path() {
        let plain = parse("1000-2000 rwxp 00000000 00:00 0 ").unwrap();
        assert_eq!(plain.path, None);
        let named = parse("1000-2000 rwxp 00000000 00:00 0    [anon:jit]").unwrap();
        assert_eq!(named.path, None);
        let shared = parse("1000-2000 r-xs 00000000 00:01 99   /memfd:jit (deleted)").unwrap();
        assert_eq!((shared.path, shared.deleted), (None, false));
    }
}
