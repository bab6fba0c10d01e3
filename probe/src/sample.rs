//! The output of the probe: samples, and the processes and modules that they refer to.

mod python;

use crate::events::Event;
use crate::events::happening::Happened;
use crate::events::wait::{RawWait, ThreadTotals, WaitCounters};
use crate::ids::{ModuleId, ProcessId};
use crate::owner::Owner;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use symbolize::object::Summary;

pub use python::{Missing, PythonName, PythonNames, PythonStack, PythonStats};

pub use crate::shares::{OverShare, Scarce};
pub use crate::stack::StackBytes;
use crate::tables::MappedRange;
pub use crate::tables::TableStats;
pub use probe_ebpf::Ending;
use probe_ebpf::registers::SCRATCH_REGISTERS;
use probe_ebpf::{Registers, UserFrame};

/// A place in a sampled stack. (`profile::Frame` is the stored form, which also has a kind.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The module that contains the address.
    pub module: ModuleId,
    /// The file offset, or the address itself for modules that are not files. A return address has
    /// already been reduced by one.
    pub address: u64,
}

/// An event of a thread, and the stack that it had then.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The kind of event.
    pub event: Event,
    /// Amount in the event's unit: 1 for each tick of the clock.
    pub weight: u64,
    /// Time on `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The CPU on which the thread ran.
    pub cpu: u32,
    /// The process of the thread.
    pub process: ProcessId,
    /// The number of the thread in the initial pid namespace.
    pub tid: u32,
    /// The thread's name when the sample was taken.
    pub comm: Arc<str>,
    /// The kernel's number for the thread's control group.
    pub cgroup_id: u64,
    /// The frames, innermost first: kernel frames, then user frames.
    pub frames: Vec<Frame>,
    /// Number of kernel frames in `frames`.
    pub kernel_frames: usize,
    /// How the walk ended.
    pub ending: Ending,
    /// The address at which the walk stopped; 0 at the root.
    pub stopped_at: u64,
    /// Whether the walk stopped because the process, or all processes of its user, have more
    /// mappings than their share of the room.
    pub over_share: bool,
    /// Whether the unwind table of a file that it came through was not read yet: then the walk
    /// stopped there for that reason, or callers may be missing although it reached the root.
    pub tables_late: bool,
    /// Whether there is no user stack because the process is outside of our pid namespace.
    pub outside: bool,
    /// The details of a wait; `None` for other events.
    pub wait: Option<RawWait>,
}

/// The kind of a module.
#[derive(Debug, Clone)]
pub enum ModuleKind {
    /// The running kernel, with its modules and BPF programs.
    Kernel,
    /// A mapped file.
    File {
        /// The path as the process sees it: inside its own root.
        path: PathBuf,
        /// The build-id that the linker has written.
        build_id: Option<Vec<u8>>,
        /// Device of the opened file, else as reported by the mapping; 0 if there is neither. It
        /// identifies the file if there is no build-id.
        device: (u32, u32),
        /// The inode number.
        inode: u64,
        /// The identity of the file when it was opened.
        identity: Option<symbolize::FileIdentity>,
        /// The file, opened while the process was alive.
        file: Option<Arc<OwnedFd>>,
        /// What its headers told when it was opened, or why that is unknown.
        summary: Result<Arc<Summary>, symbolize::Reason>,
        /// The root directory of the process that mapped it first, if it differs from ours: files
        /// that belong to it may be below that.
        root: Option<Arc<OwnedFd>>,
        /// Why it could not be opened.
        unreadable: Option<symbolize::Reason>,
    },
    /// The page of code that the kernel gives to every 64-bit process.
    Vdso,
    /// The same page for 32-bit processes, as it was in the memory of the first that had it.
    NarrowVdso {
        /// Its bytes; `None` if they could not be read.
        image: Option<Arc<[u8]>>,
    },
    /// The page at a fixed address that very old programs call.
    Vsyscall,
    /// Executable memory without a file: code of one process made at run time.
    Anonymous {
        /// The process that has the memory.
        process: ProcessId,
        /// Its directory in /proc, opened while it was alive: what the process writes about its
        /// code is found through it, and never another process's.
        directory: Option<Arc<OwnedFd>>,
    },
    /// Functions of Python in a file, shared by all processes. The address of a frame is a number
    /// in `names`.
    Python {
        /// The file's name in the interpreter, safe to print; `None` for code that could not be
        /// read.
        file: Option<Arc<str>>,
        /// Functions and lines by number.
        names: Arc<PythonNames>,
    },
    /// Addresses of one process for which no mapping is known.
    Unmapped {
        /// The process that has the addresses.
        process: ProcessId,
    },
}

