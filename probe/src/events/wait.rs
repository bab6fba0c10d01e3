//! The event *wait*: a thread that had left its CPU runs again. The kernel side sums up all waits
//! by thread; some give their stack, and are samples.
//!
//! | module | holds |
//! |---|---|
//! | `state` | the states of a thread, in words |
//! | `record` | a wait, and a thread's sums, as the kernel side reports them |
//! | `maps` | maps that are shared with the programs |
//! | `threads` | the followed threads, shared by both sides |
//! | `asleep` | threads that were already waiting at the start |
//! | `follows` | the interface to what follows waits: the programs or, without BPF, the switches |
//! | `owners` | the owners of locks for which those threads waited |
//! | `interrupts` | how to recognize that a CPU is in an interrupt |
//! | `iterator` | reads waits that are not over from the kernel side |
//! | `pace` | how long a wait must be to give its stack with certainty |

mod asleep;
mod follows;
mod interrupts;
mod iterator;
mod maps;
mod owners;
mod pace;
mod record;
mod state;
mod threads;

pub use asleep::{blocked_in, state_in, threads as asleep_threads};
pub use follows::Follows;
pub use interrupts::places as interrupt_places;
pub use iterator::OpenWait;
pub use maps::WaitMaps;
pub use owners::{Blocked, owner_of};
pub use pace::Pace;
pub use record::{EndedThread, RawWait, ThreadTotals, WaitCounters, Waker};
pub use state::WaitState;
pub use threads::Threads;

pub use probe_ebpf::waits::{DELAY_SLOTS, delay_end_ns};

use crate::target::Target;
use crate::time::now_ns;
use owners::Owners;
use probe_ebpf::waits::Orders;
use symbolize::Files;

/// The program in `probe-ebpf/src/bpf/wait.rs` that takes stacks.
pub const STACK: &str = "wait_stack";

/// The program in the same file that sees waits end, and takes stacks of the threads that end them.
pub const ENDS: &str = "wait_ends";

/// The tracepoint of [`ENDS`].
pub const ENDS_AT: &str = "sched_waking";

/// The program in `probe-ebpf/src/bpf/open_wait.rs`.
pub const OPEN: &str = "wait_open";

/// All programs that follow switches, and the tracepoint of each. The program that requests stacks
/// comes last.
pub const PROGRAMS: [(&str, &str); 4] = [
    (STACK, "irq_work_entry"),
    (ENDS, ENDS_AT),
    ("wait_begins", "sched_wakeup_new"),
    ("wait_switch", "sched_switch"),
];

/// The rings that are written to only to cause interrupts.
pub const NUDGES: [&str; 4] = ["NUDGES_0", "NUDGES_1", "NUDGES_2", "NUDGES_3"];

/// The waits of a run.
pub struct Waits {
    maps: WaitMaps,
    /// `None` until samples are read: before that, stacks would fill the rings.
    pace: Option<Pace>,
    /// The last orders to the kernel side.
    orders: Orders,
    counters: WaitCounters,
    owners: Owners,
}

impl Waits {
    /// Takes over the programs, which are already running, and adds the threads that have been
    /// waiting since before. Memory of targets is read through `files`.
    pub fn start(mut maps: WaitMaps, target: &Target, files: &Files) -> Self {
        // If this fails, it is unknown for all waits which thread ended them.
        _ = maps.set_places();
        let mut owners = Owners::default();
        for (tid, thread, blocked) in asleep::threads(target, now_ns()) {
            // Otherwise the thread has run since, and is already known.
            if maps.threads.add(tid, &thread)
                && let Some(blocked) = blocked
            {
                owners.ask(blocked, files);
            }
        }
        Self {
            maps,
            pace: None,
            orders: Orders::default(),
            counters: WaitCounters::default(),
            owners,
        }
    }

    /// Adjusts how many stacks are taken.
    fn follow_pace(&mut self) {
        let orders = match &mut self.pace {
            Some(pace) => pace.follow(self.counters, now_ns()),
            None => {
                let pace = Pace::new(self.counters, now_ns());
                Some(self.pace.insert(pace).orders())
            }
        };
        if let Some(Orders {
            period_ns,
            stacks_per_second,
            ..
        }) = orders
        {
            self.orders.period_ns = period_ns;
            self.orders.stacks_per_second = stacks_per_second;
            // With the old orders there are more stacks than intended, or fewer.
            _ = self.maps.set_orders(self.orders);
        }
    }
}

impl Follows for Waits {
    fn take(&mut self, ended: &[EndedThread], all: bool) -> Vec<ThreadTotals> {
        let mut threads: Vec<_> = ended.iter().map(ThreadTotals::of_ended).collect();
        if all {
            threads.extend(self.threads());
        }
        self.maps.empty_nudges();
        self.counters = self.maps.counters();
        self.follow_pace();
        threads
    }

    fn threads(&mut self) -> Vec<ThreadTotals> {
        let mut threads = Vec::new();
        self.maps.threads.read(&mut threads);
        for thread in &mut threads {
            // Whether it is still in the wait in which it was first seen.
            let is_first = thread.state_since_ns == thread.since_ns;
            if thread.owner.is_none() && thread.state == WaitState::Lock && is_first {
                thread.owner = self.owners.of(thread.tid);
            }
        }
        threads
    }

    fn counters(&self) -> WaitCounters {
        self.counters
    }

    fn open(&mut self, from_ns: u64, to_ns: u64) -> Vec<OpenWait> {
        (self.orders.open_from_ns, self.orders.open_to_ns) = (from_ns, to_ns);
        if self.maps.set_orders(self.orders).is_err() {
            return Vec::new();
        }
        let told = self.maps.open.as_ref().map(iterator::read);
        told.and_then(Result::ok).unwrap_or_default()
    }
}
