//! Every map and every global, each with its reason.
//!
//! Two rules that cost hours when broken: a `Global` starts with a value that
//! is nowhere else in the program, because equal constants share one word and
//! the loader overwrites that; and a key is a local variable, never `&0`.

use aya_ebpf::Global;
use aya_ebpf::btf_maps::{Array, ArrayOfMaps, HashMap, LruHashMap, PerCpuArray, RingBuf};
use aya_ebpf::macros::btf_map;
use probe_ebpf::calls::{
    NUMBERS_MAX, NumberKey, Orders, PROBES_MAX, TEXTS_MAX, Tally, TextKey, starts,
};
use probe_ebpf::happenings::{CounterSeen, HappeningOrders, Pace};
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
    /// The address from which on the user stack is in `window`; all ones if nothing is. Later the
    /// same for the memory that has frames of Python.
    pub window_start: u64,
    /// The last offset in the window at which there is a whole word, or a whole frame of Python.
    pub window_last: u64,
    pub window: [u64; WINDOW_BYTES / 8],
    pub python: PythonScratch,
    pub header: SampleHeader,
    pub frames: [u64; FRAMES_MAX],
}

/// The state of the walk of Python frames.
#[repr(C)]
pub struct PythonScratch {
    /// The address of the frame that is read next; 0 behind the last one.
    pub next: u64,
    /// Number of Python entries in the record.
    pub entries: u32,
    /// How the walk ended: a [`probe_ebpf::python::status`].
    pub status: u32,
    /// The beginning of a code object as it is in the process's memory.
    pub room: [u8; FRAME_ROOM],
    /// The words that distinguish one code object from another.
    pub code: [u64; IDENTITY_WORDS],
    /// The address of the frame that was read last.
    pub last: u64,
    /// The address of the task or other future that is read next; 0 behind the last one.
    pub task: u64,
    /// 1 if that task awaits the one before.
    pub awaits: u64,
    /// Number of steps from the task that runs to that task.
    pub depth: u64,
    /// Number of entries in `running`.
    pub running_count: u64,
    /// The index of the entry of `running` that is read next.
    pub running_next: u64,
    /// Entries of the dictionary with the task that runs in each event loop.
    pub running: [u64; dict::WORDS * RUNNING_MAX],
}

/// A cache of rules by pc, direct mapped: `pc` and `generation << 32 | rule`. A
/// flat array, because the kernel refuses maps of nested arrays.
pub type RuleCache = [u64; 2 * CACHE_ENTRIES];

/// `BPF_F_MMAPABLE`: the loader maps the values into its memory, to write them.
const MMAPABLE: usize = 1024;

/// `BPF_F_NO_PREALLOC`: memory is taken when there is something to keep. Before Linux 6.1 programs
/// of perf events may not use such maps.
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

/// The pool of all tables, in chunks that are added and removed.
#[btf_map]
pub static CHUNKS: ArrayOfMaps<Array<Chunk, 1, MMAPABLE>, CHUNKS_MAX> = ArrayOfMaps::new();

/// The dictionary of rules: a row has the number of its rule.
#[btf_map]
pub static RULES: Array<[u32; RULES_MAX], 1, MMAPABLE> = Array::new();

/// The rules that need more than a word, as words.
#[btf_map]
pub static EXTENDED: Array<[u32; EXTENDED_MAX * 4], 1, MMAPABLE> = Array::new();

/// Number of values that hold the mappings of all processes; they are adjacent in memory.
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
    /// The second in which `shipped` counts.
    pub second: u64,
    /// Bytes of records with stacks that were shipped.
    pub shipped: u64,
    /// The address at which the last parts of a long stack begin; 0 if it is copied in one go.
    pub tail: u64,
    /// How far above the stack pointer the next part begins that is not one of the
    /// last ones.
    pub next: u64,
    /// The address at which the part ends that is being copied.
    pub until: u64,
    /// The `return_instance` of the thread that is read next; 0 behind the last one.
    pub instance: u64,
    pub header: SampleHeader,
    pub raw: RawStack,
    pub stack: [u8; RAW_PAGES * PAGE_BYTES],
}

/// One element for each CPU; too large for a per-CPU value.
#[btf_map]
pub static RAW_SCRATCH: Array<RawScratch, { CPUS_MAX as usize }> = Array::new();

/// The ring buffer for all records.
#[btf_map]
pub static SAMPLES: RingBuf<u8, RING_BYTES> = RingBuf::new();

/// 1 while the reader rests: the next record with frames of a process wakes it up. Otherwise 0.
#[btf_map]
pub static IS_RESTING: Array<u32, 1> = Array::new();

/// Counters of each CPU, by [`counter`].
#[btf_map]
pub static COUNTERS: PerCpuArray<u64, { counter::COUNT as usize }> = PerCpuArray::new();

/// Processes that run Python, by tgid.
#[btf_map]
pub static PYTHON_PROCESSES: HashMap<u32, Layout, PYTHON_PROCESSES_MAX, NO_PREALLOC> =
    HashMap::new();

