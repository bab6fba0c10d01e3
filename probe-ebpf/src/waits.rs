//! The account of a thread that runs or waits: how long it was in each [`state`], and since
//! when it is in the present one.
//!
//! ```text
//!   running ── leaves the CPU ──► waiting ── is woken ──► queue ── joins a CPU ──► running
//!           ── is preempted ──────────────────────────────►┘
//! ```
//!
//! Every moment of a thread's life is in one state, so that the sums of all states are
//! its whole life.

use crate::Registers;
use crate::record::COMM_LEN;
use crate::registers::SCRATCH_REGISTERS;

pub mod places;

/// What a thread can be doing.
pub mod state {
    /// It is on a CPU.
    pub const RUN: u32 = 0;
    /// It could run, but no CPU is free for it.
    pub const QUEUE: u32 = 1;
    /// It waits for a lock: a futex, a lock on a file, a semaphore, the lock of the memory map.
    pub const LOCK: u32 = 2;
    /// It waits for a disk.
    pub const DISK: u32 = 3;
    /// It waits for a socket, a pipe, or one of several of them.
    pub const NET: u32 = 4;
    /// It waits until some time.
    pub const SLEEP: u32 = 5;
    /// It waits for a page of memory.
    pub const FAULT: u32 = 6;
    /// It was stopped, by a signal or a debugger.
    pub const STOPPED: u32 = 7;
    /// It waits for something else: a child, a signal.
    pub const OTHER: u32 = 8;
    /// It waits for the global lock of Python.
    pub const GIL: u32 = 9;
    /// Its control group has used up the CPU time that it may have in a period.
    pub const QUOTA: u32 = 10;
    /// Number of states.
    pub const COUNT: usize = 11;
    /// A power of two above the states: a mask keeps any number below it. The verifier of Linux
    /// 6.1 cannot follow the comparison that a compiler makes of a bounds check.
    pub const SLOTS: usize = 16;
}

/// Who ended a wait, as far as the kernel lets it be known.
pub mod ended_by {
    /// It is not known who ended it.
    pub const UNKNOWN: u32 = 0;
    /// The thread that ran on the CPU where the wait was ended, by what it did.
    pub const THREAD: u32 = 1;
    /// A timer, such as that of a timeout. The thread that ran there was only interrupted.
    pub const TIMER: u32 = 2;
    /// Another interrupt, such as a network device's. The thread that ran was only interrupted.
    pub const INTERRUPT: u32 = 3;
}

/// What the kernel knows of a thread that leaves its CPU because it has to wait.
#[derive(Debug, Clone, Copy)]
pub struct Leaving {
    /// `__state` of its `task_struct`.
    pub task_state: u32,
    /// `in_iowait` of its `task_struct`.
    pub is_in_iowait: bool,
    /// `orig_ax` of its registers: the number of the system call that it is in. Negative
    /// in an exception or an interrupt.
    pub call: i64,
    /// Whether it runs 32-bit code, whose system calls have other numbers.
    pub is_compat: bool,
}

/// Bits of `__state`, as in include/linux/sched.h since Linux 5.17.
mod task {
    pub const UNINTERRUPTIBLE: u32 = 2;
    pub const STOPPED: u32 = 4;
    pub const TRACED: u32 = 8;
}

/// The bit of `__state` of a thread that ends.
pub const TASK_DEAD: u32 = 0x80;

/// Returns the state of a thread that leaves its CPU but could go on: it is in the queue, or its
/// control group has no CPU time left that it may use.
#[inline(always)]
pub fn ready_state(is_throttled: bool) -> u32 {
    if is_throttled {
        state::QUOTA
    } else {
        state::QUEUE
    }
}

