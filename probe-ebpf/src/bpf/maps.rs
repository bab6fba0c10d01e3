//! Every map and every global, each with its reason.
//!
//! Two rules that cost hours when broken: a `Global` starts with a value that
//! is nowhere else in the program, because equal constants share one word and
//! the loader overwrites it; and a key is a local variable, never `&0`.

use aya_ebpf::Global;
use aya_ebpf::btf_maps::{Array, ArrayOfMaps, HashMap, LruHashMap, PerCpuArray, RingBuf};
use aya_ebpf::macros::btf_map;
use probe_ebpf::calls::{
    NUMBERS_MAX, NumberKey, Orders, PROBES_MAX, TEXTS_MAX, Tally, TextKey, starts,
};
use probe_ebpf::happenings::{PointOrders, PointPace};
use probe_ebpf::interrupts::CpuPlaces;
use probe_ebpf::limits::{
    CACHE_ENTRIES, COMMS_MAX, CPUS_MAX, FRAMES_MAX, NUDGES_BYTES, PAGE_BYTES, PYTHON_PROCESSES_MAX,
    PYTHON_THREADS_MAX, RAW_PAGES, RING_BYTES, TARGETS_MAX, USERS_MAX, WINDOW_BYTES,
};
use probe_ebpf::python::{FRAME_ROOM, IDENTITY_WORDS, Layout, RUNNING_MAX, ThreadState, dict};
use probe_ebpf::record::COMM_LEN;
use probe_ebpf::settings::counter;
use probe_ebpf::table::{
    CHUNK_WORDS, CHUNKS_MAX, EXTENDED_MAX, MAPPINGS_MAX, PROCESSES_MAX, RULES_MAX,
};
use probe_ebpf::waits::places::PLACES;
use probe_ebpf::waits::{self, WAIT_KERNEL_FRAMES_MAX};
use probe_ebpf::walk::Walk;
use probe_ebpf::{RawStack, SampleHeader};

/// One record under construction, and the state of the walk. All of it lives in
/// a map: values loaded from there are unknown to the verifier, so that it
/// checks the loop's body once.
#[repr(C)]
pub struct Scratch {
    pub walk: Walk,
    /// Where the next frame goes.
    pub position: u32,
    pub reserved: u32,
    /// The generation of the process's rules, in the upper half.
    pub generation: u64,
    /// The user stack from here on is in `window`; all ones if nothing is. Later the memory that has
    /// frames of Python.
    pub window_start: u64,
    /// The last offset in the window at which there is a whole word, or frame of Python.
    pub window_last: u64,
    pub window: [u64; WINDOW_BYTES / 8],
    pub python: PythonScratch,
    pub header: SampleHeader,
    pub frames: [u64; FRAMES_MAX],
}

/// The state of the walk of Python frames.
#[repr(C)]
pub struct PythonScratch {
    /// The address of the frame that is looked at next; 0 behind the last one.
    pub next: u64,
    /// Entries in the record.
    pub entries: u32,
    /// A [`probe_ebpf::python::status`].
    pub status: u32,
    /// The begin of a code object as it is in the process's memory.
    pub room: [u8; FRAME_ROOM],
    /// The words that tell one code object from another.
    pub code: [u64; IDENTITY_WORDS],
    /// The address of the frame before.
    pub last: u64,
    /// The address of the task or other future that is looked at next; 0 behind the last one.
    pub task: u64,
    /// 1 if that awaits the one before.
    pub awaits: u64,
    /// How many lie between it and the one that runs.
    pub depth: u64,
    /// Entries of `running`, and which of them is the next.
    pub running_count: u64,
    pub running_next: u64,
    /// Entries of the dictionary of tasks that run.
    pub running: [u64; dict::WORDS * RUNNING_MAX],
}

/// A cache of rules by pc, direct mapped: `pc` and `generation << 32 | rule`. A
/// flat array: maps of nested arrays are refused.
pub type RuleCache = [u64; 2 * CACHE_ENTRIES];

