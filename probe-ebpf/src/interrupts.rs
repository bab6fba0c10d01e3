//! Where the kernel keeps whether a CPU is in an interrupt, and of what kind.
//!
//! The kernel keeps this in variables that each CPU has for itself. Their addresses are secret
//! to most users and missing in the symbols of some kernels. But the distance from one such
//! variable to the next is in the kernel's types (BTF), and each task knows the run queue of its
//! CPU, which is one of them:
//!
//! ```text
//!  current task ─► se.cfs_rq ─► rq = this CPU's `runqueues`
//!                                     ├─ distance ─► `__preempt_count`: in an interrupt?
//!                                     ├─ distance ─► `hrtimer_bases`, `timer_bases`: of a timer?
//!                                     └─ distance ─► `hardirq_stack_ptr`: called by whom?
//! ```

/// Where the kernel keeps what a CPU is doing. *Distances* are added to the address of the CPU's
/// run queue, and wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct CpuPlaces {
    /// Offset of `se.cfs_rq` in `task_struct`; 0 if none of these places is known.
    pub task_queue: u64,
    /// Offset of `rq` in `cfs_rq`.
    pub run_queue: u64,
    /// Distance of the pointer to the current task, by which the run queue is checked.
    pub current_task: u64,
    /// Distance of the preemption count, an `int`.
    pub preempt_count: u64,
    /// The bits of that count that say how many interrupts are being handled.
    pub in_interrupt: u64,
    /// Distance of the pointer to the top of the stack for interrupts.
    pub stack: u64,
    /// Distance of the byte that says whether that stack is used.
    pub stack_used: u64,
    /// Distance of the pointer to the running timer of the first clock; 0 if it is not known. The
    /// timers of the first [`CLOCKS`] clocks run in interrupts, those of as many more in soft ones.
    pub timers: u64,
    /// Bytes from this pointer to that of the next clock.
    pub timers_step: u64,
    /// Distance of the pointer to the running timer of the first wheel of timers; 0 if it is not
    /// known.
    pub wheels: u64,
    /// Bytes from this pointer to that of the next wheel.
    pub wheels_step: u64,
    /// How many wheels there are.
    pub wheels_count: u64,
    /// Start of the kernel's `do_softirq`, which a thread calls to do the work that interrupts, or
    /// the thread itself, have left for later; 0 if it is not known.
    pub do_softirq_start: u64,
    /// End of `do_softirq`; 0 if it is not known.
    pub do_softirq_end: u64,
}

/// Half of `HRTIMER_MAX_CLOCK_BASES` of include/linux/hrtimer_defs.h.
pub const CLOCKS: u64 = 4;

/// `SOFTIRQ_OFFSET` of include/linux/preempt.h: the bit of the preemption count that says that
/// soft interrupts are being handled, the work that interrupts leave for later.
pub const IN_SOFT_INTERRUPT: u64 = 1 << 8;

/// `HARDIRQ_MASK` of the same file, in kernels that count NMIs in the same word.
pub const IN_INTERRUPT: u64 = 0xf << 16;

/// `HARDIRQ_MASK` in kernels that count NMIs in another word, `nmi_nesting`.
pub const IN_INTERRUPT_BESIDE_NMI: u64 = 0xf << 24;
