//! Decides which files are trusted to describe a process's own run-time code.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{Mode, OFlags, openat};
use rustix::time::{ClockId, clock_gettime};

use super::stat::fields_behind_name;
use crate::Reason;
use crate::opener::{Blocker, Links, Opening, open_beneath};

/// Number of bytes of `/proc/PID/maps` that are searched for a dump: it is mapped early, as a mark.
const MAPS_BYTES_MAX: u64 = 4 << 20;

/// Unit of a process's start time in `/proc/PID/stat`: hundredths of a second, whatever the
/// kernel's own ticks are.
const TICKS_PER_SECOND: f64 = 100.0;

/// Tolerance for comparing the time of a file with the start of a process, which are both rounded.
/// Pids are not reused that fast.
const ROUNDING: Duration = Duration::from_secs(2);

/// The needed fields of `/proc/PID/status`.
#[derive(Debug, PartialEq, Eq)]
struct Status {
    pid: u32,
    euid: u32,
    /// The pid as the process itself sees it, in the innermost namespace.
    own_pid: u32,
}

/// Opens `/tmp/perf-PID.map` of the process whose directory in /proc is given.
pub fn perf_map(process: BorrowedFd<'_>, opening: &mut Opening<'_>) -> Result<File, Reason> {
    let status = status(process)?;
    let path = format!("/tmp/perf-{}.map", status.own_pid);
    let opened = open_own(process, Path::new(&path), opening);
    let file = opened.map_err(|reason| match reason {
        Reason::FileGone => Reason::Jit,
        Reason::Refused => Reason::JitMapRefused,
        other => other,
    })?;
    check(&file, &status)?;
    // Runtimes leave their maps behind, and a later process can get the same pid.
    if is_older(&file, process) {
        return Err(Reason::Jit);
    }
    Ok(file)
}

/// Opens `jit-PID.dump`, wherever the process has it mapped.
pub fn jit_dump(process: BorrowedFd<'_>, opening: &mut Opening<'_>) -> Result<File, Reason> {
    let status = status(process)?;
    opening.watch.enter(Blocker::Process(status.pid))?;
    let mut maps = Vec::new();
    open_text(process, "maps")?
        .take(MAPS_BYTES_MAX)
        .read_to_end(&mut maps)
        .map_err(|_| Reason::Jit)?;
    let path = maps.split(|byte| *byte == b'\n').find_map(dump_path);
    let path = Path::new(std::ffi::OsStr::from_bytes(path.ok_or(Reason::Jit)?));
    let file = open_own(process, path, opening)?;
    check(&file, &status)?;
    Ok(file)
}

/// Opens a file of the process that is not a symbolic link.
fn open_own(
    process: BorrowedFd<'_>,
    path: &Path,
    opening: &mut Opening<'_>,
) -> Result<File, Reason> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(process, "root", flags, Mode::empty()).map_err(reason)?;
    open_beneath(root.as_fd(), path, Links::Refuse, opening)
}

/// Returns the path in a line of `/proc/PID/maps`, if it is that of a dump.
fn dump_path(line: &[u8]) -> Option<&[u8]> {
    let path = &line[memchr::memchr(b'/', line)?..];
    let name = &path[memchr::memrchr(b'/', path)? + 1..];
    let pid = name.strip_prefix(b"jit-")?.strip_suffix(b".dump")?;
    (!pid.is_empty() && pid.iter().all(u8::is_ascii_digit)).then_some(path)
}

/// Returns an error unless only the process, its user, or root can have written the file.
/// Group-writable is accepted, as a umask of 002 makes every file so.
fn check(file: &File, status: &Status) -> Result<(), Reason> {
    let stat = file.metadata().map_err(|_| Reason::Jit)?;
    let is_own = stat.uid() == status.euid || stat.uid() == 0;
    let is_open_to_all = stat.mode() & 0o002 != 0;
    // A file with several hard links may have been linked there by another user.
    if is_own && !is_open_to_all && stat.nlink() == 1 {
        Ok(())
    } else {
        Err(Reason::JitMapRefused)
    }
}