/// `BPF_F_MMAPABLE`: the loader writes these as memory.
const MMAPABLE: usize = 1024;

/// `BPF_F_NO_PREALLOC`: memory is taken when there is something to keep. Before Linux 6.1 programs
/// of perf events may use no such maps.
const NO_PREALLOC: usize = if cfg!(feature = "without_loop") { 0 } else { 1 };

/// A chunk of the pool. An array and no structure: kernels up to 6.1 refuse to
/// put maps whose value is a structure into a map.
pub type Chunk = [u32; CHUNK_WORDS];

/// The record under construction on each CPU.
#[btf_map]
pub static SCRATCH: PerCpuArray<Scratch, 1> = PerCpuArray::new();

/// One element for each CPU; too large for a per-CPU value.
#[btf_map]
pub static RULE_CACHE: Array<RuleCache, { CPUS_MAX as usize }> = Array::new();

/// The pool of all tables, in chunks that come and go.
#[btf_map]
pub static CHUNKS: ArrayOfMaps<Array<Chunk, 1, MMAPABLE>, CHUNKS_MAX> = ArrayOfMaps::new();

/// The rules that rows number.
#[btf_map]
pub static RULES: Array<[u32; RULES_MAX], 1, MMAPABLE> = Array::new();

/// The rules that need more than a word, as words.
#[btf_map]
pub static EXTENDED: Array<[u32; EXTENDED_MAX * 4], 1, MMAPABLE> = Array::new();

/// In how many values the mappings of all processes lie, which are behind each other in memory.
/// Linux 5.15 makes no values of more than 4 MiB (`KMALLOC_MAX_SIZE`), Linux 6.1 does.
pub const MAPPINGS_PARTS: usize = if cfg!(feature = "without_loop") { 2 } else { 1 };

/// The mappings of all processes, five words each.
#[btf_map]
pub static MAPPINGS: Array<[u64; MAPPINGS_MAX / MAPPINGS_PARTS * 5], MAPPINGS_PARTS, MMAPABLE> =
    Array::new();

/// Where a process's mappings are: tgid to `MappingList`.
#[btf_map]
pub static PROCESSES: HashMap<u32, u64, PROCESSES_MAX> = HashMap::new();

/// A whole stack under construction.
#[repr(C)]
pub struct RawScratch {
    /// The second that `shipped` counts in.
    pub second: u64,
    /// Bytes of records with stacks.
    pub shipped: u64,
    /// Of a long stack, where its last parts begin; 0 if it is copied in one go.
    pub tail: u64,
    /// How far above the stack pointer the next part begins that is not one of the
    /// last ones.
    pub next: u64,
    /// Where the part ends that is being copied.
    pub until: u64,
    /// The `return_instance` of the thread that is looked at next; 0 behind the last one.
    pub instance: u64,
    pub header: SampleHeader,
    pub raw: RawStack,
    pub stack: [u8; RAW_PAGES * PAGE_BYTES],
}

/// One element for each CPU; too large for a per-CPU value.
#[btf_map]
pub static RAW_SCRATCH: Array<RawScratch, { CPUS_MAX as usize }> = Array::new();

/// Where records go.
#[btf_map]
pub static SAMPLES: RingBuf<u8, RING_BYTES> = RingBuf::new();

/// Counters of each CPU, by [`counter`].
#[btf_map]
pub static COUNTERS: PerCpuArray<u64, { counter::COUNT as usize }> = PerCpuArray::new();

/// Processes that run Python, by tgid.
#[btf_map]
pub static PYTHON_PROCESSES: HashMap<u32, Layout, PYTHON_PROCESSES_MAX, NO_PREALLOC> =
    HashMap::new();

/// Where the interpreter keeps what it knows of a thread, by tid.
#[btf_map]
pub static PYTHON_THREADS: HashMap<u32, ThreadState, PYTHON_THREADS_MAX, NO_PREALLOC> =
    HashMap::new();

/// What is done for each probe of calls.
#[btf_map]
pub static CALL_ORDERS: Array<Orders, PROBES_MAX> = Array::new();

