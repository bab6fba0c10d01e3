//! *Confinement*: restricts what our threads and processes can do after their start.
//!
//! A capability that was given up does not come back, and a system call that was forbidden stays
//! forbidden. So each thread and process gives up at its start what it does not need
//! (docs/security.md has the whole table).
//!
//! | module | holds |
//! |---|---|
//! | `capabilities` | giving up capabilities |
//! | `duty` | the tasks of threads, and the rights that they need |
//! | `calls` | lists of allowed system calls, and the seccomp filters made of them |
//! | `landlock` | forbids all access to files by path |
//! | `limits` | memory and CPU time of a process |
//! | `seen` | the kernel's view of a confined process |

mod calls;
mod capabilities;
mod duty;
mod landlock;
mod limits;
mod seen;

use rustix::process::{Gid, Uid};
use rustix::thread::CapabilitySet;
use std::io;

pub(crate) use calls::Filter;
pub(crate) use duty::has_readers;
pub use duty::{Duty, process, process_of_user, process_that_relays, start_nothing, thread};
pub use limits::RECORDING_BYTES;
pub use seen::Confined;

/// Rights for reading files and memory of all processes, and nothing more.
const READING: CapabilitySet = CapabilitySet::DAC_READ_SEARCH
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::CHECKPOINT_RESTORE);

/// Rights for turning child processes into other users.
const BECOMING_ANOTHER: CapabilitySet = CapabilitySet::SETUID.union(CapabilitySet::SETGID);

/// The user and group that own nothing (nobody).
const NOBODY: u32 = 65_534;

/// Confines the process that forks readers: it keeps the rights that readers need, and those for
/// giving them away. It starts no programs; such programs would get no more rights.
pub(crate) fn spawner() -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    capabilities::drop_ambient();
    capabilities::keep(READING | reading_before_5_9() | BECOMING_ANOTHER)
}

/// Confines a process that reads files of targets, after it has changed its effective user. If
/// one of the steps is not possible, the others are done all the same.
pub(crate) fn reader(filter: Option<&Filter>) {
    _ = capabilities::keep(READING | reading_before_5_9());
    reader_of_user(filter);
}

/// Confines a process that has become the invoking user, and reads that user's files.
pub(crate) fn reader_of_user(filter: Option<&Filter>) {
    if let Some(filter) = filter {
        _ = filter.apply();
    }
}

/// Confines a process that unpacks untrusted data: it has no capability, opens no file, and its
/// memory and CPU time are limited.
pub(crate) fn unpacker(filter: Option<&Filter>) {
    limits::of_unpacker();
    have_nothing(filter);
}

/// Confines a parser, which parses untrusted files that are passed to it. It has the limits of a
/// process that unpacks, except for CPU time, which the sender of the files monitors.
pub(crate) fn parser(filter: Option<&Filter>) {
    limits::of_parser();
    have_nothing(filter);
}

/// Confines a parser that finds the code of functions for a user who wants to see it: it may take
/// more memory, for the debug information of large programs.
pub(crate) fn code_finder(filter: Option<&Filter>) {
    limits::of_code_finder();
    have_nothing(filter);
}

/// Confines a parser that reads one recording: it has the rights of a process that does a command on
/// recordings. Its CPU time is monitored as that of other parsers.
pub(crate) fn recording_reader() {
    limits::of_recording_reader();
    have_nothing(Filter::of_command().ok().as_ref());
}

/// Confines a process that does one command on untrusted bytes, such as a recording: it has the
/// limits of such a command.
pub(crate) fn command() {
    limits::of_command();
    have_nothing(Filter::of_command().ok().as_ref());
}

fn have_nothing(filter: Option<&Filter>) {
    end_on_faults();
    _ = capabilities::keep(CapabilitySet::empty());
    _ = landlock::deny_all();
    if let Some(filter) = filter {
        _ = filter.apply();
    }
}

/// Makes the process end when it runs out of memory or stack. The handlers of Rust's runtime would
/// reset the signal, which the filter forbids, and return to the failing instruction, for ever.
fn end_on_faults() {
    for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL] {
        // SAFETY: no handler is installed, one is taken away.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Makes the calling process the first to be killed when memory is short. Must be called before it
/// becomes another user, because its files in /proc belong to root then.
pub(crate) fn be_ended_first() {
    // Any process may do this, because it only makes itself more likely to be killed.
    _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

/// As root, takes on the file access rights of a user who owns nothing: with the capabilities of a
/// reader it can still read everything, but write to nothing that belongs to root. Without the
/// right to do that it stays root.
pub(crate) fn own_nothing_if_root() {
    if rustix::process::geteuid().is_root() {
        _ = own_nothing();
    }
}

/// Sets only the effective user and group, which includes those for file access. The kernel checks
/// these for access to files, and the real user for signals, which stays root. Changing from root
/// drops the effective capabilities; the permitted ones stay, and [`capabilities::keep`] makes them
/// effective again.
fn own_nothing() -> io::Result<()> {
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(None, Gid::from_raw(NOBODY), None)?;
    rustix::thread::set_thread_res_uid(None, Uid::from_raw(NOBODY), None)?;
    Ok(())
}

/// The capability from which [`CapabilitySet::CHECKPOINT_RESTORE`] was split off, for kernels that
/// do not have it yet: it is needed to follow links to mapped files.
fn reading_before_5_9() -> CapabilitySet {
    if capabilities::kernel_knows(CapabilitySet::CHECKPOINT_RESTORE) {
        CapabilitySet::empty()
    } else {
        CapabilitySet::SYS_ADMIN
    }
}