/// Returns the state of a thread that leaves its CPU to wait, by the first rule that fits:
///
/// 1. Its state says that it is stopped.
/// 2. It is in no system call: a page fault.
/// 3. The kernel counts it as waiting for a disk.
/// 4. The system call decides, and whether signals can end the wait: [`CALLS`].
#[inline(always)]
pub fn state_of(leaving: Leaving) -> u32 {
    if leaving.task_state & (task::STOPPED | task::TRACED) != 0 {
        return state::STOPPED;
    }
    if leaving.call < 0 {
        return state::FAULT;
    }
    if leaving.is_in_iowait {
        return state::DISK;
    }
    // Read before the check, as the mask is what the verifier of Linux 6.1 can follow.
    // SAFETY: the mask keeps the number inside the table, whose length is a power of two.
    let states =
        unsafe { core::ptr::read_volatile(&CALLS[leaving.call as usize & (CALLS_END - 1)]) };
    if leaving.is_compat || leaving.call >= CALLS_END as i64 {
        return state::OTHER;
    }
    let state = if leaving.task_state & task::UNINTERRUPTIBLE != 0 {
        states >> 4
    } else {
        states & 15
    };
    state as u32
}

/// Returns whether another thread usually ends a wait in this state, so that it helps to know it.
#[inline(always)]
pub const fn has_waker(state: u32) -> bool {
    const WAKEN: u32 = 1 << state::LOCK
        | 1 << state::GIL
        | 1 << state::NET
        | 1 << state::STOPPED
        | 1 << state::OTHER;
    WAKEN >> (state & 31) & 1 != 0
}

/// Returns whether a wait of this length records its stack: always from the period on, and below
/// with the probability `ns / period_ns`. `luck` is a uniformly distributed random number.
#[inline(always)]
pub const fn is_drawn(luck: u32, ns: u64, period_ns: u64) -> bool {
    ns >= period_ns || (luck as u64).wrapping_mul(period_ns) >> 32 < ns
}

/// Returns how much of the time since a thread left its CPU it has waited; the rest it was in the
/// queue. `woken_ns` is 0 if no wake-up was seen: then nothing is known of a queue, and all of the
/// time counts as waiting.
#[inline(always)]
pub const fn waited_ns(state: u32, since_ns: u64, woken_ns: u64, now_ns: u64) -> u64 {
    let away_ns = now_ns.wrapping_sub(since_ns);
    if state == state::QUEUE {
        return 0;
    }
    // The kernel does not say when there was CPU time again.
    if state == state::QUOTA || woken_ns == 0 {
        return away_ns;
    }
    // It was woken while it was still leaving its CPU.
    if woken_ns <= since_ns {
        return 0;
    }
    let waited_ns = woken_ns.wrapping_sub(since_ns);
    if waited_ns > away_ns {
        away_ns
    } else {
        waited_ns
    }
}