/// What was counted of each.
#[btf_map]
pub static CALL_TALLIES: PerCpuArray<Tally, PROBES_MAX> = PerCpuArray::new();

/// When calls began that are under way.
#[btf_map]
pub static CALL_STARTS: Array<starts::Bucket, { starts::BUCKETS }> = Array::new();

/// How often each number was read.
#[btf_map]
pub static CALL_NUMBERS: HashMap<NumberKey, u64, NUMBERS_MAX, NO_PREALLOC> = HashMap::new();

/// How often each text was read.
#[btf_map]
pub static CALL_TEXTS: HashMap<TextKey, u64, TEXTS_MAX, NO_PREALLOC> = HashMap::new();

/// What a probe of calls needs to walk a stack. Not that of the clock, which may
/// interrupt it.
#[repr(C)]
pub struct CallScratch {
    /// Not 0: a thread that was interrupted on this CPU is walking with it.
    pub busy: u64,
    pub scratch: Scratch,
    pub cache: RuleCache,
}

/// One element for each CPU; too large for a per-CPU value.
#[btf_map]
pub static CALL_SCRATCH: Array<CallScratch, { CPUS_MAX as usize }> = Array::new();

/// What is done at a tracepoint that is counted.
#[btf_map]
pub static POINT_ORDERS: Array<PointOrders, 1> = Array::new();

/// Which of its passes give their stack, on each CPU.
#[btf_map]
pub static POINT_PACE: PerCpuArray<PointPace, 1> = PerCpuArray::new();

/// What the threads are doing whose waits are followed, each at its place.
#[btf_map]
pub static THREADS: Array<waits::Thread, PLACES> = Array::new();

/// Whose place is which: see [`waits::places`].
#[btf_map]
pub static THREAD_PLACES: Array<[u64; PLACES], 1, MMAPABLE> = Array::new();

/// What is wanted of waits.
#[btf_map]
pub static WAIT_ORDERS: Array<waits::Orders, 1> = Array::new();

/// The wait that is being told to whoever asks for those that are not over: one at a time.
#[btf_map]
pub static OPEN_WAIT: Array<waits::OpenWait, 1> = Array::new();

/// Where to see what a CPU is doing.
#[btf_map]
pub static CPU_PLACES: Array<CpuPlaces, 1> = Array::new();

/// What is known of this CPU.
#[repr(C)]
pub struct ThisCpu {
    /// The address of its run queue; 0 as long as it is not known.
    pub run_queue: u64,
    /// Not 0: what is read there cannot be what it is taken for.
    pub is_wrong: u64,
}

#[btf_map]
pub static THIS_CPU: PerCpuArray<ThisCpu, 1> = PerCpuArray::new();

/// Counters of each CPU, by [`waits::counter`].
#[btf_map]
pub static WAIT_COUNTERS: PerCpuArray<u64, { waits::counter::COUNT as usize }> = PerCpuArray::new();

/// A wait whose stack is about to be taken.
#[repr(C)]
pub struct PendingWait {
    /// The thread; 0 if there is none.
    pub tid: u32,
    /// Frames of the kernel.
    pub frames: u32,
    /// When it joined the CPU.
    pub time_ns: u64,
    /// What is in front of the frames in the record, and then these.
    pub words: [u64; waits::WAIT_WORDS],
    pub kernel: [u64; WAIT_KERNEL_FRAMES_MAX],
    /// The second that `taken` counts in.
    pub second: u64,
    pub taken: u64,
    /// The second that `wakes` counts in.
    pub wakes_second: u64,
    pub wakes: u64,
}

/// On each CPU, the wait that has just ended.
#[btf_map]
pub static PENDING_WAIT: PerCpuArray<PendingWait, 1> = PerCpuArray::new();

/// Written to for its interrupts alone; what is in it says nothing. One for every fourth
/// CPU: a ring asks for one interrupt at a time.
pub type Nudges = RingBuf<u8, NUDGES_BYTES>;

