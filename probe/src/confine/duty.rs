//! The tasks of threads, and the capabilities that they need.

use super::{BECOMING_ANOTHER, Filter, READING, capabilities, reading_before_5_9};
use crate::privilege::{Rights, UserRights};
use rustix::thread::CapabilitySet;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The task of a thread. The order has no meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// Loading BPF programs, opening perf events, and attaching them to functions later on.
    Sampling,
    /// Querying the kernel for programs, functions and code, and starting threads that sample.
    AskingKernel,
    /// Storing samples, and starting the threads below.
    Keeping,
    /// Having debug files fetched by a program of the user.
    Fetching,
    /// The screen, or reports: starting the editor, writing files, ending commands.
    Showing,
    /// Having a process without rights read recordings, and writing what it makes of them.
    Relaying,
    /// Reading process data in /proc, and structures that readers have read from memory. Like
    /// parsing, it starts no program and communicates with no other process.
    Looking,
    /// Parsing untrusted data: symbols, debug information, unwind tables. Starts no program, and
    /// communicates with no other process.
    Parsing,
    /// Nothing that needs a right.
    Waiting,
}

/// Whether reader processes open the files of targets, so that no thread has to.
static HAS_READERS: AtomicBool = AtomicBool::new(false);

/// Records that there are readers. Must be called before threads are confined.
pub(crate) fn has_readers() {
    HAS_READERS.store(true, Ordering::Relaxed);
}

/// Limits the process to the rights that at least one of its threads will need. Must be called at
/// the start, before there are working threads.
///
/// Started programs are not confined: root's programs get all capabilities again, as always when
/// root starts a program, and an editor can start `sudo`. But for the kernel they gain rights by
/// that: such a program writes no core file, and the side band reports its exec as the end of a
/// process (`begin_new_exec` in Linux's `fs/exec.c`). So a command that is sampled has to be forked
/// before.
pub fn process() {
    keep_for(&OF_SAMPLING);
}

/// Limits the process to the rights of a command that has recordings read by a process without rights.
/// `records` says whether it may have to record a process as well.
pub fn process_that_relays(records: bool) {
    let sampling: &[Duty] = if records { &OF_SAMPLING } else { &[] };
    keep_for(&[sampling, &[Duty::Relaying]].concat());
}

/// The tasks of the threads of a process that samples.
const OF_SAMPLING: [Duty; 5] = [
    Duty::Sampling,
    Duty::AskingKernel,
    Duty::Keeping,
    Duty::Fetching,
    Duty::Showing,
];

fn keep_for(duties: &[Duty]) {
    // Starts programs to find out who the user is.
    UserRights::current();
    // Read and cached now: messages should show the rights with which proftop was started.
    _ = Rights::current();
    let all = duties.iter().copied().map(capabilities_for);
    // If the kernel refuses this, there are no capabilities to give up.
    _ = capabilities::keep(all.collect());
}

/// Gives up for good what is not needed by a command that shows what others may have written, and
/// takes no samples: it becomes the invoking user, without capabilities. As root without an invoking
/// user it stays root, and keeps the right to read and write files wherever they are. Must be called
/// while there is one thread. Returns whether it is the invoking user, or some user who is not root.
pub fn process_of_user() -> io::Result<bool> {
    let is_user = UserRights::current().become_user()? || !rustix::process::geteuid().is_root();
    if !is_user {
        // If the kernel refuses this, there are no capabilities to give up.
        _ = capabilities::keep(CapabilitySet::DAC_OVERRIDE);
        return Ok(false);
    }
    _ = capabilities::keep(CapabilitySet::empty());
    Ok(true)
}

/// Limits the calling thread to the rights that its task needs. Threads that it starts inherit
/// them.
pub fn thread(duty: Duty) {
    // The thread of the screen starts the user's editor; other threads start no program of the
    // user.
    if duty != Duty::Showing {
        capabilities::drop_ambient();
    }
    _ = capabilities::keep(capabilities_for(duty));
    // Without readers, threads that look at processes read their memory themselves, which the filter
    // forbids.
    let has_readers = || HAS_READERS.load(Ordering::Relaxed);
    if duty == Duty::Parsing || duty == Duty::Looking && has_readers() {
        start_nothing();
    }
}

/// Keeps the calling thread and those that it starts from starting programs and from reaching other
/// processes, networks and what only root may reach.
pub fn start_nothing() {
    if let Some(filter) = filter_of_parsers() {
        _ = filter.apply();
    }
}

fn capabilities_for(duty: Duty) -> CapabilitySet {
    type Set = CapabilitySet;
    let opening = if HAS_READERS.load(Ordering::Relaxed) {
        Set::empty()
    } else {
        READING | reading_before_5_9()
    };
    // Files of the user are opened by threads that become the user, root's caches by root.
    let (as_user, as_root) = match UserRights::current().user() {
        Some(_) => (BECOMING_ANOTHER, Set::empty()),
        None => (Set::empty(), Set::DAC_OVERRIDE),
    };
    // With hidepid, even names of processes need the right to trace them.
    let looking = Set::DAC_READ_SEARCH | Set::SYS_PTRACE | Set::SYSLOG | opening;
    match duty {
        // Rings need locked memory beyond the limit. Debian's kernels require CAP_SYS_ADMIN if
        // `perf_event_paranoid` is 3.
        Duty::Sampling => {
            let kernel = Set::BPF | Set::PERFMON | Set::SYS_ADMIN;
            kernel | Set::IPC_LOCK | Set::SYS_RESOURCE | looking
        }
        // Opening programs by id needs CAP_SYS_ADMIN, and /proc/kcore CAP_SYS_RAWIO.
        Duty::AskingKernel => capabilities_for(Duty::Sampling) | Set::SYS_RAWIO,
        Duty::Keeping => looking | capabilities_for(Duty::Fetching),
        // It lowers the priority of the user's program, and kills it when it takes too long.
        Duty::Fetching => as_user | Set::KILL | Set::SYS_NICE,
        // It raises the priority of its own threads when it ends (`crate::haste`).
        Duty::Showing => looking | as_user | as_root | Set::KILL | Set::SYS_NICE,
        // Root's child becomes a user who owns nothing.
        Duty::Relaying => BECOMING_ANOTHER | as_root | Set::DAC_READ_SEARCH | Set::SYSLOG,
        Duty::Looking => looking,
        Duty::Parsing => opening | as_user | Set::SYSLOG,
        Duty::Waiting => Set::empty(),
    }
}

/// Created once; `None` if that fails.
fn filter_of_parsers() -> Option<&'static Filter> {
    static FILTER: OnceLock<Option<Filter>> = OnceLock::new();
    FILTER.get_or_init(|| Filter::of_parser().ok()).as_ref()
}