/// Returns the random number of a wait that begins at `now_ns`: a hash of the time, which is as
/// good as chance. The kernel's helper for random numbers takes several times as long.
#[inline(always)]
pub const fn luck_of(now_ns: u64, tid: u32) -> u32 {
    // Odd numbers without a pattern: each multiplication carries upwards, the shift downwards.
    let mixed = (now_ns ^ ((tid as u64) << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed >> 32) as u32
}

/// One more than the largest number of a system call that is looked up.
const CALLS_END: usize = 512;

/// What a thread waits for in each system call of x86-64: in the lower four bits if signals can
/// end the wait, in the upper four bits if they cannot.
static CALLS: [u8; CALLS_END] = calls();

const fn calls() -> [u8; CALLS_END] {
    const fn states(interruptible: u32, uninterruptible: u32) -> u8 {
        (interruptible | uninterruptible << 4) as u8
    }
    let mut calls = [states(state::OTHER, state::OTHER); CALLS_END];
    let lists: [(&[usize], u8); 5] = [
        (&LOCKS, states(state::LOCK, state::LOCK)),
        (&SOCKETS, states(state::NET, state::NET)),
        (&TIMERS, states(state::SLEEP, state::SLEEP)),
        // A pipe or a socket can be interrupted, a file cannot.
        (&READS, states(state::NET, state::DISK)),
        (&FILES, states(state::OTHER, state::DISK)),
    ];
    let mut list = 0;
    while list < lists.len() {
        let (numbers, states) = lists[list];
        let mut at = 0;
        while at < numbers.len() {
            calls[numbers[at]] = states;
            at += 1;
        }
        list += 1;
    }
    calls
}

/// Calls that wait for a lock: futex, futex_waitv, futex_wait, futex_requeue; flock, fcntl, semop,
/// semtimedop; and those that take the lock of the memory map: mmap, mprotect, munmap, brk,
/// mremap, madvise.
const LOCKS: [usize; 14] = [202, 449, 455, 456, 73, 72, 65, 220, 9, 10, 11, 12, 25, 28];

/// Calls that wait for sockets or messages: poll, select, pselect6, ppoll, epoll_wait, epoll_pwait,
/// epoll_pwait2; connect, accept, sendto, recvfrom, sendmsg, recvmsg, accept4, recvmmsg, sendmmsg;
/// msgsnd, msgrcv, mq_timedsend, mq_timedreceive.
const SOCKETS: [usize; 20] = [
    7, 23, 270, 271, 232, 281, 441, 42, 43, 44, 45, 46, 47, 288, 299, 307, 69, 70, 242, 243,
];

/// Calls that wait for a time: nanosleep, clock_nanosleep.
const TIMERS: [usize; 2] = [35, 230];

/// Calls that read or write: read, write, pread64, pwrite64, readv, writev, sendfile, splice, tee,
/// vmsplice, preadv, pwritev, preadv2, pwritev2, copy_file_range.
const READS: [usize; 15] = [
    0, 1, 17, 18, 19, 20, 40, 275, 276, 278, 295, 296, 327, 328, 326,
];

/// Calls on files: open, stat, lstat, openat, creat, truncate, ftruncate, getdents, getdents64,
/// rename, mkdir, rmdir, link, unlink, unlinkat, renameat, renameat2, newfstatat, statx; fsync,
/// fdatasync, sync, syncfs, sync_file_range, msync, fallocate, readahead, close, execve;
/// io_getevents, io_pgetevents, io_submit.
const FILES: [usize; 32] = [
    2, 4, 6, 257, 85, 76, 77, 78, 217, 82, 83, 84, 86, 87, 263, 264, 316, 262, 332, 74, 75, 162,
    306, 277, 26, 285, 187, 3, 59, 208, 333, 209,
];

/// Number of slots that count times in the queue by their length. A power of two, for the
/// same reason as [`state::SLOTS`].
pub const DELAY_SLOTS: usize = 16;

/// The first slot has times below this power of two, in nanoseconds: 4 µs.
const DELAY_BITS: u32 = 12;

/// Returns the slot of a time in the queue. Each has times up to twice as long as the one before.
#[inline(always)]
pub fn delay_slot(ns: u64) -> usize {
    let mut rest = ns >> DELAY_BITS;
    if rest >> DELAY_SLOTS != 0 {
        rest = (1 << DELAY_SLOTS) - 1;
    }
    // Not with a branch for each power of two, all of which the verifier would follow.
    let bits = u32::BITS - (rest as u32).leading_zeros();
    bits.min(DELAY_SLOTS as u32 - 1) as usize
}

/// Returns the end of a slot: all its times are shorter. Returns None for the last, without end.
pub fn delay_end_ns(slot: usize) -> Option<u64> {
    (slot + 1 < DELAY_SLOTS).then(|| 1 << (DELAY_BITS as usize + slot))
}

/// What is kept of a thread. The sums do not include the present state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Thread {
    /// When the present state began. The end of a wait does not change it, the next switch does.
    pub since_ns: u64,
    /// When the thread was woken since it last joined a CPU; 0 if it was not, or if that was not seen.
    pub woken_ns: u64,
    /// Since when the thread is known.
    pub known_ns: u64,
    /// The thread's process.
    pub tgid: u32,
    /// A [`state`].
    pub state: u32,
    /// The thread that ran on the CPU of the last wake-up; 0 if that was idle. It is the waker only
    /// if `ended_by` says so.
    pub waker_tid: u32,
    /// The process of `waker_tid`.
    pub waker_tgid: u32,
    /// The thread's name.
    pub comm: [u8; COMM_LEN],
    /// Nanoseconds in each state.
    pub ns: [u64; state::COUNT],
    /// How often the thread was in each state; begins anew at 2^32. An index below [`state::SLOTS`]
    /// stays inside of the structure.
    pub times: [u32; state::COUNT],
    /// How often its time in the queue was in each slot of [`delay_slot`]; begins anew at 2^32.
    pub delays: [u32; DELAY_SLOTS],
    /// The thread that had the lock for which this one waits, or waited last; 0 if the lock does
    /// not hold its owner.
    pub owner_tid: u32,
    /// The random number drawn when it left its CPU, which decides whether its wait records stacks.
    pub luck: u32,
    /// Who ended its last wait: an [`ended_by`].
    pub ended_by: u32,
    /// Unused: keeps the size of the structure.
    pub room: [u32; 2],
}

