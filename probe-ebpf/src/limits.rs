//! Every bound of the kernel side, each with its reason.

/// Kernel frames in a sample. The kernel itself stops there by default
/// (`kernel.perf_event_max_stack`).
pub const KERNEL_FRAMES_MAX: usize = 127;

/// User frames in a sample: what `--max-depth` may ask for. A frame costs 10 to
/// 100 ns with interrupts off, so that this is at most 0.1 ms.
pub const USER_FRAMES_MAX: usize = 1024;

/// Python frames in a sample, with the marks between groups of them. A frame costs about
/// 100 ns with interrupts off; Python itself stops a recursion at 1000 by default.
pub const PYTHON_FRAMES_MAX: usize = 512;

/// Words behind the header of one record.
pub const FRAMES_MAX: usize = KERNEL_FRAMES_MAX + USER_FRAMES_MAX + 2 * PYTHON_FRAMES_MAX;

/// Bytes of the ring buffer unless the loader says otherwise: five seconds of
/// two CPUs at 10 kHz with 30 frames a sample. A power of two.
pub const RING_BYTES: usize = 8 << 20;

/// Pages of a user stack in one record, of a process whose tables are not in
/// place yet.
pub const RAW_PAGES: usize = 15;
/// Bytes of a page of memory: what can be read in one go, or not at all.
pub const PAGE_BYTES: usize = 4096;
/// Records that a stack may take: a little more than 1 MiB.
pub const RAW_PARTS: usize = 18;
/// Of these, how many are for its end, with the thread's first frames. They come
/// second: between them and the first there is often one large frame that nothing is
/// needed of. The compiler of Rust begins with one of half a megabyte.
pub const RAW_PARTS_TAIL: usize = 2;
/// The same of a stack whose mapping's end is not known: 240 KiB. What lies above
/// it is copied as well where it can be read, and paid by the stacks of others.
pub const RAW_PARTS_BLIND: usize = 4;

/// Bytes of stacks that one CPU ships in a second. Most stacks are of some kilobytes: thousands
/// of waits in a second have room.
pub const RAW_BYTES_PER_SECOND: u64 = 60 << 20;
/// Of these, how many only begin a stack: enough for 256 stacks with parts of full length, which
/// is more than the default rate takes samples, so that no short stack is left out for the rest
/// of a long one.
pub const RAW_FIRST_BYTES_PER_SECOND: u64 = 15 << 20;

/// Bytes of the user stack that are read at once. From the third word on this
/// is cheaper than asking for each; 1 to 4 KiB are equally good, measured.
pub const WINDOW_BYTES: usize = 2048;

/// Where the window begins below the word that was asked for: saved registers
/// lie below the return address.
pub const WINDOW_BELOW: u64 = 48;

/// Entries of one CPU's rule cache. More hit more often and are still slower:
/// 64 KiB is what a core's second cache gives without a fight, measured.
pub const CACHE_ENTRIES: usize = 4096;

/// CPUs that may exist: one rule cache each.
pub const CPUS_MAX: u32 = 1024;

/// Pids, and tids, that one run can be aimed at, their children included.
pub const TARGETS_MAX: usize = 16_384;

/// Processes whose Python frames are walked.
pub const PYTHON_PROCESSES_MAX: usize = 4096;

/// Their threads, all together.
pub const PYTHON_THREADS_MAX: usize = 65_536;

/// Bytes of a ring that is written to for its interrupts alone: 16 for each wait whose
/// stack is taken, and twenty times a second it is emptied.
pub const NUDGES_BYTES: usize = 32 << 10;

/// Users that one run can be aimed at: as many as somebody names.
pub const USERS_MAX: usize = 1024;

/// Thread names whose answer to `--comm` is remembered.
pub const COMMS_MAX: usize = 16_384;

/// The longest distance from the stack pointer to a frame pointer that is
/// believed: the default stack limit of Linux. Code with a larger frame exists,
/// but a wild pointer that far away is much more likely.
pub const FRAME_BYTES_MAX: u64 = 8 << 20;

/// Below this address nothing is mapped (`vm.mmap_min_addr`).
pub const LOWEST_ADDRESS: u64 = 4096;

/// The first address that is not user space, with five-level page tables.
pub const USER_SPACE_END: u64 = 1 << 56;

// The record must fit what one per-CPU map value may hold (32 KiB).
const _: () = assert!(FRAMES_MAX * 8 + size_of::<crate::SampleHeader>() < 32 << 10);
const _: () = assert!(RING_BYTES.is_power_of_two());
// A copied stack, with what is in front of it, is one value of an array map.
const _: () = assert!(RAW_PAGES * PAGE_BYTES < 64 << 10);
