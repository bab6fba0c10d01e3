//! Loads a program in spite of signals.
//!
//! The kernel stops verifying a program, with `EAGAIN`, as soon as its thread has a signal to
//! handle (`do_check` in kernel/bpf/verifier.c). A change of the terminal's size while proftop
//! starts is such a signal. This says nothing about the program, which is loaded again.

use std::io;
use std::thread::sleep;
use std::time::Duration;

/// Maximum number of attempts to load a program. libbpf makes five.
pub const ATTEMPTS: u32 = 20;

/// Pause between two attempts, so that a series of signals can end: this one first, each next one
/// twice as long, and at most [`LONGEST_PAUSE`]. In total that is less than a second.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Calls `load` again as long as a signal interrupts it, at most [`ATTEMPTS`] times, and returns
/// the result of the last call. `cause` returns the kernel's error that an error of `load`
/// contains; `None` if it contains none.
pub fn again<T, E>(
    mut load: impl FnMut() -> Result<T, E>,
    cause: impl Fn(&E) -> Option<&io::Error>,
) -> Result<T, E> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..ATTEMPTS {
        let result = load();
        let was_interrupted = result
            .as_ref()
            .err()
            .and_then(&cause)
            .is_some_and(|error| error.raw_os_error() == Some(libc::EAGAIN));
        if !was_interrupted {
            return result;
        }
        sleep(pause);
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
    load()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(interruptions: u32, then: io::Result<u32>) -> (io::Result<u32>, u32) {
        let mut calls = 0;
        let mut then = Some(then);
        let load = || {
            calls += 1;
            if calls > interruptions {
                then.take().unwrap()
            } else {
                Err(io::Error::from_raw_os_error(libc::EAGAIN))
            }
        };
        let result = again(load, |error| Some(error));
        (result, calls)
    }

    #[test]
    fn what_a_signal_interrupted_is_loaded_again() {
        assert_eq!(after(0, Ok(7)).1, 1);
        let (result, calls) = after(3, Ok(7));
        assert_eq!((result.unwrap(), calls), (7, 4));
    }

    #[test]
    fn a_refusal_is_told_at_once_and_signals_without_end_end() {
        let refused = io::Error::from_raw_os_error(libc::EINVAL);
        let (result, calls) = after(1, Err(refused));
        assert_eq!(result.unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert_eq!(calls, 2);
        let (result, calls) = after(u32::MAX, Ok(7));
        assert_eq!(result.unwrap_err().raw_os_error(), Some(libc::EAGAIN));
        assert_eq!(calls, ATTEMPTS);
    }
}