impl Thread {
    /// A thread about which nothing is known.
    pub const UNKNOWN: Thread = Thread {
        since_ns: 0,
        woken_ns: 0,
        known_ns: 0,
        tgid: 0,
        state: state::RUN,
        waker_tid: 0,
        waker_tgid: 0,
        comm: [0; COMM_LEN],
        ns: [0; state::COUNT],
        times: [0; state::COUNT],
        delays: [0; DELAY_SLOTS],
        owner_tid: 0,
        luck: 0,
        ended_by: ended_by::UNKNOWN,
        room: [0; 2],
    };
}

const _: () = assert!(size_of::<Thread>() == 56 + 8 * (state::COUNT + state::SLOTS));
const _: () = assert!(state::SLOTS <= state::COUNT + DELAY_SLOTS);

/// The system call futex(2).
pub const FUTEX: i64 = 202;

/// Number of words of a lock that are read.
pub const LOCK_WORDS: usize = 5;

/// The commands that wait, as bits: FUTEX_WAIT, FUTEX_WAIT_BITSET, FUTEX_LOCK_PI and FUTEX_LOCK_PI2
/// of include/uapi/linux/futex.h. Flags are in the bits above the command.
const FUTEX_WAITS: u32 = 1 << 0 | 1 << 9 | 1 << 6 | 1 << 13;
const FUTEX_COMMAND: u64 = 0x7f;
/// Bits of the word of a lock that holds its owner.
const FUTEX_WAITERS: u32 = 1 << 31;
const FUTEX_OWNER: u32 = (1 << 30) - 1;
/// The value of a mutex of glibc for which a thread waits.
const CONTENDED: u32 = 2;

/// Returns whether a futex(2) call with these arguments waits for a lock that may hold its owner.
#[inline(always)]
pub fn may_have_owner(operation: u64, expected: u64) -> bool {
    let command = (operation & FUTEX_COMMAND) as u32;
    let expected = expected as u32;
    let is_plain = command == 0 || command == 9;
    command <= 13
        && FUTEX_WAITS >> command & 1 != 0
        && (!is_plain || expected == CONTENDED || expected & FUTEX_WAITERS != 0)
}

/// Returns the thread that has the lock for which a call of futex(2) waits; 0 if the lock does not
/// hold it. `operation` and `expected` are arguments of the call, `words` is the memory at the
/// lock. The first rule that fits:
///
/// 1. The call does not wait, or not for a lock: 0.
/// 2. The bit for waiting threads (`FUTEX_WAITERS`) is set: the lower bits are the owner. Locks
///    with priority inheritance, robust ones, and those of musl are such.
/// 3. It is a `pthread_mutex_t` of glibc, which waits for the word to leave 2. Its words are lock,
///    count, owner, users and kind; other locks that wait for that have other numbers there.
///
/// The owner is a thread id in the program's own namespace. The caller has to check that such a
/// thread belongs to the same process.
#[inline(always)]
pub fn lock_owner(operation: u64, expected: u64, words: &[u32; LOCK_WORDS]) -> u32 {
    /// No mutex has more users at once, or other bits in its kind.
    const USERS_MAX: u32 = 1 << 20;
    const KIND_MAX: u32 = 1 << 10;

    if !may_have_owner(operation, expected) {
        return 0;
    }
    let [lock, _, owner, users, kind] = *words;
    if lock & FUTEX_WAITERS != 0 {
        return lock & FUTEX_OWNER;
    }
    let is_mutex = lock == CONTENDED
        && expected as u32 == CONTENDED
        && users != 0
        && users < USERS_MAX
        && kind < KIND_MAX;
    if is_mutex { owner & FUTEX_OWNER } else { 0 }
}

