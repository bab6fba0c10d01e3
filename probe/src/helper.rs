//! A *helper* is another program that works for proftop, and is of no use without it: it ends when
//! proftop does, however that ends.
//!
//! It runs as the invoking user, in a process group of its own, so that what it starts ends with it,
//! and with no more rights than this process has: what root starts would have all of them again.

use crate::privilege::UserRights;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_process_group,
    set_parent_process_death_signal, waitid,
};
use rustix::thread::set_no_new_privs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long [`Helper::end`] waits before it kills: enough to remove temporary files.
const END_WAIT: Duration = Duration::from_secs(2);

/// Time between two looks at whether a helper has ended.
const NAP: Duration = Duration::from_millis(20);

/// A helper that was started. One thread may wait for its end while another one ends it.
#[derive(Debug)]
pub struct Helper {
    child: Mutex<Child>,
    pid: Pid,
}

impl Helper {
    /// Starts the program, and returns its output and its complaints. Its input is empty.
    ///
    /// To be called on the main thread: the kernel ends the helper when the thread that has started
    /// it ends.
    pub fn start(mut command: Command) -> io::Result<(Helper, ChildStdout, ChildStderr)> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        UserRights::current().apply_to(&mut command);
        let parent = getpid();
        // This comes after the change of the user, which would take the signal back.
        //
        // SAFETY: the closure runs between fork and exec, where other threads' locks may be held
        // for ever. It makes system calls only: it allocates nothing, and takes no lock.
        unsafe { command.pre_exec(move || end_with(parent)) };
        let mut child = command.spawn()?;
        let pipes = (child.stdout.take(), child.stderr.take());
        let pid = Pid::from_child(&child);
        let helper = Helper {
            child: Mutex::new(child),
            pid,
        };
        match pipes {
            (Some(output), Some(complaints)) => Ok((helper, output, complaints)),
            _ => {
                helper.end();
                Err(io::Error::other("it has no output"))
            }
        }
    }

    /// Waits for the end of the helper, but at most for `limit`. Returns `None` if it goes on.
    pub fn wait(&self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let begin = Instant::now();
        loop {
            // The lock is free between two looks: another thread may have to end the helper.
            let status = self.lock().try_wait()?;
            if status.is_some() || begin.elapsed() > limit {
                return Ok(status);
            }
            thread::sleep(NAP);
        }
    }

    /// Ends the helper and all that it has started: asks first (SIGTERM), so that temporary files
    /// can be removed, and kills after [`END_WAIT`]. Does nothing if it has ended.
    pub fn end(&self) {
        let mut child = self.lock();
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        // The kernel refuses this only if no process is left in the group: then nothing has to end.
        _ = kill_process_group(self.pid, Signal::TERM);
        self.give_time_to_end();
        // The helper's status is not taken yet, so its number is still that of its group.
        _ = kill_process_group(self.pid, Signal::KILL);
        // One that cannot be killed, because it hangs in a system call, must not hold us up.
        self.give_time_to_end();
        _ = child.try_wait();
    }

    /// Waits until the helper has ended, but at most for [`END_WAIT`].
    fn give_time_to_end(&self) {
        let begin = Instant::now();
        while !self.has_ended() && begin.elapsed() < END_WAIT {
            thread::sleep(NAP);
        }
    }

    /// Whether the helper has ended, without taking its status.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None))
    }

    fn lock(&self) -> MutexGuard<'_, Child> {
        // The child is valid even if a thread panicked while it held the lock.
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks the kernel to end this process when its parent ends. It would forget that if the program
/// gained rights by its start (`commit_creds` in Linux's `kernel/cred.c`).
fn end_with(parent: Pid) -> io::Result<()> {
    set_no_new_privs(true)?;
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if getppid() == Some(parent) {
        Ok(())
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use test_support::wait_until;

    fn start(script: &str) -> (Helper, ChildStdout, ChildStderr) {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Helper::start(command).expect("it starts")
    }

    #[test]
    fn its_output_and_status_are_told() {
        let (helper, mut output, mut complaints) = start("echo out; echo why >&2; exit 3");
        let mut text = String::new();
        output.read_to_string(&mut text).expect("a pipe");
        complaints.read_to_string(&mut text).expect("a pipe");
        assert_eq!(text, "out\nwhy\n");
        let status = helper.wait(Duration::MAX).expect("ours");
        assert_eq!(status.and_then(|it| it.code()), Some(3));
        helper.end();
    }

    #[test]
    fn it_ends_with_all_that_it_has_started() {
        // The shell waits for a child that has the pipe as well.
        let (helper, mut output, _) = start("sleep 3600 & echo; wait");
        let mut newline = [0];
        output.read_exact(&mut newline).expect("a pipe");
        assert_eq!(helper.wait(Duration::ZERO).expect("ours"), None);
        helper.end();
        let mut rest = String::new();
        // The pipe ends when nobody has it any more.
        output.read_to_string(&mut rest).expect("a pipe");
        assert!(helper.wait(Duration::ZERO).expect("ours").is_some());
    }

    #[test]
    fn one_that_does_not_listen_is_killed() {
        let (helper, mut output, _) = start("trap '' TERM; echo; while :; do sleep 0.1; done");
        let mut newline = [0];
        output.read_exact(&mut newline).expect("a pipe");
        helper.end();
        let ended = helper.wait(Duration::ZERO).expect("ours");
        assert!(ended.is_some_and(|it| it.code().is_none()), "{ended:?}");
    }

    #[test]
    fn it_ends_with_the_thread_that_started_it() {
        let starting = thread::spawn(|| start("exec sleep 3600"));
        let (helper, _output, _complaints) = starting.join().expect("it does not panic");
        wait_until("it ends", || helper.has_ended());
    }
}
