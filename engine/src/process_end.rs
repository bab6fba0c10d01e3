//! How a process ended: with which status, or by which signal.

use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// Describes the end of `who` as a sentence without its period, such as `postgres[4121] was killed
/// by SIGSEGV`.
pub fn words(who: &str, status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => match signal_name(signal) {
            Some(name) => format!("{who} was killed by {name}"),
            None => format!("{who} was killed by signal {signal}"),
        },
        (None, Some(0)) => format!("{who} ended"),
        (None, code) => format!("{who} ended with status {}", code.unwrap_or(-1)),
    }
}

/// Returns the name of a signal that ends processes (signal(7)).
fn signal_name(signal: i32) -> Option<&'static str> {
    use rustix::process::Signal as S;
    let named = [
        (S::HUP, "SIGHUP"),
        (S::INT, "SIGINT"),
        (S::QUIT, "SIGQUIT"),
        (S::ILL, "SIGILL"),
        (S::TRAP, "SIGTRAP"),
        (S::ABORT, "SIGABRT"),
        (S::BUS, "SIGBUS"),
        (S::FPE, "SIGFPE"),
        (S::KILL, "SIGKILL"),
        (S::USR1, "SIGUSR1"),
        (S::SEGV, "SIGSEGV"),
        (S::USR2, "SIGUSR2"),
        (S::PIPE, "SIGPIPE"),
        (S::ALARM, "SIGALRM"),
        (S::TERM, "SIGTERM"),
        (S::XCPU, "SIGXCPU"),
        (S::XFSZ, "SIGXFSZ"),
        (S::SYS, "SIGSYS"),
    ];
    let found = named
        .into_iter()
        .find(|(named, _)| named.as_raw() == signal);
    found.map(|(_, name)| name)
}

/// A process whose exit status can be read after its end, although it is not our child.
pub struct Watched {
    pid: u32,
    /// Refers to this process and to no later one with its pid.
    process: OwnedFd,
}

impl Watched {
    /// Watches a running process. `None` if it does not run, or before Linux 5.3.
    pub fn new(pid: u32) -> Option<Self> {
        let raw = Pid::from_raw(pid.try_into().ok()?)?;
        let process = pidfd_open(raw, PidfdFlags::empty()).ok()?;
        Some(Self { pid, process })
    }

    /// Returns the status of a process that has ended. `None` if the kernel does not provide it:
    /// before Linux 6.15 it is available only until the parent has reaped the process.
    pub fn status(&self) -> Option<ExitStatus> {
        kernel::exit_code(&self.process)
            .or_else(|| zombies_code(self.pid))
            .map(ExitStatus::from_raw)
    }
}

/// Returns the status of a process that has ended and was not reaped: the last field of its stat
/// line, which root may read (proc_pid_stat(5)). Its pid is not reused before.
fn zombies_code(pid: u32) -> Option<i32> {
    let fields = fields_behind_name(pid)?;
    let mut fields = fields.split_ascii_whitespace();
    if fields.next()? != "Z" {
        return None;
    }
    fields.last()?.parse().ok()
}

/// Returns the fields of `/proc/PID/stat` after the name, from the state on (proc_pid_stat(5)).
/// `None` if there is no such process.
pub fn fields_behind_name(pid: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    symbolize::files::fields_behind_name(&line).map(str::to_owned)
}

/// What the kernel keeps about a process for holders of a descriptor: PIDFD_GET_INFO
/// (include/uapi/linux/pidfd.h).
mod kernel {
    use rustix::fd::AsFd;
    use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

    /// `struct pidfd_info` in its first version, which later kernels accept, too.
    #[repr(C)]
    #[derive(Default)]
    struct PidfdInfo {
        /// Bits of the requested fields; after the call, of those that the kernel wrote.
        mask: u64,
        cgroup: u64,
        pid: u32,
        tgid: u32,
        ppid: u32,
        /// Real, effective, saved and file system ids, of the user and of the group.
        ids: [u32; 8],
        exit_code: i32,
    }

    /// Requests `exit_code`; since Linux 6.15.
    const PIDFD_INFO_EXIT: u64 = 1 << 3;

    const PIDFD_GET_INFO: Opcode = opcode::read_write::<PidfdInfo>(0xff, 11);

    /// Returns the status with which a process ended, as wait(2) does. `None` while it runs, until
    /// its parent has reaped it, and on kernels that do not provide it.
    pub fn exit_code(process: impl AsFd) -> Option<i32> {
        let mut info = PidfdInfo {
            mask: PIDFD_INFO_EXIT,
            ..PidfdInfo::default()
        };
        // SAFETY: the number holds the size of the structure, of which the kernel reads and
        // writes no more.
        let asked = unsafe { ioctl(process, Updater::<PIDFD_GET_INFO, _>::new(&mut info)) };
        (asked.is_ok() && info.mask & PIDFD_INFO_EXIT != 0).then_some(info.exit_code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};
    use test_support::wait_until;

    /// Runs a script in a shell, and returns the sentences about its end: before and after its
    /// parent, which is this process, has reaped it.
    fn told(script: &str) -> [Option<String>; 2] {
        let mut child: Child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let watched = Watched::new(child.id()).unwrap();
        wait_until("a status", || watched.status().is_some());
        let words = || watched.status().map(|status| words("sh", status));
        let before = words();
        child.wait().unwrap();
        [before, words()]
    }

    #[test]
    fn how_a_process_ended_is_known_before_its_parent_asks() {
        let [ended, _] = told("sleep 0.05");
        assert_eq!(ended.as_deref(), Some("sh ended"));
        let [failed, _] = told("sleep 0.05; exit 7");
        assert_eq!(failed.as_deref(), Some("sh ended with status 7"));
        let [killed, _] = told("sleep 0.05; kill -SEGV $$");
        assert_eq!(killed.as_deref(), Some("sh was killed by SIGSEGV"));
    }

    #[test]
    fn how_a_process_ended_is_known_afterwards_where_the_kernel_tells() {
        let [before, after] = told("sleep 0.05; kill -ABRT $$");
        // Before Linux 6.15 it is unknown then, but not different.
        assert!(after.is_none() || after == before, "{after:?}");
    }

    #[test]
    fn a_running_process_has_no_status() {
        let watched = Watched::new(std::process::id()).unwrap();
        assert_eq!(watched.status(), None);
        assert!(Watched::new(0).is_none() && Watched::new(u32::MAX).is_none());
    }
}