/// What user space asks the programs of waits to do. It may change at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Orders {
    /// A wait of at least this length records its stack. A shorter one does so with the probability
    /// `length / period`, and then stands for a whole period. Below 4 seconds; 0 for no stacks.
    pub period_ns: u64,
    /// Stacks that one CPU takes in a second at most.
    pub stacks_per_second: u64,
    /// When user space asks for the waits that are not over, it gets those that began after this
    /// time and not after `open_to_ns`.
    pub open_from_ns: u64,
    /// See `open_from_ns`.
    pub open_to_ns: u64,
}

/// A wait that is not over, and what user space needs to walk the stack of its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct OpenWait {
    /// When the wait began.
    pub since_ns: u64,
    /// The thread.
    pub tid: u32,
    /// The thread's process.
    pub tgid: u32,
    /// A [`state`].
    pub state: u32,
    /// Number of frames in `kernel`.
    pub kernel_frames: u32,
    /// The thread's name.
    pub comm: [u8; COMM_LEN],
    /// The registers with which it entered the kernel.
    pub registers: Registers,
    /// The other registers that a rule may need.
    pub scratch: [u64; SCRATCH_REGISTERS],
    /// The kernel's frames, innermost first.
    pub kernel: [u64; WAIT_KERNEL_FRAMES_MAX],
}

/// Number of words in front of the frames in a wait's record: nanoseconds that the wait stands for,
/// nanoseconds that its time in the queue stands for, how long both really were, the [`state`] with
/// an [`ended_by`] in the upper half, the thread that ended the wait (0 if none did), and the one
/// that had the lock for which the thread waited last; of these two, the tgid and the tid each.
pub const WAIT_WORDS: usize = 6;

/// Number of words in the record of a thread that has ended: its [`Thread`] as words.
pub const THREAD_WORDS: usize = size_of::<Thread>() / 8;

/// Maximum number of kernel frames in the record of a wait.
pub const WAIT_KERNEL_FRAMES_MAX: usize = crate::limits::KERNEL_FRAMES_MAX - WAIT_WORDS;

/// Slots of the per-CPU array `WAIT_COUNTERS`. A sum of nanoseconds follows the count it is for.
pub mod counter {
    /// Stacks of waits written to the ring buffer.
    pub const TAKEN: u32 = 0;
    /// Stacks of waits that found the ring buffer full.
    pub const LOST: u32 = 1;
    /// Nanoseconds of waiting that the stacks of [`LOST`] stood for.
    pub const LOST_NS: u32 = 2;
    /// Waits whose stack was due, but there had been too many in this second.
    pub const OVER_RATE: u32 = 3;
    /// Nanoseconds of waiting that the stacks of [`OVER_RATE`] stood for.
    pub const OVER_RATE_NS: u32 = 4;
    /// Waits whose stack was due, but the thread had left the CPU before.
    pub const MISSED: u32 = 5;
    /// Nanoseconds of waiting that the stacks of [`MISSED`] stood for.
    pub const MISSED_NS: u32 = 6;
    /// Threads that are not followed, because there was no room for more.
    pub const NO_ROOM: u32 = 7;
    /// Threads whose sums found the ring buffer full when they ended.
    pub const ENDS_LOST: u32 = 8;
    /// Nanoseconds spent in taking stacks.
    pub const SPENT_NS: u32 = 9;
    /// Stacks of threads that ended a wait, which were due and not recorded: too many in this
    /// second, or the ring buffer was full.
    pub const WAKES_LOST: u32 = 10;
    /// Nanoseconds of waiting that the stacks of [`WAKES_LOST`] stood for.
    pub const WAKES_LOST_NS: u32 = 11;
    /// Number of slots.
    pub const COUNT: u32 = 12;
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: i64 = 0;
    const EPOLL_WAIT: i64 = 232;
    const NANOSLEEP: i64 = 35;
    const FSYNC: i64 = 74;
    const WAIT4: i64 = 61;