#[btf_map]
pub static NUDGES_0: Nudges = RingBuf::new();
#[btf_map]
pub static NUDGES_1: Nudges = RingBuf::new();
#[btf_map]
pub static NUDGES_2: Nudges = RingBuf::new();
#[btf_map]
pub static NUDGES_3: Nudges = RingBuf::new();

/// Processes that are targets.
#[btf_map]
pub static TARGET_PIDS: HashMap<u32, u8, TARGETS_MAX> = HashMap::new();

/// Threads that are targets.
#[btf_map]
pub static TARGET_TIDS: HashMap<u32, u8, TARGETS_MAX> = HashMap::new();

/// Users whose processes are targets.
#[btf_map]
pub static TARGET_UIDS: HashMap<u32, u8, USERS_MAX> = HashMap::new();

/// Processes whose own name fits `--comm`, whatever their threads are called.
#[btf_map]
pub static COMM_PIDS: HashMap<u32, u8, TARGETS_MAX> = HashMap::new();

/// Names that `--comm` has been asked about. A name that is not in here passes;
/// user space judges it and remembers the verdict.
#[btf_map]
pub static COMM_VERDICTS: LruHashMap<[u8; COMM_LEN], u8, COMMS_MAX> = LruHashMap::new();

/// The conditions that a target has to meet: bits of `filter`.
#[unsafe(no_mangle)]
pub static FILTER: Global<u32> = Global::new(0xfeed_0001);
/// User frames in a sample at most.
#[unsafe(no_mangle)]
pub static MAX_USER_FRAMES: Global<u32> = Global::new(0xfeed_0002);
/// How deep in the hierarchy the control group is.
#[unsafe(no_mangle)]
pub static CGROUP_LEVEL: Global<u32> = Global::new(0xfeed_0003);
/// The control group that targets are in.
#[unsafe(no_mangle)]
pub static CGROUP_ID: Global<u64> = Global::new(0xfeed_0004_feed_0004);
/// Bytes waiting in the ring buffer from which on the reader is woken up.
#[unsafe(no_mangle)]
pub static WAKE_BYTES: Global<u64> = Global::new(0xfeed_0005_feed_0005);
/// Offset of `flags` in this kernel's `task_struct`; 0 if it is not known.
#[unsafe(no_mangle)]
pub static TASK_FLAGS_OFFSET: Global<u32> = Global::new(0xfeed_0007);
/// Not 0: all stacks are shipped as well, so that each walk can be checked.
#[unsafe(no_mangle)]
pub static CHECK_WALKS: Global<u32> = Global::new(0xfeed_0008);
/// Offset of `tgid` in this kernel's `task_struct`.
#[unsafe(no_mangle)]
pub static TASK_TGID_OFFSET: Global<u32> = Global::new(0xfeed_0006);

/// The last hit of a breakpoint of ours on a CPU.
#[repr(C)]
pub struct Hit {
    /// Where the kernel has the registers of the thread: no other thread has them there. 0
    /// while the rest is written.
    pub registers: u64,
    /// Where the breakpoint is.
    pub ip: u64,
    /// The stack pointer there.
    pub sp: u64,
    /// What stood on top of the stack, if it will be replaced.
    pub return_address: u64,
}

/// The last breakpoint of ours that was hit on each CPU.
#[btf_map]
pub static LAST_HIT: PerCpuArray<Hit, 1> = PerCpuArray::new();

