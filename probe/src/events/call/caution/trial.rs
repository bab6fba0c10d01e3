//! Whether a filter of system calls (seccomp) kills a process whose return address was replaced.
//!
//! Since Linux 6.11 the code at the replaced address makes a system call of its own, `uretprobe`. A
//! filter that allows only known calls kills the process there, or makes the call fail, which kills
//! it as well. Since 6.14, and in later versions of 6.12 and 6.13, filters do not see that call.
//! Distributions change their kernels, so the version is not reliable: a child with a filter makes
//! the call.
//!
//! ```text
//! the child is ended by SIGILL      the kernel took the call, and saw that it is not its own
//!                                   code that made it: filters are not asked
//! the filter's error number         filters are asked; without one the same call says
//!                                   whether there is such a call at all
//! ```

use crate::confine::Filter;
use std::io;

/// Number of `uretprobe` on x86-64. Other machines have no such call.
const URETPROBE: i64 = 335;

/// The error with which the filter makes the call fail. The kernel does not use this number.
const FILTERED: i32 = 4000;

/// The result of the call in a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// The filter stopped the call.
    Filtered,
    /// There is no such call.
    NoSuchCall,
    /// The kernel handled it, whatever it did then.
    Taken,
}

/// Makes the trial. If that is not possible, the result is false.
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
    // SAFETY: locks of other threads may be held for ever in the child. It makes system calls only:
    // it allocates nothing, and takes no lock.
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
        // A filter that applies to this process may block it as well.
        assert!(!judge(Ok(Seen::Filtered), failed));
        assert!(!judge(failed(), never));
    }

    #[test]
    fn a_child_sees_what_its_filter_does() {
        // Any other call is blocked by a filter, and is handled without one.
        let filter = Filter::failing(URETPROBE, FILTERED).unwrap();
        let with = try_call(Some(&filter)).unwrap();
        let without = try_call(None).unwrap();
        assert_ne!(without, Seen::Filtered);
        // If there is no such call, the filter sees it all the same.
        assert!(with == Seen::Filtered || without == Seen::Taken);
        assert_eq!(
            judge(Ok(with), || Ok(without)),
            may_replace_return_addresses()
        );
    }
}