    fn waiting(call: i64, task_state: u32) -> Leaving {
        Leaving {
            task_state,
            is_in_iowait: false,
            call,
            is_compat: false,
        }
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let (interruptible, uninterruptible) = (1, 2);
        let of = |call| state_of(waiting(call, interruptible));
        assert_eq!(of(FUTEX), state::LOCK);
        assert_eq!(of(EPOLL_WAIT), state::NET);
        assert_eq!(of(READ), state::NET);
        assert_eq!(of(NANOSLEEP), state::SLEEP);
        assert_eq!(of(WAIT4), state::OTHER);
        assert_eq!(of(-1), state::FAULT);
        assert_eq!(of(i64::MAX), state::OTHER);
        let of = |call| state_of(waiting(call, uninterruptible));
        assert_eq!(of(READ), state::DISK);
        assert_eq!(of(FSYNC), state::DISK);
        assert_eq!(of(FUTEX), state::LOCK);
        // Freezable, killable and without load: these bits do not say what the thread waits for.
        assert_eq!(state_of(waiting(FUTEX, 0x2001)), state::LOCK);
        assert_eq!(state_of(waiting(READ, 0x102)), state::DISK);

        assert_eq!(ready_state(false), state::QUEUE);
        assert_eq!(ready_state(true), state::QUOTA);
        assert_eq!(state_of(waiting(FUTEX, 4)), state::STOPPED);
        assert_eq!(state_of(waiting(-1, 8)), state::STOPPED);
        let disk = Leaving {
            is_in_iowait: true,
            ..waiting(WAIT4, uninterruptible)
        };
        assert_eq!(state_of(disk), state::DISK);
        let fault = Leaving { call: -1, ..disk };
        assert_eq!(state_of(fault), state::FAULT);
        let compat = Leaving {
            is_compat: true,
            ..waiting(FUTEX, interruptible)
        };
        assert_eq!(state_of(compat), state::OTHER);
    }

    #[test]
    fn a_wait_is_drawn_as_often_as_it_is_a_part_of_the_period() {
        let period_ns = 1_280_000_000;
        let drawn = |ns| {
            let luck = (0..1000u32).map(|part| part * (u32::MAX / 1000));
            luck.filter(|luck| is_drawn(*luck, ns, period_ns)).count()
        };
        assert_eq!((drawn(0), drawn(period_ns)), (0, 1000));
        assert!(drawn(period_ns / 4).abs_diff(250) <= 1);
        // A wait that is drawn by its length is also drawn by that and its time in the queue.
        let luck = u32::MAX / 3;
        assert!(is_drawn(luck, 500_000_000, period_ns));
        assert!(is_drawn(luck, 500_000_001, period_ns));
    }

    /// Waits that begin in even steps are drawn as often as those that begin at any time.
    #[test]
    fn a_wait_ends_with_the_wake_up_if_that_was_seen() {
        let waited = |state, woken_ns| waited_ns(state, 100, woken_ns, 150);
        assert_eq!(waited(state::SLEEP, 130), 30);
        // Not seen; while it was leaving its CPU; later by the clock of another CPU.
        assert_eq!(waited(state::SLEEP, 0), 50);
        assert_eq!(waited(state::SLEEP, 99), 0);
        assert_eq!(waited(state::SLEEP, 151), 50);
        assert_eq!(waited(state::QUOTA, 130), 50);
        assert_eq!(waited(state::QUEUE, 0), 0);
    }

    #[test]
    fn luck_has_no_rhythm() {
        for (step_ns, tid) in [(1, 7), (1_000, 7), (5_001, 9), (1 << 20, 4_000_000)] {
            let begins = (0..20_000).map(|at| 123_456_789_012 + at * step_ns);
            let drawn = begins
                .filter(|ns| luck_of(*ns, tid) < u32::MAX / 10)
                .count();
            // Within five standard deviations.
            assert!(drawn.abs_diff(2_000) < 212, "{step_ns}: {drawn}");
        }
    }

