//! What the threads of the process have to do, and which capabilities that takes.

use super::{BECOMING_ANOTHER, Filter, READING, capabilities, reading_before_5_9};
use crate::privilege::{Rights, UserRights};
use rustix::thread::CapabilitySet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a thread does from now on. The order is of no meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// Loading BPF programs, opening perf events, and attaching them to functions later on.
    Sampling,
    /// Asking the kernel for its programs, functions and code, and starting threads that
    /// sample.
    AskingKernel,
    /// Keeping samples, and starting the threads below.
    Keeping,
    /// Having debug files fetched by a program of the user.
    Fetching,
    /// The screen, or reports: starting the editor, writing files, ending commands.
    Showing,
    /// Looking at what /proc tells of processes.
    Looking,
    /// Reading what strangers have written: symbols, debug information, unwind tables. It
    /// starts no program, and speaks to no other process.
    Parsing,
    /// Nothing that takes a right.
    Waiting,
}

/// Whether processes of ours open files of targets, so that no thread has to.
static HAS_READERS: AtomicBool = AtomicBool::new(false);

/// Says that there are readers. To be called before threads are confined.
pub(crate) fn has_readers() {
    HAS_READERS.store(true, Ordering::Relaxed);
}

/// Keeps of the process what one of its threads will need. To be called at the beginning,
/// while there is no thread that works.
///
/// Programs that are started are not confined: root's get all capabilities again, as ever
/// when root starts a program, and so does an editor that starts `sudo`. But to the kernel
/// they gain rights then: such a program leaves no core file, and the side band tells
/// its exec as the end of a process (`begin_new_exec` in Linux's `fs/exec.c`). So a command
/// that is sampled has to be forked before.
pub fn process() {
    // It starts programs to find out who the user is.
    UserRights::current();
    // Read now and remembered: messages tell the user the rights that proftop was started with.
    _ = Rights::current();
    const EACH: [Duty; 5] = [
        Duty::Sampling,
        Duty::AskingKernel,
        Duty::Keeping,
        Duty::Fetching,
        Duty::Showing,
    ];
    let all = EACH.into_iter().map(capabilities_for);
    // If the kernel refuses that, there are no capabilities to give up.
    _ = capabilities::keep(all.collect());
}

/// Keeps of the calling thread what its duty takes. Threads that it starts have no more.
pub fn thread(duty: Duty) {
    // The thread of the screen starts the user's editor, and others no program of the user's.
    if duty != Duty::Showing {
        capabilities::drop_ambient();
    }
    _ = capabilities::keep(capabilities_for(duty));
    if duty == Duty::Parsing
        && let Some(filter) = filter_of_parsers()
    {
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
    // Files of the user are opened by threads that become the user, caches of root by root.
    let (as_user, as_root) = match UserRights::current().user() {
        Some(_) => (BECOMING_ANOTHER, Set::empty()),
        None => (Set::empty(), Set::DAC_OVERRIDE),
    };
    // With hidden processes even their names take the right to trace them.
    let looking = Set::DAC_READ_SEARCH | Set::SYS_PTRACE | Set::SYSLOG | opening;
    match duty {
        // Locked memory beyond the limit is that of rings. Debian's kernels ask for
        // CAP_SYS_ADMIN where `perf_event_paranoid` is 3.
        Duty::Sampling => {
            let kernel = Set::BPF | Set::PERFMON | Set::SYS_ADMIN;
            kernel | Set::IPC_LOCK | Set::SYS_RESOURCE | looking
        }
        // Programs by their numbers take CAP_SYS_ADMIN, and /proc/kcore CAP_SYS_RAWIO.
        Duty::AskingKernel => capabilities_for(Duty::Sampling) | Set::SYS_RAWIO,
        Duty::Keeping => looking | capabilities_for(Duty::Fetching),
        // The user's program is made slower, and ended when it takes too long.
        Duty::Fetching => as_user | Set::KILL | Set::SYS_NICE,
        Duty::Showing => looking | as_user | as_root | Set::KILL,
        Duty::Looking => looking,
        Duty::Parsing => opening | as_user | Set::SYSLOG,
        Duty::Waiting => Set::empty(),
    }
}

/// Made once; `None` if it cannot be.
fn filter_of_parsers() -> Option<&'static Filter> {
    static FILTER: OnceLock<Option<Filter>> = OnceLock::new();
    FILTER.get_or_init(|| Filter::of_parser().ok()).as_ref()
}
