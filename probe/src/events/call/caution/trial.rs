//! Whether a filter of system calls (seccomp) ends a process whose return address was
//! replaced.
//!
//! Since Linux 6.11 the code to which the replaced address leads makes a system call of its
//! own, `uretprobe`. A filter that lets nothing through but what it knows ends the process
//! there, or has the call fail, which ends it as well. Since 6.14, and in later versions of
//! 6.12 and 6.13, no filter is asked about that call. Distributions change their kernels, so
//! that the version tells little: a child with a filter makes the call.
//!
//! ```text
//! the child is ended by SIGILL      the kernel took the call, and saw that it is not its own
//!                                   code that made it: filters are not asked
//! the filter's error number         filters are asked; without one the same call says
//!                                   whether there is such a call at all
//! ```

use crate::confine::Filter;
use std::io;

/// `uretprobe` on x86-64. Others have no such call.
const URETPROBE: i64 = 335;

/// What the filter lets the call fail with. The kernel gives no such number.
const FILTERED: i32 = 4000;

/// What a child has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// The filter stopped the call.
    Filtered,
    /// There is no such call.
    NoSuchCall,
    /// The kernel took it, whatever it did then.
    Taken,
}

/// Makes the trial. Where that is not possible the answer is no.
pub fn may_replace_return_addresses() -> bool {
    if !cfg!(target_arch = "x86_64") {
        return true;
    }
    let Ok(filter) = Filter::failing(URETPROBE, FILTERED) else {
        return false;
    };
    judge(try_call(Some(&filter)), || try_call(None))
}

fn judge(with_filter: io::Result<Seen>, without: impl FnOnce() -> io::Result<Seen>) -> bool {
    match with_filter {
        Ok(Seen::Taken | Seen::NoSuchCall) => true,
        Ok(Seen::Filtered) => matches!(without(), Ok(Seen::NoSuchCall)),
        Err(_) => false,
    }
}

/// Makes the call in a child.
fn try_call(filter: Option<&Filter>) -> io::Result<Seen> {
    // SAFETY: locks of other threads may be held for ever in the child. It makes system calls
    // only: it allocates nothing, and takes no lock.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => child(filter),
        pid => seen(wait(pid)?),
    }
}

/// The exit codes of the child.
const TAKEN: i32 = 0;
const IS_FILTERED: i32 = 1;
const NO_SUCH_CALL: i32 = 2;
const NO_FILTER: i32 = 3;

fn child(filter: Option<&Filter>) -> ! {
    // SAFETY: system calls, and a handler that makes one. The kernel ends a process that makes
    // the call from elsewhere by SIGILL: handled, it is no crash that is logged or kept.
    let code = unsafe {
        let handler: extern "C" fn(i32) = end;
        libc::signal(libc::SIGILL, handler as libc::sighandler_t);
        match filter.map(Filter::apply) {
            Some(Err(_)) => NO_FILTER,
            Some(Ok(())) | None => {
                let error = match libc::syscall(URETPROBE) {
                    -1 => *libc::__errno_location(),
                    _ => 0,
                };
                match error {
                    FILTERED => IS_FILTERED,
                    libc::ENOSYS => NO_SUCH_CALL,
                    _ => TAKEN,
                }
            }
        }
    };
    // SAFETY: ends this process; what belongs to its parent is neither unwound nor flushed.
    unsafe { libc::_exit(code) }
}

extern "C" fn end(_signal: i32) {
    // SAFETY: ends this process.
    unsafe { libc::_exit(TAKEN) }
}

fn wait(pid: i32) -> io::Result<i32> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is ours.
        if unsafe { libc::waitpid(pid, &raw mut status, 0) } == pid {
            return Ok(status);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn seen(status: i32) -> io::Result<Seen> {
    if libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGILL {
        return Ok(Seen::Taken);
    }
    match libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)) {
        Some(TAKEN) => Ok(Seen::Taken),
        Some(IS_FILTERED) => Ok(Seen::Filtered),
        Some(NO_SUCH_CALL) => Ok(Seen::NoSuchCall),
        _ => Err(io::ErrorKind::Other.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_call_that_filters_stop_ends_processes() {
        let never = || -> io::Result<Seen> { panic!("not asked") };
        let failed = || Err(io::ErrorKind::Other.into());
        // Linux 6.14; before 6.11; between them.
        assert!(judge(Ok(Seen::Taken), never));
        assert!(judge(Ok(Seen::Filtered), || Ok(Seen::NoSuchCall)));
        assert!(!judge(Ok(Seen::Filtered), || Ok(Seen::Taken)));
        // A filter that we are under ourselves may stop it as well.
        assert!(!judge(Ok(Seen::Filtered), failed));
        assert!(!judge(failed(), never));
    }

    #[test]
    fn a_child_sees_what_its_filter_does() {
        // Any other call is stopped by a filter, and is taken without one.
        let filter = Filter::failing(URETPROBE, FILTERED).unwrap();
        let with = try_call(Some(&filter)).unwrap();
        let without = try_call(None).unwrap();
        assert_ne!(without, Seen::Filtered);
        // Where there is no such call, the filter is asked all the same.
        assert!(with == Seen::Filtered || without == Seen::Taken);
        assert_eq!(
            judge(Ok(with), || Ok(without)),
            may_replace_return_addresses()
        );
    }
}