    #[test]
    fn somebody_ends_a_wait_for_a_lock_and_nobody_a_sleep() {
        assert!(has_waker(state::LOCK) && has_waker(state::NET) && has_waker(state::GIL));
        assert!(!has_waker(state::SLEEP) && !has_waker(state::QUEUE) && !has_waker(state::DISK));
    }

    #[test]
    fn a_delay_has_the_slot_that_ends_behind_it() {
        for ns in (0..40).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1]) {
            let slot = delay_slot(ns);
            assert!(slot < DELAY_SLOTS);
            assert!(delay_end_ns(slot).is_none_or(|end_ns| ns < end_ns), "{ns}");
            let before = slot.checked_sub(1).and_then(delay_end_ns);
            assert!(before.is_none_or(|end_ns| ns >= end_ns), "{ns}");
        }
        assert_eq!((delay_slot(0), delay_slot(u64::MAX)), (0, DELAY_SLOTS - 1));
        assert_eq!(delay_end_ns(0), Some(4096));
        assert_eq!(delay_end_ns(DELAY_SLOTS - 1), None);
    }

    #[test]
    fn every_call_has_a_state() {
        for call in 0..600 {
            for task_state in [1, 2, 0x102, 0x402, 0x2001] {
                let state = state_of(waiting(call, task_state));
                assert!((state as usize) < state::COUNT && state != state::RUN);
            }
        }
    }

    /// `FUTEX_WAIT_PRIVATE`, the operation that glibc uses.
    const WAIT_PRIVATE: u64 = 128;

    #[test]
    fn a_lock_says_who_has_it() {
        // A mutex of glibc: lock, count, owner, users, kind; one with error checking, too.
        assert_eq!(lock_owner(WAIT_PRIVATE, 2, &[2, 0, 1234, 1, 0]), 1234);
        assert_eq!(lock_owner(WAIT_PRIVATE, 2, &[2, 1, 1234, 3, 2]), 1234);
        // With a time limit: FUTEX_WAIT_BITSET and the clock's flag.
        assert_eq!(lock_owner(9 | 128 | 256, 2, &[2, 0, 7, 1, 0]), 7);
        // A lock with priority inheritance, a robust one, and one of musl.
        let waited_for = 1 << 31 | 1234;
        assert_eq!(lock_owner(6, 0, &[waited_for, 0, 1, 1, 32]), 1234);
        assert_eq!(lock_owner(13, 0, &[waited_for, 0, 1, 1, 32]), 1234);
        assert_eq!(
            lock_owner(128, waited_for.into(), &[waited_for, 9, 9, 9, 9]),
            1234
        );
    }

    #[test]
    fn what_is_no_such_lock_has_no_owner() {
        // A mutex released in the meantime, a condition, and a lock of Rust with data behind it.
        assert_eq!(lock_owner(WAIT_PRIVATE, 2, &[0, 0, 0, 0, 0]), 0);
        assert_eq!(lock_owner(WAIT_PRIVATE, 4, &[4, 0, 1234, 1, 0]), 0);
        assert_eq!(lock_owner(WAIT_PRIVATE, 2, &[2, 0, 1234, 0, 0]), 0);
        assert_eq!(lock_owner(WAIT_PRIVATE, 2, &[2, 0, 1234, 1 << 20, 0]), 0);
        assert_eq!(lock_owner(WAIT_PRIVATE, 2, &[2, 0, 1234, 1, 1 << 10]), 0);
        // FUTEX_WAKE, and commands that do not exist.
        assert_eq!(lock_owner(1 | 128, 2, &[2, 0, 1234, 1, 0]), 0);
        for operation in [14, 31, 32, 64, 127, u64::MAX] {
            assert_eq!(
                lock_owner(operation, 2, &[2, 0, 1234, 1, 0]),
                0,
                "{operation}"
            );
        }
    }
}
