//! The event *wait*: a thread that had left its CPU joins one again. Every wait is
//! accounted by the kernel side, thread by thread; some give their stack, and are samples.
//!
//! | module | holds |
//! |---|---|
//! | `state` | what a thread can be doing, in words |
//! | `record` | a wait, and a thread's sums, as the kernel side tells them |
//! | `maps` | what the programs share with us |
//! | `asleep` | threads that waited already when we came |
//! | `owners` | who has the locks that those waited for |
//! | `pace` | how long a wait must be to give its stack for certain |

mod asleep;
mod maps;
mod owners;
mod pace;
mod record;
mod state;

pub use maps::WaitMaps;
pub use record::{EndedThread, RawWait, ThreadTotals, WaitCounters};
pub use state::WaitState;

pub use probe_ebpf::waits::{DELAY_SLOTS, delay_end_ns};

use crate::target::Target;
use crate::time::now_ns;
use owners::Owners;
use pace::Pace;
use symbolize::Files;

/// The program in `probe-ebpf/src/bpf/wait.rs` that takes stacks.
pub const STACK: &str = "wait_stack";

/// All of its programs, and the tracepoint of each. The one that asks for stacks comes
/// last.
pub const PROGRAMS: [(&str, &str); 4] = [
    (STACK, "irq_work_entry"),
    ("wait_ends", "sched_waking"),
    ("wait_begins", "sched_wakeup_new"),
    ("wait_switch", "sched_switch"),
];

/// The rings that are written to for their interrupts alone.
pub const NUDGES: [&str; 4] = ["NUDGES_0", "NUDGES_1", "NUDGES_2", "NUDGES_3"];

/// The waits of a run.
pub struct Waits {
    maps: WaitMaps,
    /// `None` until somebody takes what comes: before, stacks would fill the rings.
    pace: Option<Pace>,
    counters: WaitCounters,
    owners: Owners,
}

impl Waits {
    /// Takes over the programs, which run already, and tells them of the threads that wait
    /// since before. Memory of targets is read by `files`.
    pub fn start(mut maps: WaitMaps, target: &Target, files: &Files) -> Self {
        let mut owners = Owners::default();
        for (tid, thread, blocked) in asleep::threads(target, now_ns()) {
            // Else it has moved since, and is known.
            if maps.add(tid, &thread)
                && let Some(blocked) = blocked
            {
                owners.ask(blocked, files);
            }
        }
        Self {
            maps,
            pace: None,
            counters: WaitCounters::default(),
            owners,
        }
    }

    /// The sums of threads that have ended, and if `all` of those that live.
    pub fn take(&mut self, ended: &[EndedThread], all: bool) -> Vec<ThreadTotals> {
        let mut threads: Vec<_> = ended.iter().map(ThreadTotals::of_ended).collect();
        if all {
            self.maps.read_threads(&mut threads);
            for thread in &mut threads {
                // Still in the wait in which we met it.
                let is_first = thread.state_since_ns == thread.since_ns;
                if thread.owner.is_none() && thread.state == WaitState::Lock && is_first {
                    thread.owner = self.owners.of(thread.tid);
                }
            }
        }
        self.maps.empty_nudges();
        self.counters = self.maps.counters();
        let orders = match &mut self.pace {
            Some(pace) => pace.follow(self.counters.wanted(), now_ns()),
            None => Some(self.pace.insert(Pace::new(now_ns())).orders()),
        };
        if let Some(orders) = orders {
            // With the old ones there are more stacks, or fewer.
            _ = self.maps.set_orders(orders);
        }
        threads
    }

    /// What was counted of stacks by the last call of [`Waits::take`].
    pub fn counters(&self) -> WaitCounters {
        self.counters
    }
}
