//! The *plumbing* of a wait: the functions between the waiting function and the scheduler, in the C
//! library, the runtime of a language and the kernel. They are folded, so that the innermost
//! function shown is the program's own function or the call that it made, such as
//! `pthread_cond_wait`:
//!
//! ```text
//! [waiting: lock]                  [waiting: lock]
//! schedule                 ┐
//! futex_wait               │
//! do_syscall_64            │ folded
//! __futex_abstimed_wait …  ┘
//! pthread_cond_wait                pthread_cond_wait
//! take_order                       take_order
//! ```
//!
//! They are shown by [`show:internals`](crate::filter::Clause::ShowInternals), like an
//! interpreter's internals.

use super::state::is_wait;
use crate::filter::Clause;
use crate::{Filter, FrameId, FrameKind, FunctionId, Metric, View};
use std::ops::Range;

/// The role of each function in waits.
#[derive(Debug)]
pub(super) struct Plumbing {
    /// Role of each function, by number.
    roles: Vec<Role>,
    /// Whether the stacks are of threads that end waits: all of them begin in functions that wake.
    is_of_wakers: bool,
}

/// The role of a function in waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A function of a program or a library.
    Other,
    /// The frame that says what the thread waits for.
    Wait,
    /// A function of the kernel that gives the CPU to another thread.
    Scheduler,
    /// A kernel function which shows that the whole call does nothing but wait.
    WaitCall,
    /// Another function of the kernel.
    Kernel,
    /// A library function that asks the kernel to wait or to wake.
    Library,
}

impl Plumbing {
    /// Assigns the roles; `None` if nothing is to be folded.
    pub(super) fn new(view: &View, filter: &Filter) -> Option<Self> {
        let metric = &view.info().metric;
        if !metric.is_waiting() || filter.clauses().contains(&Clause::ShowInternals) {
            return None;
        }
        let owners = view.tables.names.owners();
        let roles = (0..owners.len() as u32).map(|id| role(view, FrameId(id)));
        Some(Self {
            roles: roles.collect(),
            is_of_wakers: *metric == Metric::kept_waiting(),
        })
    }

    /// Returns which functions of a stack, given innermost first, are folded.
    pub(super) fn folded(&self, functions: impl Iterator<Item = FunctionId>) -> Range<usize> {
        let roles = functions.map(|id| self.roles[id.0 as usize]);
        folded(roles, self.is_of_wakers)
    }
}

fn role(view: &View, id: FunctionId) -> Role {
    let Some(frame) = view.frame(id).filter(|_| id.0 >= crate::intern::RESERVED) else {
        return Role::Other;
    };
    let name = view.tables.names.name(id);
    let name = name.map_or("", |name| name);
    match frame.kind {
        _ if is_wait(view, frame.module) => Role::Wait,
        FrameKind::Kernel => role_in_kernel(name),
        FrameKind::User if is_of_library(name) => Role::Library,
        _ => Role::Other,
    }
}

/// Computes [`Plumbing::folded`] from the roles of the functions. Nothing is folded if no function
/// would be left that the wait could be charged to.
fn folded(roles: impl Iterator<Item = Role>, is_of_wakers: bool) -> Range<usize> {
    let mut roles = roles.peekable();
    let mut count = |is: &dyn Fn(Role) -> bool| {
        let mut found = (0, false);
        while let Some(role) = roles.next_if(|role| is(*role)) {
            found = (found.0 + 1, found.1 || role == Role::WaitCall);
        }
        found
    };
    let (start, _) = count(&|role| role == Role::Wait);
    if start == 0 && !is_of_wakers {
        return 0..0;
    }
    let (scheduler, _) = count(&|role| role == Role::Scheduler);
    let is_kernel = |role| matches!(role, Role::Scheduler | Role::WaitCall | Role::Kernel);
    let (kernel, is_wait_call) = count(&is_kernel);
    let has_more_kernel = kernel > 0 && !is_wait_call && !is_of_wakers;
    if has_more_kernel {
        // The kernel functions say something about the wait: a file, a socket, a page. Only the
        // scheduler is folded.
        return start..start + scheduler;
    }
    let (library, _) = count(&|role| role == Role::Library);
    let end = start + scheduler + kernel + library;
    match roles.peek() {
        Some(_) => start..end,
        None => start..start,
    }
}

/// Returns the role of a kernel function.
fn role_in_kernel(name: &str) -> Role {
    const SCHEDULER: [&str; 6] = [
        "schedule",
        "io_schedule",
        "preempt_schedule",
        "finish_task_switch",
        "cond_resched",
        "wait_woken",
    ];
    /// Kernel functions that wait for a lock, for one of several files, for a timer, and those that
    /// leave the kernel when another thread is due.
    const CALLS: [&str; 14] = [
        "futex_",
        "do_futex",
        "ep_poll",
        "do_epoll_wait",
        "do_sys_poll",
        "do_poll",
        "do_select",
        "core_sys_select",
        "hrtimer_nanosleep",
        "do_nanosleep",
        "common_nsleep",
        "irqentry_exit",
        "exit_to_user_mode",
        "syscall_exit_to_user_mode",
    ];
    let name = name.trim_start_matches('_');
    let begins = |all: &[&str]| all.iter().any(|begin| name.starts_with(begin));
    match (begins(&SCHEDULER), begins(&CALLS)) {
        (true, _) => Role::Scheduler,
        (_, true) => Role::WaitCall,
        (false, false) => Role::Kernel,
    }
}

