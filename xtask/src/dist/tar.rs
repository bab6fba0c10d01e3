//! Makes tar archives (POSIX.1-1988, ustar) with the same bytes on any machine: all files belong to
//! root, and have the same time.

use super::contents::File;
use super::gzip::packed;
use anyhow::{Result, bail};
use std::collections::BTreeSet;

const BLOCK: usize = 512;

/// Returns the files and the folders above them as a compressed archive.
pub fn gz(files: &[File], time: u64) -> Result<Vec<u8>> {
    packed(&archive(files, time)?)
}

fn archive(files: &[File], time: u64) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let folders: BTreeSet<&str> = files.iter().flat_map(|file| above(&file.path)).collect();
    for folder in folders {
        out.extend(head(&format!("./{folder}/"), 0o755, 0, time, b'5')?);
    }
    for file in files {
        let path = format!("./{}", file.path);
        out.extend(head(&path, file.mode, file.bytes.len(), time, b'0')?);
        out.extend(&file.bytes);
        out.resize(out.len().next_multiple_of(BLOCK), 0);
    }
    // Two empty blocks mark the end.
    out.resize(out.len() + 2 * BLOCK, 0);
    Ok(out)
}

/// Returns the folders above a path, the outermost first.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

fn head(path: &str, mode: u32, len: usize, time: u64, kind: u8) -> Result<[u8; BLOCK]> {
    if path.len() > 100 {
        bail!("the name is too long for a tar archive: {path}");
    }
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, path.as_bytes());
    put(100, format!("{mode:07o}").as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{len:011o}").as_bytes());
    put(136, format!("{time:011o}").as_bytes());
    // The checksum is computed with blanks in its own place.
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    put(265, b"root");
    put(297, b"root");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    #[test]
    fn tar_reads_what_was_written() {
        let files = [
            File::new("a/b/c", "text"),
            File {
                mode: 0o755,
                ..File::new("a/d", vec![0; 513])
            },
        ];
        let archive = gz(&files, 1_000_000_000).unwrap();
        assert_eq!(archive, gz(&files, 1_000_000_000).unwrap());
        let mut tar = Command::new("tar")
            .args(["-tvz", "--full-time", "--utc"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("tar is there");
        tar.stdin.take().unwrap().write_all(&archive).unwrap();
        let listed = tar.wait_with_output().unwrap();
        assert!(listed.status.success());
        let listed = String::from_utf8(listed.stdout).unwrap();
        let lines: Vec<String> = listed
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            lines,
            [
                "drwxr-xr-x root/root 0 2001-09-09 01:46:40 ./a/",
                "drwxr-xr-x root/root 0 2001-09-09 01:46:40 ./a/b/",
                "-rw-r--r-- root/root 4 2001-09-09 01:46:40 ./a/b/c",
                "-rwxr-xr-x root/root 513 2001-09-09 01:46:40 ./a/d",
            ]
        );
    }
}
