//! A *report* answers "what used the CPUs in this window?": rows that are computed once and never
//! change, for the screen, batch output and files.

use crate::pieces::Pieces;
use crate::rates::Reweighed;
use crate::time::Window;
use crate::{
    Activity, Ending, FrameId, FrameKind, FunctionId, NoName, ProcessDetails, ProcessId, RowName,
    Waits,
};
use std::sync::{Arc, OnceLock};

/// Number of seconds in the trend of each row.
pub const TREND_LEN: usize = 10;

/// The largest count of any second in any row's trend. Each is computed on first use and cached: a
/// screen needs it for every frame, and there may be 100,000 threads.
#[derive(Debug, Clone, Default)]
pub struct TrendPeaks {
    functions: OnceLock<u64>,
    processes: OnceLock<u64>,
    threads: OnceLock<u64>,
}

/// The result of one query.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Number of the report within a run, rising by one.
    pub generation: u64,
    /// The time that it covers, limited to the history.
    pub window: Window,
    /// Number of samples in the window: the base of every percentage here.
    pub samples: u64,
    /// Samples per second of a busy CPU, as they are counted here; 0 if unknown.
    pub rate_hz: u32,
    /// Statistics of the weights, if the rate changed within the window.
    pub reweighed: Option<Reweighed>,
    /// Whether the number of samples is unknown, because only their total weight is stored.
    pub hides_samples: bool,
    /// Number of samples in the whole history.
    pub samples_kept: u64,
    /// Number of seconds that the history goes back from its newest one.
    pub kept_seconds: f64,
    /// What is missing in the counted stacks and names.
    pub completeness: Completeness,
    /// Functions by self samples, falling; ties by total, then name.
    pub functions: Vec<FunctionRow>,
    /// The function of each frame, by frame number.
    pub owners: Pieces<FunctionId>,
    /// Processes by samples, falling.
    pub processes: Vec<ProcessRow>,
    /// Threads by samples, falling.
    pub threads: Vec<ThreadRow>,
    /// CPUs that have samples, by number.
    pub cpus: Vec<CpuRow>,
    /// Cached peaks, see [`Report::peak_of_functions`] and its neighbours. Rows must not change
    /// after these were called.
    pub peaks: TrendPeaks,
}

/// What the stacks and names of a window lack.
#[derive(Debug, Clone, Default)]
pub struct Completeness {
    /// Number of samples that had a user stack to walk.
    pub user_stacks: u64,
    /// Number of these that reached the thread's root.
    pub whole: u64,
    /// Samples by the way their walk ended; only endings that occurred.
    pub endings: Vec<(Ending, u64)>,
    /// Number of frames of all samples in the window, each occurrence counted.
    pub frames: u64,
    /// Frames that have a name.
    pub named: u64,
    /// Frames whose name is still being looked up.
    pub pending: u64,
    /// Frames without a name by reason, most first.
    pub unnamed: Vec<(NoName, u64)>,
}

/// One function.
#[derive(Debug, Clone)]
pub struct FunctionRow {
    /// Its current number in this profile.
    pub id: FunctionId,
    /// Its name, or `module+0xoffset` while it has none: the offset of its start if that is known,
    /// else the sampled one.
    pub name: Arc<str>,
    /// The short name of its module: the file's last path component, `[kernel]`, `[vdso]`.
    pub module: Arc<str>,
    /// The whole path of its module, if it has one.
    pub module_path: Arc<str>,
    /// On which side of the kernel boundary its code is.
    pub kind: FrameKind,
    /// One of its sampled addresses, relative to the module.
    pub address: u64,
    /// Whether `name` is final.
    pub name_state: RowName,
    /// The source file at which most of its self samples hit; without self samples, that of any of
    /// its places. `None` if unknown.
    pub file: Option<Arc<str>>,
    /// The line there; 0 if unknown.
    pub line: u32,
    /// Whether it was found only as inlined into other functions.
    pub inlined: bool,
    /// Number of addresses counted in it because they are code that is in no map; 0 if it is a
    /// function.
    pub addresses: u32,
    /// Number of samples with it on top of the stack.
    pub self_samples: u64,
    /// Number of samples with it anywhere on the stack; recursion counts once.
    pub total_samples: u64,
    /// The waits among `total_samples`; `None` if there are none, or if their lengths are unknown.
    pub waits: Option<Waits>,
    /// Self samples of the ten seconds before the window's end, oldest first,
    /// even if the window is shorter.
    pub trend: [u64; TREND_LEN],
}