/// Where the interpreter keeps the state of each thread, by tid.
#[btf_map]
pub static PYTHON_THREADS: HashMap<u32, ThreadState, PYTHON_THREADS_MAX, NO_PREALLOC> =
    HashMap::new();

/// What the programs do for each probe of calls, by the probe's number.
#[btf_map]
pub static CALL_ORDERS: Array<Orders, PROBES_MAX> = Array::new();

/// The counts of each probe of calls.
#[btf_map]
pub static CALL_TALLIES: PerCpuArray<Tally, PROBES_MAX> = PerCpuArray::new();

/// When the calls under way began.
#[btf_map]
pub static CALL_STARTS: Array<starts::Bucket, { starts::BUCKETS }> = Array::new();

/// How often each number was read.
#[btf_map]
pub static CALL_NUMBERS: HashMap<NumberKey, u64, NUMBERS_MAX, NO_PREALLOC> = HashMap::new();

/// How often each text was read.
#[btf_map]
pub static CALL_TEXTS: HashMap<TextKey, u64, TEXTS_MAX, NO_PREALLOC> = HashMap::new();

/// The room in which a probe of calls walks a stack. It is not the clock's room, because the clock
/// may interrupt the probe.
#[repr(C)]
pub struct CallScratch {
    /// Not 0 while a thread on this CPU, perhaps an interrupted one, walks in this room.
    pub busy: u64,
    pub scratch: Scratch,
    pub cache: RuleCache,
}

/// One element for each CPU; too large for a per-CPU value.
#[btf_map]
pub static CALL_SCRATCH: Array<CallScratch, { CPUS_MAX as usize }> = Array::new();

/// How many samples the program takes of what is counted besides time.
#[btf_map]
pub static HAPPENING_ORDERS: Array<HappeningOrders, 1> = Array::new();

/// Which events record their stack, on each CPU.
#[btf_map]
pub static HAPPENING_PACE: PerCpuArray<Pace, 1> = PerCpuArray::new();

/// The counter of a CPU at its last sample.
#[btf_map]
pub static COUNTER_SEEN: PerCpuArray<CounterSeen, 1> = PerCpuArray::new();

/// The threads whose waits are followed, each at its place.
#[btf_map]
pub static THREADS: Array<waits::Thread, PLACES> = Array::new();

/// Which thread has which place: see [`waits::places`].
#[btf_map]
pub static THREAD_PLACES: Array<[u64; PLACES], 1, MMAPABLE> = Array::new();

/// What the programs of waits do.
#[btf_map]
pub static WAIT_ORDERS: Array<waits::Orders, 1> = Array::new();

/// The wait that is being written for the reader of waits that are not over: one at a time.
#[btf_map]
pub static OPEN_WAIT: Array<waits::OpenWait, 1> = Array::new();

/// Where the kernel keeps what a CPU is doing.
#[btf_map]
pub static CPU_PLACES: Array<CpuPlaces, 1> = Array::new();

/// What the programs know about one CPU.
#[repr(C)]
pub struct ThisCpu {
    /// The address of its run queue; 0 as long as it is not known.
    pub run_queue: u64,
    /// Not 0 if what is read there cannot be what it should be.
    pub is_wrong: u64,
}

#[btf_map]
/// What the programs know about each CPU.
pub static THIS_CPU: PerCpuArray<ThisCpu, 1> = PerCpuArray::new();

/// Counters of each CPU, by [`waits::counter`].
#[btf_map]
pub static WAIT_COUNTERS: PerCpuArray<u64, { waits::counter::COUNT as usize }> = PerCpuArray::new();

/// A wait whose stack is about to be taken.
#[repr(C)]
pub struct PendingWait {
    /// The thread; 0 if there is none.
    pub tid: u32,
    /// Number of frames in `kernel`.
    pub frames: u32,
    /// When the thread joined the CPU.
    pub time_ns: u64,
    /// What is in front of the frames in the record. The frames, in `kernel`, must follow it.
    pub words: [u64; waits::WAIT_WORDS],
    pub kernel: [u64; WAIT_KERNEL_FRAMES_MAX],
    /// The second in which `taken` counts stacks of waits.
    pub second: u64,
    pub taken: u64,
    /// The second in which `wakes` counts stacks of threads that ended a wait.
    pub wakes_second: u64,
    pub wakes: u64,
}

/// On each CPU, the wait that has just ended.
#[btf_map]
pub static PENDING_WAIT: PerCpuArray<PendingWait, 1> = PerCpuArray::new();

/// A ring buffer that is written to only to get an interrupt; its contents mean nothing. Every
/// fourth CPU shares one, because a ring asks for one interrupt at a time.
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

/// Whether each thread name fits `--comm`. A name that is not in here passes; user space
/// judges it and adds the verdict.
#[btf_map]
pub static COMM_VERDICTS: LruHashMap<[u8; COMM_LEN], u8, COMMS_MAX> = LruHashMap::new();

