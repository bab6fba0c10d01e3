//! Every bound of the kernel side, each with its reason.

/// Maximum number of kernel frames in a sample. The kernel itself stops there by default
/// (`kernel.perf_event_max_stack`).
pub const KERNEL_FRAMES_MAX: usize = 127;

/// Maximum number of user frames in a sample, and the largest `--max-depth`. A frame costs 10 to
/// 100 ns with interrupts off, so that this is at most 0.1 ms.
pub const USER_FRAMES_MAX: usize = 1024;

/// Maximum number of Python frames in a sample, with the marks between groups of them. A frame
/// costs about 100 ns with interrupts off; Python stops a recursion at 1000 frames by default.
pub const PYTHON_FRAMES_MAX: usize = 512;

/// Maximum number of words behind the header of one record.
pub const FRAMES_MAX: usize = KERNEL_FRAMES_MAX + USER_FRAMES_MAX + 2 * PYTHON_FRAMES_MAX;

/// Bytes of the ring buffer unless the loader says otherwise: more than a second of
/// two CPUs at 10 kHz with 30 frames a sample. A power of two.
pub const RING_BYTES: usize = 8 << 20;

/// Maximum number of pages of a user stack in one record. Stacks are copied for processes
/// whose tables are not in place yet.
pub const RAW_PAGES: usize = 15;
/// Bytes of a page of memory: what can be read in one go, or not at all.
pub const PAGE_BYTES: usize = 4096;
/// Maximum number of records of one stack: a little more than 1 MiB.
pub const RAW_PARTS: usize = 18;
/// How many of these records are for the stack's end, with the thread's first frames. They come
/// second: between them and the first record there is often one large frame that no walk needs
/// the contents of. In the Rust compiler, one of the first frames has half a megabyte.
pub const RAW_PARTS_TAIL: usize = 2;
/// Maximum number of records of a stack whose end is not known: 240 KiB. The memory above such a
/// stack is copied as well where it can be read, at the expense of other stacks.
pub const RAW_PARTS_BLIND: usize = 4;

/// Maximum number of bytes of stacks that one CPU ships in a second. Most stacks have some
/// kilobytes, so that thousands of waits in a second have room.
pub const RAW_BYTES_PER_SECOND: u64 = 60 << 20;
/// How many of these bytes only the first records of stacks may use: enough for 256 records of
/// full length, which is more than the default rate takes samples. So no short stack is left out
/// for the rest of a long one.
pub const RAW_FIRST_BYTES_PER_SECOND: u64 = 15 << 20;

/// Bytes of the user stack that are read at once. From the third word on this is cheaper
/// than a read of each word; 1 to 4 KiB measured equally good.
pub const WINDOW_BYTES: usize = 2048;

/// How many bytes below the wanted word the window begins: saved registers lie below the
/// return address.
pub const WINDOW_BELOW: u64 = 48;

/// Number of entries of one CPU's rule cache: 64 KiB. More entries hit more often and still
/// measured slower, as they compete for the core's second-level cache.
pub const CACHE_ENTRIES: usize = 4096;

/// Maximum number of CPUs: each has a rule cache.
pub const CPUS_MAX: u32 = 1024;

/// Maximum number of pids, and of tids, that one run can be aimed at, with their children.
pub const TARGETS_MAX: usize = 16_384;

/// Maximum number of processes whose Python frames are walked.
pub const PYTHON_PROCESSES_MAX: usize = 4096;

/// Maximum number of threads of these processes, all together.
pub const PYTHON_THREADS_MAX: usize = 65_536;

/// Bytes of a ring buffer that is written to only to get an interrupt: 16 for each wait whose
/// stack is taken. It is emptied twenty times a second.
pub const NUDGES_BYTES: usize = 32 << 10;

/// Maximum number of users that one run can be aimed at. The command line names each of them.
pub const USERS_MAX: usize = 1024;

/// Maximum number of thread names for which it is remembered whether they fit `--comm`.
pub const COMMS_MAX: usize = 16_384;

/// The longest distance from the stack pointer to a frame pointer that is believed:
/// the default stack limit of Linux. Code with a larger frame exists, but a wild
/// pointer that far away is much more likely.
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