/// One process.
#[derive(Debug, Clone)]
pub struct ProcessRow {
    /// The number of one life of a process.
    pub id: ProcessId,
    /// Its pid; other processes may have had it before.
    pub pid: u32,
    /// Its name.
    pub comm: Arc<str>,
    /// Number of samples of all its threads.
    pub samples: u64,
    /// Number of samples that hit in the kernel.
    pub kernel_samples: u64,
    /// Number of threads with at least one sample.
    pub threads: u32,
    /// Name of the function that has most of its self samples; `None` without a sample.
    pub top_function: Option<Arc<str>>,
    /// The most frequent wait of that function, as its frame is named; `None` if the function ran,
    /// or if waits are not counted.
    pub top_wait: Option<Arc<str>>,
    /// Whether it has ended.
    pub exited: bool,
    /// Its owner and how it was started.
    pub details: ProcessDetails,
    /// Samples of the ten seconds before the window's end, oldest first, even if the window
    /// is shorter.
    pub trend: [u64; TREND_LEN],
    /// What its threads did together; `None` if it is unknown for this window.
    pub activity: Option<Activity>,
}

/// One thread.
#[derive(Debug, Clone)]
pub struct ThreadRow {
    /// The process that it belongs to.
    pub process: ProcessId,
    /// The pid of that process.
    pub pid: u32,
    /// The thread's tid.
    pub tid: u32,
    /// The thread's own name.
    pub comm: Arc<str>,
    /// Number of samples that count.
    pub samples: u64,
    /// Number of samples that hit in the kernel.
    pub kernel_samples: u64,
    /// Name of the function that has most of its self samples; `None` without a sample.
    pub top_function: Option<Arc<str>>,
    /// The most frequent wait of that function, as its frame is named; `None` if the function ran,
    /// or if waits are not counted.
    pub top_wait: Option<Arc<str>>,
    /// Samples of the ten seconds before the window's end, oldest first, even if the window
    /// is shorter.
    pub trend: [u64; TREND_LEN],
    /// What it did; `None` if it is unknown for this window.
    pub activity: Option<Activity>,
}

/// One CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuRow {
    /// Its number.
    pub cpu: u16,
    /// Number of samples that were taken on it.
    pub samples: u64,
    /// Samples that hit in the kernel.
    pub kernel_samples: u64,
}

/// Samples of a run whose stack walks ended for one cause in one module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// How the walks ended.
    pub cause: Ending,
    /// The module of the last frame that was found; `-` if there was none.
    pub module: Arc<str>,
    /// Number of samples of the whole run.
    pub samples: u64,
}

/// Samples of a run in programs of a language whose functions are found separately from the native
/// ones, such as Python.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanguageStacks {
    /// Name of the language as displayed: `Python`.
    pub language: &'static str,
    /// Number of samples with all functions of that language.
    pub whole: u64,
    /// Number of samples that lack some or all of them, by reason; the reason is displayed after
    /// the number: `were taken before the thread was known`.
    pub lacking: Vec<(&'static str, u64)>,
    /// Number of samples on a CPU for which it is known whether the thread held the language's
    /// global lock, such as Python's GIL, which one thread of a process can hold at a time.
    pub lock_known: u64,
    /// Number of those in `lock_known` whose thread held it.
    pub lock_held: u64,
}

impl LanguageStacks {
    /// Number of samples in programs of that language.
    pub fn samples(&self) -> u64 {
        self.whole + self.lacking.iter().map(|(_, samples)| samples).sum::<u64>()
    }
}