/// The conditions that a target has to meet: bits of `filter`.
#[unsafe(no_mangle)]
pub static FILTER: Global<u32> = Global::new(0xfeed_0001);
/// Maximum number of user frames in a sample.
#[unsafe(no_mangle)]
pub static MAX_USER_FRAMES: Global<u32> = Global::new(0xfeed_0002);
/// How deep in the hierarchy the control group is.
#[unsafe(no_mangle)]
pub static CGROUP_LEVEL: Global<u32> = Global::new(0xfeed_0003);
/// The control group that targets are in.
#[unsafe(no_mangle)]
pub static CGROUP_ID: Global<u64> = Global::new(0xfeed_0004_feed_0004);
/// Bytes waiting in the ring buffer from which on the reader is woken up, even if it does not rest.
#[unsafe(no_mangle)]
pub static WAKE_BYTES: Global<u64> = Global::new(0xfeed_0005_feed_0005);
/// Offset of `flags` in this kernel's `task_struct`; 0 if it is not known.
#[unsafe(no_mangle)]
pub static TASK_FLAGS_OFFSET: Global<u32> = Global::new(0xfeed_0007);
/// Not 0 if all stacks are shipped as well, so that each walk can be checked.
#[unsafe(no_mangle)]
pub static CHECK_WALKS: Global<u32> = Global::new(0xfeed_0008);
/// Offset of `tgid` in this kernel's `task_struct`.
#[unsafe(no_mangle)]
pub static TASK_TGID_OFFSET: Global<u32> = Global::new(0xfeed_0006);

/// The last hit of a breakpoint of ours on a CPU.
#[repr(C)]
pub struct Hit {
    /// Where the kernel has saved the thread's registers: no other thread has its own there. 0
    /// while the rest is written.
    pub registers: u64,
    /// The address of the breakpoint.
    pub ip: u64,
    /// The stack pointer there.
    pub sp: u64,
    /// The word on top of the stack, if the kernel will replace it.
    pub return_address: u64,
}

/// The last breakpoint of ours that was hit on each CPU.
#[btf_map]
pub static LAST_HIT: PerCpuArray<Hit, 1> = PerCpuArray::new();

/// Offset of `utask` in this kernel's `task_struct`; 0 if it is not known.
#[unsafe(no_mangle)]
pub static TASK_UTASK_OFFSET: Global<u32> = Global::new(0xfeed_0009);
/// Offset of `return_instances` in this kernel's `uprobe_task`.
#[unsafe(no_mangle)]
pub static UTASK_RETURNS_OFFSET: Global<u32> = Global::new(0xfeed_000a);
/// Offset of `stack` in this kernel's `return_instance`.
#[unsafe(no_mangle)]
pub static RETURN_STACK_OFFSET: Global<u32> = Global::new(0xfeed_000b);
/// Offset of `orig_ret_vaddr` in this kernel's `return_instance`.
#[unsafe(no_mangle)]
pub static RETURN_ADDRESS_OFFSET: Global<u32> = Global::new(0xfeed_000c);
/// Offset of `next` in this kernel's `return_instance`.
#[unsafe(no_mangle)]
pub static RETURN_NEXT_OFFSET: Global<u32> = Global::new(0xfeed_000d);
/// Offset of `active_uprobe` in this kernel's `uprobe_task`.
#[unsafe(no_mangle)]
pub static STEPPED_ACTIVE_OFFSET: Global<u32> = Global::new(0xfeed_000e);
/// Offset of `vaddr` in this kernel's `uprobe_task`.
#[unsafe(no_mangle)]
pub static STEPPED_ADDRESS_OFFSET: Global<u32> = Global::new(0xfeed_000f);

/// Offset of `pid` in this kernel's `task_struct`.
#[unsafe(no_mangle)]
pub static WAIT_PID_OFFSET: Global<u32> = Global::new(0xfeed_0010);
/// Offset of `tgid` in `task_struct`, as the programs of waits read it.
#[unsafe(no_mangle)]
pub static WAIT_TGID_OFFSET: Global<u32> = Global::new(0xfeed_0011);
/// Offset of `flags` in `task_struct`, as the programs of waits read it.
#[unsafe(no_mangle)]
pub static WAIT_FLAGS_OFFSET: Global<u32> = Global::new(0xfeed_0012);
/// Offset in `task_struct` of the byte that has the bit `in_iowait`.
#[unsafe(no_mangle)]
pub static WAIT_IOWAIT_OFFSET: Global<u32> = Global::new(0xfeed_0013);
/// The bit `in_iowait` in that byte, as a mask.
#[unsafe(no_mangle)]
pub static WAIT_IOWAIT_BIT: Global<u32> = Global::new(0xfeed_0014);
/// Offset of `throttled` in `task_struct`, since Linux 6.18; 0 where there is none.
#[unsafe(no_mangle)]
pub static WAIT_THROTTLED_OFFSET: Global<u32> = Global::new(0xfeed_0015);
/// Offset of `se.cfs_rq` in `task_struct`; 0 where the offset below is 0.
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
