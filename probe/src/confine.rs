//! *Confinement*: what a thread or process of ours can still do once it has begun its work.
//!
//! A capability, once given up, does not come back, and a system call, once refused, stays
//! refused. So each gives up at its beginning what its work does not need
//! (docs/security.md has the whole table).
//!
//! | module | holds |
//! |---|---|
//! | `capabilities` | giving up capabilities |
//! | `duty` | what threads of the process have to do, and what that takes |
//! | `calls` | lists of system calls, and the filters of the kernel made of them |
//! | `landlock` | no files at all |
//! | `limits` | memory and CPU time of a process |
//! | `seen` | what the kernel says of a confined process |

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
pub use duty::{Duty, process, thread};
pub use seen::Confined;

/// Reading files and memory of all processes, and nothing more.
const READING: CapabilitySet = CapabilitySet::DAC_READ_SEARCH
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::CHECKPOINT_RESTORE);

/// To make others into less than root.
const BECOMING_ANOTHER: CapabilitySet = CapabilitySet::SETUID.union(CapabilitySet::SETGID);

/// The user and group that own nothing.
const NOBODY: u32 = 65_534;

/// Of the process that forks readers: what they are to have, and what it takes to give
/// that to them. Programs that it started, which it does not, would get no more.
pub(crate) fn spawner() -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    capabilities::drop_ambient();
    capabilities::keep(READING | reading_before_5_9() | BECOMING_ANOTHER)
}

/// Of a process that reads files of targets, when it has taken on the user whom files are
/// to ask. Where one of the steps is not possible the others are there all the same.
pub(crate) fn reader(filter: Option<&Filter>) {
    _ = capabilities::keep(READING | reading_before_5_9());
    reader_of_user(filter);
}

/// Of a process that has become the invoking user, and reads that user's files.
pub(crate) fn reader_of_user(filter: Option<&Filter>) {
    if let Some(filter) = filter {
        _ = filter.apply();
    }
}

/// Of a process that unpacks what a stranger has packed: it has no capability, opens no
/// file, and has a bound of memory and of CPU time.
pub(crate) fn unpacker(filter: Option<&Filter>) {
    limits::of_unpacker();
    have_nothing(filter);
}

/// Gives up the rights of a parser, which understands what strangers have written in files that it
/// is given. It has the bounds of a process that unpacks, but for CPU time: who gives it files
/// watches that.
pub(crate) fn parser(filter: Option<&Filter>) {
    limits::of_parser();
    have_nothing(filter);
}

fn have_nothing(filter: Option<&Filter>) {
    end_on_faults();
    _ = capabilities::keep(CapabilitySet::empty());
    _ = landlock::deny_all();
    if let Some(filter) = filter {
        _ = filter.apply();
    }
}

/// Out of memory or of stack, the process ends. The handlers of Rust's runtime would set the
/// signal back, which the filter refuses, and return to the instruction that failed, for ever.
fn end_on_faults() {
    for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL] {
        // SAFETY: no handler is installed, one is taken away.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Makes the calling process the first to be ended where memory is short. To be called before
/// it becomes another user: from then on its files in /proc belong to root.
pub(crate) fn be_ended_first() {
    // Allowed to everybody: it only makes oneself more likely to be ended.
    _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

/// As root, takes on the files' rights of a user who owns nothing: with the capabilities of
/// a reader everything can be read then, and nothing of root's be written to. Without the
/// right to that it stays root.
pub(crate) fn own_nothing_if_root() {
    if rustix::process::geteuid().is_root() {
        _ = own_nothing();
    }
}

/// The kernel asks the effective user for everything that concerns files, and the real one
/// before others may send signals: that stays root. The kernel takes the capabilities that
/// count along with root's number; those that are allowed stay, and are taken up again by
/// [`capabilities::keep`].
fn own_nothing() -> io::Result<()> {
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(None, Gid::from_raw(NOBODY), None)?;
    rustix::thread::set_thread_res_uid(None, Uid::from_raw(NOBODY), None)?;
    Ok(())
}

/// What [`CapabilitySet::CHECKPOINT_RESTORE`] was split off from, where the kernel does not
/// know it yet: links to what is mapped are followed with it.
fn reading_before_5_9() -> CapabilitySet {
    if capabilities::kernel_knows(CapabilitySet::CHECKPOINT_RESTORE) {
        CapabilitySet::empty()
    } else {
        CapabilitySet::SYS_ADMIN
    }
}
