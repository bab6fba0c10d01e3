//! The code that a process has *mapped* from files.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use symbolize::{FileOffset, Mapping, ProcessAddr};

/// One executable mapping of a file.
#[derive(Debug)]
pub struct CodeMapping {
    pub mapping: Mapping,
    /// Major and minor number.
    pub device: (u32, u32),
    pub inode: u64,
    /// As the kernel writes it, with its mark of the deleted.
    pub path: PathBuf,
}

pub fn read(pid: u32) -> io::Result<Vec<CodeMapping>> {
    let maps = probe::files::of_targets().code_mappings(pid)?;
    let mappings = maps.split(|&byte| byte == b'\n').filter_map(parse);
    Ok(mappings.collect())
}

/// `start-end perms offset dev inode   path`, see proc_pid_maps(5).
fn parse(line: &[u8]) -> Option<CodeMapping> {
    let mut fields = line.splitn(6, |&byte| byte == b' ');
    let mut text = || std::str::from_utf8(fields.next()?).ok();
    let (range, rights, offset, device, inode) = (text()?, text()?, text()?, text()?, text()?);
    let path = fields.next()?.trim_ascii_start();
    if rights.as_bytes().get(2) != Some(&b'x') || !path.starts_with(b"/") {
        return None;
    }
    let hex = |digits| u64::from_str_radix(digits, 16).ok();
    let (start, end) = range.split_once('-')?;
    let (major, minor) = device.split_once(':')?;
    Some(CodeMapping {
        mapping: Mapping {
            start: ProcessAddr(hex(start)?),
            end: ProcessAddr(hex(end)?),
            file_offset: FileOffset(hex(offset)?),
        },
        device: (hex(major)? as u32, hex(minor)? as u32),
        inode: inode.parse().ok()?,
        path: OsString::from_vec(path.to_vec()).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_files() {
        let code = parse(b"55d0-55e0 r-xp 00001000 fe:01 77    /opt/a b").unwrap();
        assert_eq!(code.mapping.file_offset, FileOffset(0x1000));
        assert_eq!((code.device, code.inode), ((0xfe, 1), 77));
        assert_eq!(code.path, PathBuf::from("/opt/a b"));
        assert!(parse(b"55d0-55e0 rw-p 00001000 fe:01 77    /opt/a").is_none());
        assert!(parse(b"55d0-55e0 r-xp 00000000 00:00 0     [vdso]").is_none());
        assert!(parse(b"").is_none());
    }
}