/// A module and its kind, reported once, before the first sample that uses it.
#[derive(Debug, Clone)]
pub struct Module {
    /// Its number in this run.
    pub id: ModuleId,
    /// Its kind.
    pub kind: ModuleKind,
    /// The user who controls its content: the only user, besides root, who can write to the file,
    /// or who started the process that made the code. Work for it is charged to that user.
    /// [`NOBODY`](crate::shares::NOBODY) if there may be several.
    pub user: u32,
}

/// A process, reported once before its first sample and again when it changes.
#[derive(Debug, Clone)]
pub struct ProcessInfo {
    /// Its number in this run; a pid may be used again.
    pub id: ProcessId,
    /// Its number in the initial pid namespace.
    pub pid: u32,
    /// The name of its first thread.
    pub comm: Arc<str>,
    /// Its user, control group and more.
    pub owner: Owner,
    /// Whether it has ended.
    pub exited: bool,
}

/// Everything that happened since the last batch, in order of time.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Modules that were seen for the first time.
    pub modules: Vec<Module>,
    /// Modules that no sample after this batch will have.
    pub gone: Vec<ModuleId>,
    /// Processes that are new or have changed.
    pub processes: Vec<ProcessInfo>,
    /// Samples in order of time.
    pub samples: Vec<Sample>,
    /// Totals of this run.
    pub counters: Counters,
    /// For each CPU that has lost samples in this run, by number: the samples that found no room in
    /// a buffer.
    pub lost_by_cpu: Vec<(u32, u64)>,
    /// All samples until this time are in this batch or an earlier one.
    pub complete_until_ns: u64,
    /// Number of processes and threads that are left of those named as targets, and of their
    /// children. `None` if none were named.
    pub targets_alive: Option<usize>,
    /// The current unwind tables.
    pub tables: TableStats,
    /// Users for whom something is left out now because they have used up their share, or because
    /// of the bounds of one process.
    pub over_share: Vec<OverShare>,
    /// Totals of this run.
    pub python: PythonStats,
    /// Totals of this run; see `Config::check_walks`.
    pub walks: WalkCheck,
    /// Stacks that were walked in user space, see `Config::keep_walks`.
    pub kept_walks: Vec<KeptWalk>,
    /// What threads have been doing since they were first seen: of those that ended since the last
    /// batch, and once a second of all others. Empty unless `Config::waits`.
    pub threads: Vec<ThreadTotals>,
    /// Totals of this run.
    pub waits: WaitCounters,
    /// Totals of this run; 0 unless `Config::happening`.
    pub happened: Happened,
}

/// All input of the walk of one copied stack, and its result, to compare another unwinder with it.
#[derive(Debug, Clone)]
pub struct KeptWalk {
    /// The process that has the stack.
    pub pid: u32,
    /// The main registers when the copy was made.
    pub registers: Registers,
    /// The other registers that a walk may need, in the walk's order.
    pub scratch: [u64; SCRATCH_REGISTERS],
    /// The copied stack.
    pub stack: StackBytes,
    /// The executable mappings of the process, by address.
    pub mappings: Vec<MappedRange>,
    /// The frames found, innermost first.
    pub frames: Vec<UserFrame>,
    /// How the walk ended.
    pub ending: Ending,
    /// Whether the table of some file that the process maps was not loaded yet.
    pub is_early: bool,
}

/// Results of walking stacks twice: in the usual way, and from a copy of the stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WalkCheck {
    /// Number of walks in which both found the same frames.
    pub same: u64,
    /// Number of walks of which one ended earlier: the copy was too short, the stack goes on
    /// elsewhere, or a new mapping was not known yet. Up to there both are the same.
    pub same_as_far: u64,
    /// Number of walks that contradict each other.
    pub different: u64,
    /// The first few differences, in words.
    pub examples: Vec<String>,
}

/// Exact counts since the start of the run, from both sides of the ring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Samples that the kernel side wrote.
    pub taken: u64,
    /// Samples that found the ring buffer full.
    pub lost: u64,
    /// Ticks that the target filter dropped.
    pub filtered: u64,
    /// Side-band records (mmap, exec, fork, exit) that the kernel could not deliver.
    pub events_lost: u64,
    /// Nanoseconds spent in the BPF program.
    pub kernel_ns: u64,
    /// Upper limit of the CPU time, in nanoseconds summed over CPUs, for which a CPU that was turned on
    /// during the run was not sampled yet.
    pub unsampled_ns: u64,
}
