//! What leaves the probe: samples, and the processes and modules they speak of.

mod python;

use crate::events::Event;
use crate::events::happening::Happened;
use crate::events::wait::{RawWait, ThreadTotals, WaitCounters};
use crate::ids::{ModuleId, ProcessId};
use crate::owner::Owner;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

pub use python::{Missing, PythonName, PythonNames, PythonStack, PythonStats};

pub use crate::shares::{OverShare, Scarce};
pub use crate::stack::StackBytes;
use crate::tables::MappedRange;
pub use crate::tables::TableStats;
pub use probe_ebpf::Ending;
use probe_ebpf::registers::SCRATCH_REGISTERS;
use probe_ebpf::{Registers, UserFrame};

/// One place on a stack, as it was sampled. (A `profile::Frame` is one as it is kept: it
/// has a kind as well.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    /// What the address is in.
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
    /// Where it ran.
    pub cpu: u32,
    /// The process that it happened to.
    pub process: ProcessId,
    /// The thread, as the first pid namespace numbers it.
    pub tid: u32,
    /// The thread's name when the sample was taken.
    pub comm: Arc<str>,
    /// The kernel's number for the thread's control group.
    pub cgroup_id: u64,
    /// Innermost first: kernel frames, then user frames.
    pub frames: Vec<Frame>,
    /// How many of `frames` are kernel frames.
    pub kernel_frames: usize,
    /// How the walk ended.
    pub ending: Ending,
    /// Where the walk stopped; 0 at the root.
    pub stopped_at: u64,
    /// It stopped there because the process, or its user's processes together, have
    /// more mappings than their share of the room.
    pub over_share: bool,
    /// The unwind table of a file that it came through was not read yet: it stopped there for
    /// that reason, or callers may be missing although it reached the root.
    pub tables_late: bool,
    /// There is no user stack because the process is outside of the pid namespace that we are in.
    pub outside: bool,
    /// Of a wait, what is known of it.
    pub wait: Option<RawWait>,
}

/// What a module is.
#[derive(Debug, Clone)]
pub enum ModuleKind {
    /// The running kernel, with its modules and BPF programs.
    Kernel,
    /// A mapped file.
    File {
        /// As the process sees it: inside its own root.
        path: PathBuf,
        /// The linker's number of the build.
        build_id: Option<Vec<u8>>,
        /// Of the file that was opened, else as the mapping told; 0 if neither
        /// did. They tell it again where there is no build-id.
        device: (u32, u32),
        /// The number of the file there.
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
    /// The page of code that the kernel gives to every 64-bit process.
    Vdso,
    /// That of 32-bit processes, as it was in the memory of the first that had it.
    NarrowVdso {
        /// Its bytes; `None` if they could not be read.
        image: Option<Arc<[u8]>>,
    },
    /// The page at a fixed address that very old programs call.
    Vsyscall,
    /// Executable memory without a file: code made at run time, of one process.
    Anonymous {
        /// Whose memory it is.
        process: ProcessId,
        /// Its directory in /proc, opened while it was alive: what the process
        /// tells of its code is found from there, and never another process's.
        directory: Option<Arc<OwnedFd>>,
    },
    /// Functions of Python in a file, of all processes. Where a frame is is no address, but
    /// a number that `names` knows.
    Python {
        /// As the interpreter knows it, safe to print; `None` for code that could not be
        /// read.
        file: Option<Arc<str>>,
        /// What the numbers stand for.
        names: Arc<PythonNames>,
    },
    /// No mapping is known for these addresses of one process.
    Unmapped {
        /// Whose addresses they are.
        process: ProcessId,
    },
}

/// A module and what it is, told once, before the first sample that uses it.
#[derive(Debug, Clone)]
pub struct Module {
    /// Its number in this run.
    pub id: ModuleId,
    /// What it is.
    pub kind: ModuleKind,
    /// Whose word its content is: the only user, besides root, who can write to the file, or
    /// who started the process that made the code. Work for it is counted as theirs.
    /// [`NOBODY`](crate::shares::NOBODY) if that could be several.
    pub user: u32,
}

/// A process, told once before its first sample and again when it changes.
#[derive(Debug, Clone)]
pub struct ProcessInfo {
    /// Its number in this run; a pid may come again.
    pub id: ProcessId,
    /// As the first pid namespace numbers it.
    pub pid: u32,
    /// The name of its first thread.
    pub comm: Arc<str>,
    /// Who it belongs to.
    pub owner: Owner,
    /// It has ended.
    pub exited: bool,
}

/// What happened since the last batch, in order of time.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Those that were seen for the first time.
    pub modules: Vec<Module>,
    /// Those that are new, or have changed.
    pub processes: Vec<ProcessInfo>,
    /// In order of time.
    pub samples: Vec<Sample>,
    /// Totals of this run.
    pub counters: Counters,
    /// Of this run, those CPUs that lost some, rising: the samples that found no room
    /// in a buffer.
    pub lost_by_cpu: Vec<(u32, u64)>,
    /// Samples up to here are in this batch or an earlier one.
    pub complete_until_ns: u64,
    /// Of the processes and threads that were named as targets, and the
    /// children of those: how many are left. `None` where none was named.
    pub targets_alive: Option<usize>,
    /// The unwind tables that are in use now.
    pub tables: TableStats,
    /// Who is cut now because they have their share already.
    pub over_share: Vec<OverShare>,
    /// Processes that have more mappings than are kept of one.
    pub processes_cut: usize,
    /// Totals of this run.
    pub python: PythonStats,
    /// Totals of this run; see `Config::check_walks`.
    pub walks: WalkCheck,
    /// Stacks that were walked here, see `Config::keep_walks`.
    pub kept_walks: Vec<KeptWalk>,
    /// What threads have been doing since they are known: those that ended since the last
    /// batch, and once a second all others. Empty unless `Config::waits`.
    pub threads: Vec<ThreadTotals>,
    /// Totals of this run.
    pub waits: WaitCounters,
    /// Totals of this run; 0 unless `Config::happening`.
    pub happened: Happened,
}

/// Everything that the walk of one copied stack went by, and what it found: for
/// another unwinder to be compared with.
#[derive(Debug, Clone)]
pub struct KeptWalk {
    /// Whose stack it is.
    pub pid: u32,
    /// As they were when the copy was made.
    pub registers: Registers,
    /// The others that a walk may need, in the order in which it keeps them.
    pub scratch: [u64; SCRATCH_REGISTERS],
    /// The copy.
    pub stack: StackBytes,
    /// What the process had mapped to run, by address.
    pub mappings: Vec<MappedRange>,
    /// Innermost first.
    pub frames: Vec<UserFrame>,
    /// How the walk ended.
    pub ending: Ending,
    /// Of some file that the process maps the table was not there yet.
    pub is_early: bool,
}

/// Walks that were done twice: as always, and from a copy of the stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WalkCheck {
    /// Both found the same frames.
    pub same: u64,
    /// One of them ended earlier: the copy was too short, the stack goes on
    /// elsewhere, or what was just mapped was not known yet. Until there both say
    /// the same.
    pub same_as_far: u64,
    /// They contradict each other.
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