/// Whether a file was last written before the process started. If the clock was set forward since,
/// this can be true of a file that the process itself wrote; the file is accepted again once the
/// process writes more.
fn is_older(file: &File, process: BorrowedFd<'_>) -> bool {
    let written = file.metadata().and_then(|stat| stat.modified());
    let (Ok(written), Some(started)) = (written, start(process)) else {
        return false;
    };
    written + ROUNDING < started
}

/// Returns the start of a process, on the clock of file times; `None` if it cannot be read.
fn start(process: BorrowedFd<'_>) -> Option<SystemTime> {
    let mut stat = Vec::new();
    open_text(process, "stat")
        .ok()?
        .read_to_end(&mut stat)
        .ok()?;
    let now = clock_gettime(ClockId::Boottime);
    let now = Duration::new(now.tv_sec.try_into().ok()?, now.tv_nsec.try_into().ok()?);
    SystemTime::now().checked_sub(now.checked_sub(start_since_boot(&stat)?)?)
}

/// Returns the 22nd field of `/proc/PID/stat`.
fn start_since_boot(stat: &[u8]) -> Option<Duration> {
    let mut fields = fields_behind_name(stat)?.split_whitespace();
    let ticks: f64 = fields.nth(22 - 3)?.parse().ok()?;
    Duration::try_from_secs_f64(ticks / TICKS_PER_SECOND).ok()
}

/// Whether the process has ended.
pub fn has_ended(process: &OwnedFd) -> bool {
    status(process.as_fd()).is_err()
}

fn status(process: BorrowedFd<'_>) -> Result<Status, Reason> {
    let mut text = String::new();
    open_text(process, "status")?
        .read_to_string(&mut text)
        .map_err(|_| Reason::Jit)?;
    parse_status(&text).ok_or(Reason::Jit)
}

fn parse_status(text: &str) -> Option<Status> {
    let field = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    let own_pid = field("NSpid:").or_else(|| field("Pid:"))?;
    Some(Status {
        pid: field("Pid:")?.trim().parse().ok()?,
        euid: field("Uid:")?.split_whitespace().nth(1)?.parse().ok()?,
        own_pid: own_pid.split_whitespace().last()?.parse().ok()?,
    })
}

fn open_text(process: impl AsFd, name: &str) -> Result<File, Reason> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    openat(process, name, flags, Mode::empty())
        .map(File::from)
        .map_err(reason)
}

fn reason(error: rustix::io::Errno) -> Reason {
    match error {
        rustix::io::Errno::ACCESS | rustix::io::Errno::PERM => Reason::NoPermission,
        _ => Reason::Jit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pid_is_the_innermost() {
        let text = "Name:\tnode\nPid:\t4242\nUid:\t1\t1000\t2\t3\nNSpid:\t4242\t17\t1\n";
        let status = parse_status(text).unwrap();
        assert_eq!((status.pid, status.euid, status.own_pid), (4242, 1000, 1));
        let old = "Pid:\t4242\nUid:\t0\t0\t0\t0\n";
        assert_eq!(parse_status(old).unwrap().own_pid, 4242);
        assert_eq!(parse_status("Pid:\t1\n"), None);
    }

    #[test]
    fn the_start_follows_a_name_with_brackets() {
        let stat = b"7 (a) b (c)) S 3 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 1234 9 9";
        let start = Duration::from_millis(12_340);
        assert_eq!(start_since_boot(stat), Some(start));
        assert_eq!(start_since_boot(b"7 (a"), None);
        assert_eq!(start_since_boot(b"7 (a) S 3"), None);
    }

    #[test]
    fn the_paths_of_dumps() {
        let line = |path: &str| format!("7f00-7f01 r-xp 00000000 08:01 12  {path}").into_bytes();
        assert_eq!(
            dump_path(&line("/a b/jit-12.dump")),
            Some(&b"/a b/jit-12.dump"[..])
        );
        for path in ["/tmp/jit-.dump", "/tmp/jit-x.dump", "/tmp/perf-1.map", ""] {
            assert_eq!(dump_path(&line(path)), None, "{path}");
        }
    }
}