/// Memory used by proftop, in bytes, by purpose. The rest, which is not broken down, is code,
/// memory shared with the kernel, reports, and the allocator's reserve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnMemory {
    /// Samples with their stacks and names.
    pub samples: u64,
    /// Symbols and debug information that were read and are cached.
    pub symbols: u64,
    /// The processes that parse files. They have their own memory, which is not part of proftop's
    /// resident memory.
    pub helpers: u64,
}

/// What the sampler reports about itself; the profile only carries it.
#[derive(Debug, Clone, Default)]
pub struct Health {
    /// Number of samples lost in the window because a buffer was full.
    pub lost: u64,
    /// Number of samples taken in this run so far.
    pub taken_run: u64,
    /// Number of samples lost in this run so far.
    pub lost_run: u64,
    /// CPU use of proftop itself, kernel part included, in percent of one CPU.
    pub own_cpu_percent: f64,
    /// Resident memory of proftop, in bytes.
    pub own_rss_bytes: u64,
    /// That memory by purpose.
    pub own_memory: OwnMemory,
    /// Kernel memory of the unwind tables, in bytes.
    pub table_bytes: u64,
    /// Where stack walks of this run stopped before the root, by cause and module, most frequent
    /// first; rare ones are left out.
    pub stops: Vec<Stop>,
    /// How complete the stacks of this run are, for each language whose functions are found
    /// separately and that ran.
    pub languages: Vec<LanguageStacks>,
    /// Sentences about what this source cannot provide, and what was degraded and why.
    pub notes: Vec<String>,
}

impl Report {
    /// The largest count of any second of any function's trend; 0 without functions.
    pub fn peak_of_functions(&self) -> u64 {
        let trends = || self.functions.iter().map(|row| &row.trend);
        *self.peaks.functions.get_or_init(|| peak(trends()))
    }

    /// The largest count of any second of any process's trend; 0 without processes.
    pub fn peak_of_processes(&self) -> u64 {
        let trends = || self.processes.iter().map(|row| &row.trend);
        *self.peaks.processes.get_or_init(|| peak(trends()))
    }

    /// The largest count of any second of any thread's trend; 0 without threads.
    pub fn peak_of_threads(&self) -> u64 {
        let trends = || self.threads.iter().map(|row| &row.trend);
        *self.peaks.threads.get_or_init(|| peak(trends()))
    }

    /// The `±` of `count` in `samples`, in percentage points, using the evidence of the samples. 0
    /// only if chance had no part in it, because the stack of every wait was taken. `None` if the
    /// number of samples is unknown.
    pub fn band_points(&self, count: u64, samples: u64) -> Option<f64> {
        if self.hides_samples {
            return None;
        }
        let evidence = self.reweighed.map_or(1.0, |told| told.drawn);
        if evidence.is_infinite() {
            return Some(0.0);
        }
        let as_good_as = |samples: u64| (samples as f64 * evidence).round() as u64;
        Some(crate::band_points(as_good_as(count), as_good_as(samples)))
    }

    /// Number of digits after the point for percentages of `samples`, using their evidence; one if
    /// the number of samples is unknown.
    pub fn percent_digits(&self, samples: u64) -> usize {
        if self.hides_samples {
            return 1;
        }
        let evidence = self.reweighed.map_or(1.0, |told| told.evidence);
        crate::percent_digits((samples as f64 * evidence).round() as u64)
    }

    /// Returns the index of the row of the function that `frame` currently belongs to.
    pub fn find_function(&self, frame: FrameId) -> Option<usize> {
        let owner = self.owners.get(frame.0 as usize).copied().unwrap_or(frame);
        self.functions.iter().position(|row| row.id == owner)
    }
}

/// The largest count of any second of these trends.
fn peak<'a>(trends: impl Iterator<Item = &'a [u64; TREND_LEN]>) -> u64 {
    trends.flatten().copied().max().unwrap_or(0)
}
