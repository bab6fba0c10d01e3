//! Reads `/proc/PID/maps`: the executable mappings of a process, as they are now. Earlier mappings
//! are only in the side band.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use symbolize::{FileOffset, FileSource, Files, Mapping, ProcessAddr};

/// A line with an executable mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapsLine {
    /// The first address.
    pub start: u64,
    /// The address after the last one.
    pub end: u64,
    /// The position of `start` in its file.
    pub file_offset: u64,
    /// Major and minor number of the device.
    pub device: (u32, u32),
    /// The inode number; 0 for memory that belongs to no file.
    pub inode: u64,
    /// The raw path: may not be UTF-8, may end in ` (deleted)`.
    pub path: Vec<u8>,
}

impl MapsLine {
    /// Returns the path of its file as its process sees it, with ` (deleted)` if the kernel adds
    /// it; `None` for anonymous memory, shared memory and the kernel's own pages.
    pub fn file(&self) -> Option<&Path> {
        is_file(&self.path).then(|| Path::new(OsStr::from_bytes(&self.path)))
    }

    /// Returns how its file can be opened, if it belongs to one. `pid` is the process that has the
    /// mapping.
    pub fn source(&self, pid: u32) -> Option<FileSource<'_>> {
        Some(FileSource {
            pid: Some(pid),
            range: Some((self.start, self.end)),
            device: self.device,
            inode: self.inode,
            ..FileSource::new(self.file()?)
        })
    }

    /// Returns its addresses.
    pub fn mapping(&self) -> Mapping {
        Mapping {
            start: ProcessAddr(self.start),
            end: ProcessAddr(self.end),
            file_offset: FileOffset(self.file_offset),
        }
    }
}

/// Whether a mapping's path is that of a file. Shared memory and descriptors
/// without a name hold code that was made at run time.
pub fn is_file(path: &[u8]) -> bool {
    const NO_FILES: [&[u8]; 4] = [b"//anon", b"/dev/zero", b"/SYSV", b"/memfd:"];
    path.starts_with(b"/") && !NO_FILES.iter().any(|prefix| path.starts_with(prefix))
}

/// Reads the executable mappings of a process, in order of address.
pub fn read(pid: u32, files: &Files) -> io::Result<Vec<MapsLine>> {
    Ok(parse(&text(pid, u32::MAX, files)?))
}

/// Parses the text; lines that are not an executable mapping are left out.
pub fn parse(text: &[u8]) -> Vec<MapsLine> {
    lines(text).collect()
}

/// Parses the text lazily: there may be more lines than the caller needs.
pub fn lines(text: &[u8]) -> impl Iterator<Item = MapsLine> {
    text.split(|byte| *byte == b'\n').filter_map(parse_line)
}

/// Reads the text for [`lines`], up to a number of them.
pub fn text(pid: u32, lines_max: u32, files: &Files) -> io::Result<Vec<u8>> {
    files.code_mappings(pid, lines_max)
}

/// Parses a line such as `7f12-7f34 r-xp 00001000 08:01 1234   /usr/lib/x.so`.
fn parse_line(line: &[u8]) -> Option<MapsLine> {
    let mut rest = line;
    let (start, end) = split_once(next_field(&mut rest)?, b'-')?;
    if next_field(&mut rest)?.get(2) != Some(&b'x') {
        return None;
    }
    let file_offset = hexadecimal(next_field(&mut rest)?)?;
    let (major, minor) = split_once(next_field(&mut rest)?, b':')?;
    let inode = std::str::from_utf8(next_field(&mut rest)?)
        .ok()?
        .parse()
        .ok()?;
    Some(MapsLine {
        start: hexadecimal(start)?,
        end: hexadecimal(end)?,
        file_offset,
        device: (hexadecimal(major)? as u32, hexadecimal(minor)? as u32),
        inode,
        path: unescape(rest.trim_ascii_start()),
    })
}

/// Takes the first field off, and the space after it.
fn next_field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest
        .iter()
        .position(|byte| *byte == b' ')
        .unwrap_or(rest.len());
    let field = &rest[..end];
    *rest = rest.get(end + 1..).unwrap_or_default();
    (!field.is_empty()).then_some(field)
}

fn split_once(bytes: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == separator)?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The kernel writes a newline in a path as `\012`, and escapes nothing else.
fn unescape(path: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((first, after)) = rest.split_first() {
        match rest.strip_prefix(b"\\012") {
            Some(after) => {
                plain.push(b'\n');
                rest = after;
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(line: &str, expected: Option<(u64, u64, u64, u64, &str)>) {
        let found = parse(line.as_bytes()).first().map(|line| {
            let path = String::from_utf8_lossy(&line.path).into_owned();
            (line.start, line.end, line.file_offset, line.inode, path)
        });
        let expected = expected.map(|(a, b, c, d, path)| (a, b, c, d, path.to_string()));
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn lines_of_the_kernel() {
        check(
            "55d0c0a00000-55d0c0b00000 r-xp 00026000 fe:01 1835 /usr/bin/a b (deleted)",
            Some((
                0x55d0_c0a0_0000,
                0x55d0_c0b0_0000,
                0x26000,
                1835,
                "/usr/bin/a b (deleted)",
            )),
        );
        check(
            "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 ",
            Some((0x7f00_0000_0000, 0x7f00_0000_1000, 0, 0, "")),
        );
        check(
            "7ffe3d5f6000-7ffe3d5f8000 r-xp 00000000 00:00 0                          [vdso]",
            Some((0x7ffe_3d5f_6000, 0x7ffe_3d5f_8000, 0, 0, "[vdso]")),
        );
        check(
            "1000-2000 r-xp 0 fe:01 5 /a\\012b",
            Some((0x1000, 0x2000, 0, 5, "/a\nb")),
        );
    }

    #[test]
    fn what_is_not_executable_is_left_out() {
        check("1000-2000 rw-p 0 fe:01 5 /a", None);
        check("", None);
        check("1000 r-xp", None);
    }

    #[test]
    fn what_is_a_file() {
        for (path, expected) in [
            (&b"/usr/bin/x"[..], true),
            (b"//anon", false),
            (b"/memfd:jit (deleted)", false),
            (b"/dev/zero (deleted)", false),
            (b"[heap]", false),
            (b"", false),
            (b"anon_inode:[perf]", false),
        ] {
            assert_eq!(is_file(path), expected, "{}", String::from_utf8_lossy(path));
        }
    }

    #[test]
    fn a_file_is_found_by_what_is_mapped() {
        let text = b"1000-2000 r-xp 3000 fe:01 5   /a b\n5000-6000 r-xp 0 00:00 0   [vdso]";
        let lines = parse(text);
        let source = lines[0].source(7).expect("a file");
        assert_eq!(source.path, Path::new("/a b"));
        assert_eq!(
            (source.pid, source.range),
            (Some(7), Some((0x1000, 0x2000)))
        );
        assert_eq!((source.device, source.inode), ((0xfe, 1), 5));
        let offset = lines[0].mapping().to_file(ProcessAddr(0x1004));
        assert_eq!(offset, Some(FileOffset(0x3004)));
        assert!(lines[1].source(7).is_none());
    }

    #[test]
    fn our_own() {
        let own = read(std::process::id(), &Files::default()).unwrap();
        let here = our_own as fn() as usize as u64;
        assert!(own.iter().any(|line| line.start <= here && here < line.end));
    }

    proptest! {
        #[test]
        fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
