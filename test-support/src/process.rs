//! A child process that ends with the test.

use rustix::process::{Pid, Signal};
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

/// A child process that is killed when this is dropped, together with everything that it started
/// and that stayed in its process group. The kernel kills it as well when the thread that started
/// it ends in any other way, for example when the whole test is killed.
pub struct Process(Child);

impl Process {
    /// Starts a command as the leader of its own process group, with the default handlers of
    /// signals.
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        Self::try_start(command).unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    /// Starts a command that keeps CPUs busy, to be observed by a test. It has low priority, so
    /// that the observing process does not wait for a CPU behind it.
    #[track_caller]
    pub fn start_load(command: &mut Command) -> Self {
        Self::start(behind_others(command))
    }

    /// Starts a command that may be missing on this machine, or may not be permitted.
    pub fn try_start(command: &mut Command) -> io::Result<Self> {
        command.process_group(0);
        let parent = std::process::id();
        let tie = move || {
            // If a script started the test with `&` or `nohup`, it ignores these signals; its
            // children would inherit that, and no interrupt would end them.
            for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
                // SAFETY: the default handler is not code of this program.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have ended before that.
            let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
            if now != Some(parent.cast_signed()) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            Ok(())
        };
        // SAFETY: between fork and exec only what is safe in a signal handler may be called:
        // `tie` makes system calls only and allocates nothing.
        unsafe { command.pre_exec(tie) };
        command.spawn().map(Self)
    }

    /// The pid of the child, which is also the number of its process group.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Sends a signal to the child alone.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.0);
        rustix::process::kill_process(pid, signal).expect("it has not been waited for");
    }

    /// Sends SIGINT to the child and to all of its process group, as a terminal does.
    #[track_caller]
    pub fn interrupt(&self) {
        let group = Pid::from_child(&self.0);
        rustix::process::kill_process_group(group, Signal::INT).expect("it has not ended");
    }
}

/// Gives the command low priority: a tenth of the others' share if CPUs are busy.
pub fn behind_others(command: &mut Command) -> &mut Command {
    // SAFETY: a system call, and nothing else.
    unsafe { command.pre_exec(|| Ok(rustix::process::setpriority_process(None, 10)?)) }
}

/// A child that must not be a group leader when it starts, as for `setsid`. It is only killed when
/// this is dropped, together with the group that it may have made.
impl From<Child> for Process {
    fn from(child: Child) -> Self {
        Self(child)
    }
}

impl Deref for Process {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A group exists as long as it has a member: this works also if the child itself has ended
        // and was waited for.
        _ = rustix::process::kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        // Needed if it has no group of its own.
        _ = self.0.kill();
        _ = self.0.wait();
        // Runtimes do not remove their maps at the end, and another process may get the number.
        _ = std::fs::remove_file(format!("/tmp/perf-{}.map", self.pid()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{wait_for, wait_until};
    use std::io::{BufRead as _, BufReader};
    use std::path::Path;
    use std::process::Stdio;

    /// Whether a process runs: it exists and is not a zombie.
    fn is_running(pid: u32) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        status.is_ok_and(|status| !status.contains(") Z "))
    }

    #[test]
    fn a_child_ends_with_all_that_it_started() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo $!; wait"]);
        let mut shell = Process::start(command.stdout(Stdio::piped()));
        let output = shell.stdout.take().unwrap();
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).unwrap();
        let inner: u32 = line.trim().parse().unwrap();
        assert!(is_running(inner));
        let outer = shell.pid();
        drop(shell);
        assert!(!Path::new(&format!("/proc/{outer}")).exists());
        wait_until("the child of the child ends", || !is_running(inner));
    }

    #[test]
    fn a_child_ends_with_the_thread_that_forgets_it() {
        let starting = || {
            let sleeping = Process::start(Command::new("sleep").arg("1000"));
            let pid = sleeping.pid();
            std::mem::forget(sleeping);
            pid
        };
        let pid = std::thread::spawn(starting).join().unwrap();
        wait_until("the child ends", || !is_running(pid));
    }

    #[test]
    fn it_can_be_signalled_and_waited_for() {
        let mut sleeping = Process::start(Command::new("sleep").arg("1000"));
        sleeping.signal(Signal::TERM);
        let status = wait_for("it ends", || sleeping.try_wait().unwrap());
        assert!(!status.success());
        assert!(Process::try_start(&mut Command::new("/nonexistent/program")).is_err());
    }
}
