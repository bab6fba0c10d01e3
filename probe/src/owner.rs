//! The *owner* of a process: its control group, its user and more, read from `/proc` when the
//! process is first sampled, and after exec.

use crate::lineage::{Ancestor, Lineages};
use crate::proc_stat::{parent_and_start, read};
use std::fs;
use std::io;
use std::sync::{Arc, OnceLock};
use symbolize::{Files, sanitize};

/// Unit of the times in `/proc/PID/stat`, whatever the kernel's own clock is.
const TICK_MS: i64 = 10;

/// The owner of a process. Unknown values are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owner {
    /// The control group's path in the hierarchy of version 2, else in that of systemd.
    pub cgroup: Option<Arc<str>>,
    /// The effective user.
    pub uid: Option<u32>,
    /// The real user, who started it: its use of resources is charged to that user, whatever it
    /// becomes later.
    pub real_uid: Option<u32>,
    /// Its command line: the arguments separated by blanks, or a title that the process has set.
    pub command_line: Option<Arc<str>>,
    /// When it was started, in ms since 1970.
    pub started_unix_ms: Option<i64>,
    /// The pid of its parent.
    pub parent: Option<u32>,
    /// The parent with its name, and the parent's ancestors.
    pub ancestors: Arc<[Ancestor]>,
}

impl Owner {
    /// Updates the owner of a process; what cannot be read stays as it was. The command line is not
    /// read, as that may have to wait for the process.
    pub fn update(&mut self, pid: u32, lineages: &mut Lineages) {
        let text = read(&format!("/proc/{pid}/cgroup")).unwrap_or_default();
        if let Some(path) = cgroup(&text) {
            self.cgroup = Some(sanitize(path).into());
        }
        if let Some((real, effective)) = uids(pid) {
            self.real_uid = Some(real);
            self.uid = Some(effective);
        }
        if let Some((parent, ticks)) = read(&format!("/proc/{pid}/stat"))
            .ok()
            .and_then(|stat| parent_and_start(&stat))
        {
            self.parent = Some(parent);
            self.ancestors = lineages.of(parent);
            self.started_unix_ms = boot_unix_ms().map(|boot| boot + ticks as i64 * TICK_MS);
        }
    }
}

/// Returns the command line of a process, as words; `None` if it has none. Programs such as
/// postgres write into it what they do.
pub fn command_line(pid: u32, files: &Files) -> io::Result<Option<Arc<str>>> {
    let bytes = files.command_line(pid)?;
    Ok(words(&bytes).map(Arc::from))
}

/// Joins the arguments, each of which ends with a zero byte, with blanks.
fn words(bytes: &[u8]) -> Option<String> {
    // Programs that write their own title leave zeros or blanks at the end.
    let end = bytes.iter().rposition(|byte| !matches!(byte, 0 | b' '))? + 1;
    let spaced: Vec<u8> = bytes[..end]
        .iter()
        .map(|byte| if *byte == 0 { b' ' } else { *byte })
        .collect();
    Some(sanitize(&spaced).into_owned())
}

/// Returns the result of `gettid` in a thread, which differs in a pid namespace: the last number of
/// `NSpid`.
pub fn inner_tid(pid: u32, tid: u32) -> Option<u32> {
    // The name in it may be any bytes, also such as are not UTF-8.
    let status = read(&format!("/proc/{pid}/task/{tid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().next_back()?.parse().ok()
}

/// When the machine was started; the kernel reports it in whole seconds.
fn boot_unix_ms() -> Option<i64> {
    static BOOT: OnceLock<Option<i64>> = OnceLock::new();
    *BOOT.get_or_init(|| {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let seconds = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
        Some(seconds.trim().parse::<i64>().ok()? * 1_000)
    })
}

/// Returns the real user of a process, as seen from our user namespace.
pub fn real_uid(pid: u32) -> Option<u32> {
    uids(pid).map(|(real, _)| real)
}

/// Returns the real and the effective user of a process: the first numbers of
/// `Uid: real effective saved file-system`.
fn uids(pid: u32) -> Option<(u32, u32)> {
    // A name may be any bytes.
    let status = read(&format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let mut uids = uids.split_whitespace();
    Some((uids.next()?.parse().ok()?, uids.next()?.parse().ok()?))
}

/// Returns the path in `0::/system.slice/nginx.service`, or in a line of systemd's own hierarchy.
fn cgroup(text: &[u8]) -> Option<&[u8]> {
    let of = |wanted: &[u8]| {
        let lines = text.split(|byte| *byte == b'\n');
        lines
            .filter_map(|line| {
                let mut fields = line.splitn(3, |byte| *byte == b':');
                let (_, kind, path) = (fields.next()?, fields.next()?, fields.next()?);
                (kind == wanted && !path.is_empty()).then_some(path)
            })
            .next()
    };
    // On hybrid systems there is a path of version 2, but it means nothing.
    let path = of(b"").filter(|path| *path != b"/");
    path.or_else(|| of(b"name=systemd")).or_else(|| of(b""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_words_and_harmless() {
        let line = words(b"postgres\0-D\0/srv/pg\0").unwrap();
        assert_eq!(line, "postgres -D /srv/pg");
        assert_eq!(
            words(b"nginx: worker process   \0\0").unwrap(),
            "nginx: worker process"
        );
        assert_eq!(words(b"\0\0"), None);
        assert!(!words(b"a\0\x1b[2J").unwrap().contains('\x1b'));
    }

    #[test]
    fn the_path_that_means_something_is_taken() {
        let path =
            |text: &str| cgroup(text.as_bytes()).map(|p| String::from_utf8(p.to_vec()).unwrap());
        assert_eq!(path("0::/a/b:c\n").as_deref(), Some("/a/b:c"));
        let hybrid = "4:pids:/x\n1:name=systemd:/user.slice\n0::/\n";
        assert_eq!(path(hybrid).as_deref(), Some("/user.slice"));
        assert_eq!(path("0::/\n").as_deref(), Some("/"));
        assert_eq!(path("nothing"), None);
    }

    #[test]
    fn this_process_has_an_owner_and_a_dead_one_keeps_what_was_known() {
        let mut owner = Owner::default();
        owner.update(std::process::id(), &mut Lineages::default());
        assert_eq!(owner.uid, Some(rustix::process::geteuid().as_raw()));
        let before = owner.clone();
        owner.update(u32::MAX, &mut Lineages::default());
        assert_eq!(owner, before);
    }
}
