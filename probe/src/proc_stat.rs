//! Reads short files of `/proc/PID`, and parses `stat`.

use std::fs::File;
use std::io::{self, Read as _};
use symbolize::files::fields_behind_name;
use symbolize::sanitize;

/// Maximum length of a file of /proc for one process: a line for each control group with its path
/// can be this long.
const BYTES_MAX: u64 = 64 << 10;

/// A length that is enough for most files of /proc for one process.
const BYTES_USUAL: usize = 4 << 10;

/// Reads a file of /proc, with a single system call if it is as short as most. Such a file does not
/// report its length, and would otherwise be read in small pieces.
pub fn read(path: &str) -> io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(BYTES_USUAL);
    File::open(path)?.take(BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

/// Returns the fourth and the 22nd field of `/proc/PID/stat`.
pub fn parent_and_start(stat: &[u8]) -> Option<(u32, u64)> {
    let mut fields = fields_behind_name(stat)?.split_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    Some((parent, fields.nth(17)?.parse().ok()?))
}

/// Whether a thread runs or is ready to run; false if that cannot be read.
pub fn is_ready_to_run(pid: u32, tid: u32) -> bool {
    let stat = read(&format!("/proc/{pid}/task/{tid}/stat"));
    stat.is_ok_and(|stat| state(&stat) == Some(b'R'))
}

/// Returns the third field of `/proc/PID/stat`: a letter for the state of a process or thread.
pub fn state(stat: &[u8]) -> Option<u8> {
    fields_behind_name(stat)?.trim_start().bytes().next()
}

/// Returns the name of a process, safe to print, and the number of its parent, from
/// `/proc/PID/stat`.
pub fn name_and_parent(stat: &[u8]) -> Option<(String, u32)> {
    let start = stat.iter().position(|byte| *byte == b'(')?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let name = sanitize(stat.get(start + 1..end)?).into_owned();
    Some((name, parent_and_start(stat)?.0))
}

/// Returns the parent of a process, which has started it or adopted it.
pub fn parent_of(pid: u32) -> Option<u32> {
    let stat = read(&format!("/proc/{pid}/stat")).ok()?;
    Some(parent_and_start(&stat)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_brackets_and_blanks() {
        let stat = b"7 (a) b (c)) S 3 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 1234 9 9";
        assert_eq!(parent_and_start(stat), Some((3, 1234)));
        assert_eq!(name_and_parent(stat), Some(("a) b (c)".into(), 3)));
        assert_eq!(state(stat), Some(b'S'));
        assert_eq!(state(b"7 (a)"), None);
        assert_eq!(parent_and_start(b"7 (a"), None);
        assert_eq!(name_and_parent(b"7 )a("), None);
    }
}
