//! Whose a process is: its control group and its user, as `/proc` tells them
//! when the process is first sampled, and after exec.

use crate::lineage::{Ancestor, Lineages};
use crate::proc_stat::{parent_and_start, read};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, OnceLock};
use symbolize::{Files, sanitize};

/// Of the times in `/proc/PID/stat`, whatever the kernel's own clock is.
const TICK_MS: i64 = 10;

/// Whose a process is. What is not known is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owner {
    /// The path in the hierarchy of version 2, else in that of systemd.
    pub cgroup: Option<Arc<str>>,
    /// The user whose rights it has.
    pub uid: Option<u32>,
    /// Who started it: whatever it becomes, what it takes is counted as theirs.
    pub real_uid: Option<u32>,
    /// What it was started as, or calls itself: words between blanks.
    pub command_line: Option<Arc<str>>,
    /// When it was started, in ms since 1970.
    pub started_unix_ms: Option<i64>,
    /// The pid of its parent.
    pub parent: Option<u32>,
    /// That parent with its name, and whom it descends from in turn.
    pub ancestors: Arc<[Ancestor]>,
}

impl Owner {
    /// Of a process that is there; what cannot be read stays as it was. The command line is
    /// not read: that may wait for the process.
    pub fn update(&mut self, pid: u32, lineages: &mut Lineages) {
        let text = read(&format!("/proc/{pid}/cgroup")).unwrap_or_default();
        if let Some(path) = cgroup(&text) {
            self.cgroup = Some(sanitize(path).into());
        }
        // It belongs to who the process runs as, or to root if the process may
        // not be looked into, as after setuid.
        if let Ok(folder) = fs::metadata(format!("/proc/{pid}")) {
            self.uid = Some(folder.uid());
        }
        self.real_uid = real_uid(pid).or(self.real_uid);
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

/// The command line of a process, as words; `None` if it has none. Programs such as postgres
/// write into it what they do.
pub fn command_line(pid: u32, files: &Files) -> io::Result<Option<Arc<str>>> {
    let bytes = files.command_line(pid)?;
    Ok(words(&bytes).map(Arc::from))
}

/// The arguments, each ended by a zero byte, with blanks between them.
fn words(bytes: &[u8]) -> Option<String> {
    // Programs that write their own title leave zeros or blanks behind it.
    let end = bytes.iter().rposition(|byte| !matches!(byte, 0 | b' '))? + 1;
    let spaced: Vec<u8> = bytes[..end]
        .iter()
        .map(|byte| if *byte == 0 { b' ' } else { *byte })
        .collect();
    Some(sanitize(&spaced).into_owned())
}

/// What `gettid` gives in a thread, which differs in a pid namespace: the last number of
/// `NSpid`.
pub fn inner_tid(pid: u32, tid: u32) -> Option<u32> {
    // The name in it is bytes, and need not be text.
    let status = read(&format!("/proc/{pid}/task/{tid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().next_back()?.parse().ok()
}

/// When the machine was started, as the kernel tells it to whole seconds.
fn boot_unix_ms() -> Option<i64> {
    static BOOT: OnceLock<Option<i64>> = OnceLock::new();
    *BOOT.get_or_init(|| {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let seconds = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
        Some(seconds.trim().parse::<i64>().ok()? * 1_000)
    })
}

/// The first of `Uid: real effective saved file-system`, as our user namespace has
/// them.
pub fn real_uid(pid: u32) -> Option<u32> {
    // A name may be any bytes.
    let status = read(&format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    uids.split_whitespace().next()?.parse().ok()
}

/// `0::/system.slice/nginx.service`, or a line of systemd's own hierarchy.
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
    // On hybrid systems that of version 2 is there, and empty of meaning.
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
