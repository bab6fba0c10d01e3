//! A list of states in a filter: `state:lock,disk`.

use crate::wait::STATES;
use std::fmt;

/// A set of thread states that a filter selects: on a CPU, or waiting for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct States {
    /// One bit for each index in [`STATES`].
    bits: u16,
    idle: bool,
    join: bool,
}

/// The word for waiting for work. It is not a state of its own: see [`is_idle_call`].
const IDLE: &str = "idle";

/// The word for waiting for the end of a thread. Such waits are a part of `lock`: see
/// [`is_join_call`].
const JOIN: &str = "join";

impl States {
    /// Waits for work, recognized by the functions that programs call for it.
    pub const IDLE: States = States {
        bits: 0,
        idle: true,
        join: false,
    };

    /// Reads words separated by commas; an error is one sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut states = Self::default();
        for word in text.split(',') {
            match STATES.iter().position(|state| *state == word) {
                Some(number) => states.bits |= 1 << number,
                None if word == IDLE => states.idle = true,
                None if word == JOIN => states.join = true,
                None => {
                    let words = STATES.join(", ");
                    return Err(format!(
                        "no state `{word}`; there are {words}, {IDLE}, {JOIN}"
                    ));
                }
            }
        }
        Ok(states)
    }

    /// Whether the state at this index in [`STATES`] is in the set.
    pub fn contains(self, state: usize) -> bool {
        state < STATES.len() && self.bits & 1 << state != 0
    }

    /// Whether waits for work are in the set.
    pub fn has_idle(self) -> bool {
        self.idle
    }

    /// Whether the word `join` was given: waits for the end of a thread are then in the set, even
    /// if `lock` is not.
    pub fn has_join(self) -> bool {
        self.join
    }
}

impl fmt::Display for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = STATES
            .iter()
            .enumerate()
            .filter(|(number, _)| self.contains(*number))
            .map(|(_, word)| *word)
            .chain(self.idle.then_some(IDLE));
        let all: Vec<&str> = words.chain(self.join.then_some(JOIN)).collect();
        f.write_str(&all.join(","))
    }
}

/// Whether a function waits for work: for any of several files, for a client, for a condition. A
/// wait with such a function on its stack is taken to be *idle by design*. The guess can be wrong:
/// the same calls also wait for an answer.
pub fn is_idle_call(name: &str) -> bool {
    /// Functions of C libraries and of the kernel, without leading underscores.
    const CALLS: [&str; 34] = [
        "epoll_wait",
        "epoll_pwait",
        "epoll_pwait2",
        "do_epoll_wait",
        "ep_poll",
        "poll",
        "ppoll",
        "do_sys_poll",
        "select",
        "pselect",
        "pselect64",
        "do_select",
        "accept",
        "accept4",
        "do_accept",
        "inet_csk_accept",
        "unix_accept",
        "pthread_cond_wait",
        "pthread_cond_timedwait",
        "pthread_cond_clockwait",
        "pthread_cond_wait_common",
        "pthread_cond_timedwait64",
        "pthread_cond_clockwait64",
        // Threads of Go that have no goroutine to run, that monitor the others, or that wait for a
        // signal. Locks of Go's runtime have a function of their own (`runtime.lock2`).
        "runtime.findRunnable",
        "runtime.findrunnable",
        "runtime.stopm",
        "runtime.stoplockedm",
        "runtime.mPark",
        "runtime.notesleep",
        "runtime.notetsleepg",
        "runtime.sysmon",
        "runtime.templateThread",
        "runtime.netpoll",
        "os/signal.signal_recv",
    ];
    /// Parts of function names in Rust's standard library.
    const PARTS: [&str; 2] = ["::condvar::", "std::thread::park"];
    let (name, bare) = without_marks(name);
    CALLS.contains(&bare) || PARTS.iter().any(|part| name.contains(part))
}

/// Whether a function waits for the end of a thread. To the kernel that is a lock like any other.
pub fn is_join_call(name: &str) -> bool {
    /// Functions of C libraries, without leading underscores.
    const CALLS: [&str; 6] = [
        "pthread_join",
        "pthread_timedjoin_np",
        "pthread_clockjoin_np",
        "pthread_clockjoin_ex",
        "pthread_timedjoin_ex",
        "thrd_join",
    ];
    /// Parts of names in the standard libraries of C++ and Rust.
    const PARTS: [&str; 3] = [
        "std::thread::join",
        "::thread::Thread::join",
        "std::thread::Join",
    ];
    let (name, bare) = without_marks(name);
    CALLS.contains(&bare) || PARTS.iter().any(|part| name.contains(part))
}

/// Returns a name without its symbol version, and without the prefix that C libraries give to
/// internal names.
fn without_marks(name: &str) -> (&str, &str) {
    let name = name.split('@').next().unwrap_or_default();
    let bare = name.trim_start_matches('_');
    let bare = bare.strip_prefix("GI_").unwrap_or(bare);
    (name, bare.trim_start_matches('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_written() {
        for text in ["lock", "run,disk", "idle", "join", "net,other,idle,join"] {
            assert_eq!(States::parse(text).unwrap().to_string(), text);
        }
        let lock = States::parse("lock").unwrap();
        assert!(lock.contains(2) && !lock.contains(1) && !lock.contains(99));
        let error = States::parse("lock,lick").unwrap_err();
        assert!(error.starts_with("no state `lick`; there are run, queue"));
        assert!(States::parse("").is_err());
    }

    #[test]
    fn calls_that_wait_for_the_end_of_a_thread_are_known() {
        for name in [
            "pthread_join@@GLIBC_2.34",
            "__pthread_clockjoin_ex",
            "std::thread::join()",
            "std::sys::pal::unix::thread::Thread::join",
            "std::thread::JoinHandle<T>::join",
        ] {
            assert!(is_join_call(name), "{name}");
            assert!(!is_idle_call(name), "{name}");
        }
        for name in ["join", "join_path", "pthread_cond_wait", "str::join", ""] {
            assert!(!is_join_call(name), "{name}");
        }
    }

    #[test]
    fn calls_that_wait_for_work_are_known() {
        for name in [
            "epoll_wait",
            "__GI_epoll_wait",
            "__GI___poll",
            "___pthread_cond_wait",
            "pthread_cond_wait@@GLIBC_2.3.2",
            "std::sys::sync::condvar::futex::Condvar::wait",
            "runtime.findRunnable",
            "runtime.mPark",
            "runtime.notesleep",
            "runtime.sysmon",
            "inet_csk_accept",
        ] {
            assert!(is_idle_call(name), "{name}");
        }
        for name in [
            "read",
            "my_poll",
            "pthread_mutex_lock",
            "accept_order",
            // A lock of Go's runtime, and the end of a thread.
            "runtime.lock2",
            "runtime.futexsleep",
            "pthread_join",
            "",
        ] {
            assert!(!is_idle_call(name), "{name}");
        }
    }
}
