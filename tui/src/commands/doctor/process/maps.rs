//! The executable lines of `/proc/PID/maps`.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use symbolize::Files;

const DELETED: &[u8] = b" (deleted)";
/// Shared memory has an inode and looks like a file, but was never one: runtimes
/// that map their code twice use it.
const NEVER_A_FILE: [&[u8]; 4] = [b"/memfd:", b"/SYSV", b"/dev/zero", b"//anon"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeMapping {
    pub range: (u64, u64),
    pub inode: u64,
    /// `None` for anonymous memory; the kernel's own pages are left out.
    pub path: Option<PathBuf>,
    pub deleted: bool,
}

pub fn read_code_mappings(pid: u32, way: &Files) -> io::Result<Vec<CodeMapping>> {
    let maps = way.code_mappings(pid)?;
    Ok(maps
        .split(|&b| b == b'\n')
        .filter_map(parse_code_mapping)
        .collect())
}

/// `start-end perms offset dev inode   path`, see proc_pid_maps(5).
fn parse_code_mapping(line: &[u8]) -> Option<CodeMapping> {
    let mut fields = line.splitn(6, |&b| b == b' ');
    let (start, end) = std::str::from_utf8(fields.next()?).ok()?.split_once('-')?;
    let address = |digits| u64::from_str_radix(digits, 16).ok();
    let range = (address(start)?, address(end)?);
    let executable = fields.next()?.get(2) == Some(&b'x');
    let inode = std::str::from_utf8(fields.nth(2)?).ok()?.parse().ok()?;
    let path = fields.next().unwrap_or_default().trim_ascii_start();
    // [vdso], [vsyscall], and what the kernel names like files without a path.
    let kernels_own = path.starts_with(b"[v");
    if !executable || kernels_own {
        return None;
    }
    let deleted = path.ends_with(DELETED);
    let path = path.strip_suffix(DELETED).unwrap_or(path);
    let shared_memory = NEVER_A_FILE.iter().any(|start| path.starts_with(start));
    let is_file = inode != 0 && path.starts_with(b"/") && !shared_memory;
    Some(CodeMapping {
        range,
        inode,
        path: is_file.then(|| PathBuf::from(OsString::from_vec(path.to_vec()))),
        deleted: is_file && deleted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Option<CodeMapping> {
        parse_code_mapping(line.as_bytes())
    }

    #[test]
    fn reads_files_with_blanks_and_the_mark_of_the_deleted() {
        let mapping = parse(
            "7f12a000-7f12b000 r-xp 00001000 fd:00 42                         /opt/my app/lib.so (deleted)",
        )
        .unwrap();
        assert_eq!(mapping.range, (0x7f12_a000, 0x7f12_b000));
        assert_eq!(mapping.inode, 42);
        assert_eq!(mapping.path, Some(PathBuf::from("/opt/my app/lib.so")));
        assert!(mapping.deleted);
    }

    #[test]
    fn only_code_counts_and_the_vdso_does_not() {
        assert_eq!(parse("1000-2000 r--p 00000000 fd:00 42 /bin/x"), None);
        assert_eq!(
            parse("1000-2000 r-xp 00000000 00:00 0                  [vdso]"),
            None
        );
        assert_eq!(parse(""), None);
        assert_eq!(parse("nonsense"), None);
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
