//! What leaves the probe: samples, and the processes and modules they speak of.

use crate::events::Event;
use crate::ids::{ModuleId, ProcessId};
use crate::owner::Owner;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

pub use crate::stack::StackBytes;
use crate::tables::MappedRange;
pub use crate::tables::TableStats;
pub use probe_ebpf::Ending;
use probe_ebpf::{Registers, UserFrame};

/// One place on a stack, as it was sampled. (A `profile::Frame` is one as it is kept: it
/// has a kind as well.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    pub module: ModuleId,
    /// File offset, or the address itself for modules that are no files. A
    /// return address has already been moved back by one.
    pub address: u64,
}

/// One event that happened to a thread, and the stack that it had then.
#[derive(Debug, Clone)]
pub struct Sample {
    /// What happened.
    pub event: Event,
    /// How much of it, in the event's unit: 1 for each tick of the clock.
    pub weight: u64,
    /// `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    pub cpu: u32,
    pub process: ProcessId,
    pub tid: u32,
    /// The thread's name when the sample was taken.
    pub comm: Arc<str>,
    pub cgroup_id: u64,
    /// Innermost first: kernel frames, then user frames.
    pub frames: Vec<Frame>,
    /// How many of `frames` are kernel frames.
    pub kernel_frames: usize,
    pub ending: Ending,
    /// Where the walk stopped; 0 at the root.
    pub stopped_at: u64,
    /// It stopped there because the process, or its user's processes together, have
    /// more mappings than their share of the room.
    pub over_share: bool,
}

/// What a module is.
#[derive(Debug, Clone)]
pub enum ModuleKind {
    Kernel,
    /// A mapped file.
    File {
        /// As the process sees it: inside its own root.
        path: PathBuf,
        build_id: Option<Vec<u8>>,
        /// Of the file that was opened, else as the mapping told; 0 if neither
        /// did. They tell it again where there is no build-id.
        device: (u32, u32),
        inode: u64,
        /// What the file was when it was opened.
        identity: Option<symbolize::FileIdentity>,
        /// Opened while the process was alive.
        file: Option<Arc<OwnedFd>>,
        /// The root directory of the process that mapped it first, if it is
        /// not ours: what belongs to the file may lie below it.
        root: Option<Arc<OwnedFd>>,
        /// Why it could not be opened.
        unreadable: Option<symbolize::Reason>,
    },
    Vdso,
    /// That of 32-bit processes, as it was in the memory of the first that had it.
    NarrowVdso {
        image: Option<Arc<[u8]>>,
    },
    Vsyscall,
    /// Executable memory without a file: code made at run time, of one process.
    Anonymous {
        process: ProcessId,
        /// Its directory in /proc, opened while it was alive: what the process
        /// tells of its code is found from there, and never another process's.
        directory: Option<Arc<OwnedFd>>,
    },
    /// No mapping is known for these addresses of one process.
    Unmapped {
        process: ProcessId,
    },
}

/// A module and what it is, told once, before the first sample that uses it.
#[derive(Debug, Clone)]
pub struct Module {
    pub id: ModuleId,
    pub kind: ModuleKind,
}

/// A process, told once before its first sample and again when it changes.
#[derive(Debug, Clone)]
pub struct ProcessInfo {
    pub id: ProcessId,
    pub pid: u32,
    pub comm: Arc<str>,
    pub owner: Owner,
    pub exited: bool,
}

/// What happened since the last batch, in order of time.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    pub modules: Vec<Module>,
    pub processes: Vec<ProcessInfo>,
    pub samples: Vec<Sample>,
    /// Totals of this run.
    pub counters: Counters,
    /// Of this run, those CPUs that lost some, rising: the samples that found no room
    /// in a buffer.
    pub lost_by_cpu: Vec<(u32, u64)>,
    /// Samples up to here are in this batch or an earlier one.
    pub complete_until_ns: u64,
    /// Of the processes and threads that were named as targets, and the
    /// children of those: how many are left. Nothing where none was named.
    pub targets_alive: Option<usize>,
    /// The unwind tables that are in use now.
    pub tables: TableStats,
    /// Users, and how many of their processes are not walked because together they have
    /// more mappings than their share of the room.
    pub over_share: Vec<(u32, usize)>,
    /// Processes that have more mappings than are kept of one.
    pub processes_cut: usize,
    /// Totals of this run; see `Config::check_walks`.
    pub walks: WalkCheck,
    /// Stacks that were walked here, see `Config::keep_walks`.
    pub kept_walks: Vec<KeptWalk>,
}

/// Everything that the walk of one copied stack went by, and what it found: for
/// another unwinder to be compared with.
#[derive(Debug, Clone)]
pub struct KeptWalk {
    pub pid: u32,
    pub registers: Registers,
    pub stack: StackBytes,
    /// What the process had mapped to run, by address.
    pub mappings: Vec<MappedRange>,
    /// Innermost first.
    pub frames: Vec<UserFrame>,
    pub ending: Ending,
}

/// Walks that were done twice: as always, and from a copy of the stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WalkCheck {
    pub same: u64,
    /// One of them ended earlier: the copy was too short, the stack goes on
    /// elsewhere, or what was just mapped was not known yet. Until there both say
    /// the same.
    pub same_as_far: u64,
    pub different: u64,
    /// The first few that differ, in words.
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
    /// Side-band records (mmap, exec, fork, exit) the kernel could not deliver.
    pub events_lost: u64,
    /// Nanoseconds spent in the BPF program.
    pub kernel_ns: u64,
}