/// Offset of `utask` in this kernel's `task_struct`; 0 if it is not known.
#[unsafe(no_mangle)]
pub static TASK_UTASK_OFFSET: Global<u32> = Global::new(0xfeed_0009);
/// Offset of `return_instances` in its `uprobe_task`.
#[unsafe(no_mangle)]
pub static UTASK_RETURNS_OFFSET: Global<u32> = Global::new(0xfeed_000a);
/// Offset of `stack` in its `return_instance`.
#[unsafe(no_mangle)]
pub static RETURN_STACK_OFFSET: Global<u32> = Global::new(0xfeed_000b);
/// Offset of `orig_ret_vaddr` in its `return_instance`.
#[unsafe(no_mangle)]
pub static RETURN_ADDRESS_OFFSET: Global<u32> = Global::new(0xfeed_000c);
/// Offset of `next` in its `return_instance`.
#[unsafe(no_mangle)]
pub static RETURN_NEXT_OFFSET: Global<u32> = Global::new(0xfeed_000d);
/// Offset of `active_uprobe` in its `uprobe_task`.
#[unsafe(no_mangle)]
pub static STEPPED_ACTIVE_OFFSET: Global<u32> = Global::new(0xfeed_000e);
/// Offset of `vaddr` in its `uprobe_task`.
#[unsafe(no_mangle)]
pub static STEPPED_ADDRESS_OFFSET: Global<u32> = Global::new(0xfeed_000f);

/// Offset of `pid` in this kernel's `task_struct`.
#[unsafe(no_mangle)]
pub static WAIT_PID_OFFSET: Global<u32> = Global::new(0xfeed_0010);
/// Offset of `tgid` there, as the programs of waits read it.
#[unsafe(no_mangle)]
pub static WAIT_TGID_OFFSET: Global<u32> = Global::new(0xfeed_0011);
/// Offset of `flags` there.
#[unsafe(no_mangle)]
pub static WAIT_FLAGS_OFFSET: Global<u32> = Global::new(0xfeed_0012);
/// Offset of the byte there that has `in_iowait`.
#[unsafe(no_mangle)]
pub static WAIT_IOWAIT_OFFSET: Global<u32> = Global::new(0xfeed_0013);
/// Its bit in that byte.
#[unsafe(no_mangle)]
pub static WAIT_IOWAIT_BIT: Global<u32> = Global::new(0xfeed_0014);
/// Offset of `throttled` there, since Linux 6.18; 0 where there is none.
#[unsafe(no_mangle)]
pub static WAIT_THROTTLED_OFFSET: Global<u32> = Global::new(0xfeed_0015);
/// Offset of `se.cfs_rq` there; 0 where the next one is.
#[unsafe(no_mangle)]
pub static WAIT_RUNQUEUE_OFFSET: Global<u32> = Global::new(0xfeed_0016);
/// Offset of `throttle_count` in `struct cfs_rq`, before Linux 6.18; 0 where groups have no
/// quotas.
#[unsafe(no_mangle)]
pub static WAIT_THROTTLES_OFFSET: Global<u32> = Global::new(0xfeed_0017);

/// Offset of `thread.fsbase` in this kernel's `task_struct`; 0 if it is not known, or there is
/// none.
#[unsafe(no_mangle)]
pub static TASK_FS_BASE_OFFSET: Global<u32> = Global::new(0xfeed_0018);

/// Offset of `stack` in this kernel's `task_struct`.
#[cfg(feature = "without_loop")]
#[unsafe(no_mangle)]
pub static TASK_STACK_OFFSET: Global<u32> = Global::new(0xfeed_0019);
/// Offset of the registers in a thread's kernel stack with which it entered the kernel; 0 if it is
/// not known.
#[cfg(feature = "without_loop")]
#[unsafe(no_mangle)]
pub static ENTRY_REGISTERS_OFFSET: Global<u32> = Global::new(0xfeed_001a);

/// Adds to a counter of this CPU.
#[inline(always)]
pub fn count(slot: u32, amount: u64) {
    count_in(&COUNTERS, slot, amount);
}

/// Adds to one of several counters of this CPU.
#[inline(always)]
pub fn count_in<const SLOTS: usize>(counters: &PerCpuArray<u64, SLOTS>, slot: u32, amount: u64) {
    if let Some(value) = counters.get_ptr_mut(slot) {
        // SAFETY: a per-CPU value, and programs on one CPU do not interrupt each other: the
        // clock and the scheduler run them with interrupts off.
        unsafe { *value = (*value).wrapping_add(amount) };
    }
}