/// Whether a function is one with which a C library, Rust's library or Go's runtime asks the kernel
/// to wait or to wake. Such functions are not called in a program's source text.
fn is_of_library(name: &str) -> bool {
    const BEGINS: [&str; 6] = [
        "futex_",
        "lll_",
        "new_sem_wait_slow",
        "do_futex_wait",
        "syscall_c",
        "internal_syscall_cancel",
    ];
    const NAMES: [&str; 12] = [
        "pthread_cond_wait_common",
        "pthread_mutex_lock_full",
        "pthread_clockjoin_ex",
        "pthread_timedjoin_ex",
        "syscall",
        "runtime.futex",
        "runtime.futex.abi0",
        "runtime.futexsleep",
        "runtime.futexwakeup",
        "runtime.notesleep",
        "runtime.notewakeup",
        "runtime.notetsleep_internal",
    ];
    // The symbol's version comes after it.
    let whole = name.split('@').next().unwrap_or_default();
    let bare = whole.trim_start_matches('_');
    let bare = bare
        .strip_prefix("GI_")
        .unwrap_or(bare)
        .trim_start_matches('_');
    NAMES.contains(&bare)
        || BEGINS.iter().any(|begin| bare.starts_with(begin))
        || whole.starts_with("std::sys::") && whole.contains("::futex::futex_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(stack: &[&str], is_of_wakers: bool) -> Vec<String> {
        let role = |name: &str| match name {
            name if name.starts_with('[') => Role::Wait,
            name => match name.strip_prefix("k:") {
                Some(name) => role_in_kernel(name),
                None if is_of_library(name) => Role::Library,
                None => Role::Other,
            },
        };
        let gone = folded(stack.iter().map(|name| role(name)), is_of_wakers);
        let kept = stack
            .iter()
            .enumerate()
            .filter(|(at, _)| !gone.contains(at));
        kept.map(|(_, name)| name.to_string()).collect()
    }

    #[test]
    fn the_row_of_a_wait_is_the_call_that_a_program_made() {
        let lock = [
            "[waiting: lock]",
            "k:__schedule",
            "k:schedule",
            "k:futex_do_wait",
            "k:do_futex",
            "k:do_syscall_64",
            "__futex_abstimed_wait_common",
            "pthread_cond_wait@@GLIBC_2.3.2",
            "take_order",
        ];
        let kept = [lock[0], lock[7], lock[8]];
        assert_eq!(shown(&lock, false), kept);
        let join = [
            "[waiting: lock]",
            "k:schedule",
            "k:futex_wait",
            "__pthread_clockjoin_ex",
        ];
        // There is no function left to be charged.
        assert_eq!(shown(&join, false), join);
        let joined = [&join[..], &["std::sys::thread::Thread::join"]].concat();
        assert_eq!(shown(&joined, false), [joined[0], joined[4]]);
        let go = [
            "[waiting: lock]",
            "k:schedule",
            "k:do_futex",
            "runtime.futex",
            "runtime.lock2",
        ];
        assert_eq!(shown(&go, false), [go[0], go[4]]);
    }

    #[test]
    fn what_the_kernel_was_doing_stays_where_it_says_something() {
        let disk = [
            "[waiting: disk]",
            "k:schedule",
            "k:io_schedule",
            "k:folio_wait_bit",
            "read",
        ];
        assert_eq!(shown(&disk, false), [disk[0], disk[3], disk[4]]);
        let queue = [
            "[waiting: queue]",
            "k:schedule",
            "k:irqentry_exit",
            "k:asm_timer",
            "work",
        ];
        assert_eq!(shown(&queue, false), [queue[0], queue[4]]);
        // A thread that ran has no wait frame on top.
        let ran = ["k:futex_wake", "k:do_syscall_64", "lll_lock_wake", "work"];
        assert_eq!(shown(&ran, false), ran);
    }

    #[test]
    fn who_lets_others_wait_is_the_function_that_gave_the_lock_back() {
        let wake = [
            "k:try_to_wake_up",
            "k:wake_up_q",
            "k:futex_wake",
            "k:do_syscall_64",
            "__lll_lock_wake",
            "pthread_mutex_unlock",
            "flush_log",
        ];
        assert_eq!(shown(&wake, true), wake[5..]);
        let send = ["k:sock_def_readable", "k:tcp_sendmsg", "send", "answer"];
        assert_eq!(shown(&send, true), send[2..]);
        // A thread that was interrupted, with no function of the program below.
        let alone = ["k:try_to_wake_up", "k:hrtimer_wakeup"];
        assert_eq!(shown(&alone, true), alone);
    }

    #[test]
    fn functions_of_a_program_are_never_folded() {
        for name in [
            "my_futex_wait",
            "wait",
            "epoll_wait",
            "pthread_mutex_lock",
            "syscaller",
            "",
        ] {
            assert!(!is_of_library(name), "{name}");
        }
        for name in [
            "__futex_abstimed_wait_common64",
            "__lll_lock_wait_private",
            "__GI___lll_lock_wake",
            "__syscall_cancel_arch",
            "std::sys::pal::unix::futex::futex_wait",
        ] {
            assert!(is_of_library(name), "{name}");
        }
    }
}
