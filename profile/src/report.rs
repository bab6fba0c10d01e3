//! A *report* is the answer to "what burned the CPUs in this window?": plain
//! rows, computed once and never changed, for the screen, batch output and
//! files alike.

use crate::rates::Reweighed;
use crate::time::Window;
use crate::{
    Activity, Ending, FrameId, FrameKind, FunctionId, NoName, ProcessDetails, ProcessId, RowName,
    Waits,
};
use std::sync::{Arc, OnceLock};

/// The seconds of trend kept per row.
pub const TREND_LEN: usize = 10;

/// The largest count of any second of any row's trend. Each is found when it is first asked
/// for, and kept: a screen asks for it with every frame, and there may be 100,000 threads.
#[derive(Debug, Clone, Default)]
pub struct TrendPeaks {
    functions: OnceLock<u64>,
    processes: OnceLock<u64>,
    threads: OnceLock<u64>,
}

/// Everything one query found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Counts up by one with each report of a run.
    pub generation: u64,
    /// The time that it covers, as far as history goes.
    pub window: Window,
    /// Samples in the window: the base of every percentage here.
    pub samples: u64,
    /// Samples per second of a busy CPU, as they are counted here; 0 if that is not
    /// known.
    pub rate_hz: u32,
    /// If the rate changed within the window.
    pub reweighed: Option<Reweighed>,
    /// Whether it is not known how many samples there were, only what they count together.
    pub hides_samples: bool,
    /// Samples in all of the history that is kept.
    pub samples_kept: u64,
    /// Seconds that the history goes back from its newest one.
    pub kept_seconds: f64,
    /// What is missing of the stacks and names that were counted.
    pub completeness: Completeness,
    /// By self samples, falling; ties by total, then name.
    pub functions: Vec<FunctionRow>,
    /// The function of each frame, by frame number.
    pub owners: Arc<Vec<FunctionId>>,
    /// By samples, falling.
    pub processes: Vec<ProcessRow>,
    /// By samples, falling.
    pub threads: Vec<ThreadRow>,
    /// By number; only those with samples.
    pub cpus: Vec<CpuRow>,
    /// See [`Report::peak_of_functions`] and its neighbours. Rows must not change after those
    /// were asked.
    pub peaks: TrendPeaks,
}

/// What the window's stacks and names lack.
#[derive(Debug, Clone, Default)]
pub struct Completeness {
    /// Samples that had a user stack to walk.
    pub user_stacks: u64,
    /// Those that reached the thread's root.
    pub whole: u64,
    /// Samples by how their walk ended; only what occurred.
    pub endings: Vec<(Ending, u64)>,
    /// Frames of all samples in the window, each occurrence counted.
    pub frames: u64,
    /// Frames that have a name.
    pub named: u64,
    /// Frames whose name is on its way.
    pub pending: u64,
    /// Frames without a name, by reason, falling.
    pub unnamed: Vec<(NoName, u64)>,
}

/// One function.
#[derive(Debug, Clone)]
pub struct FunctionRow {
    /// The number that it has in this profile by now.
    pub id: FunctionId,
    /// Its name, or `module+0xoffset` while it has none: where it starts, if
    /// that is known, else where it was sampled.
    pub name: Arc<str>,
    /// Short: the file's last path part, `[kernel]`, `[vdso]`.
    pub module: Arc<str>,
    /// Long: the whole path where there is one.
    pub module_path: Arc<str>,
    /// On which side of the kernel boundary its code is.
    pub kind: FrameKind,
    /// An address of it that was sampled, inside the module.
    pub address: u64,
    /// Whether `name` is final.
    pub name_state: RowName,
    /// The source file of the place where most of its own samples hit, or of
    /// some place of it where none did, if known.
    pub file: Option<Arc<str>>,
    /// The line there; 0 if it is not known.
    pub line: u32,
    /// Whether it was only found inlined into other functions.
    pub inlined: bool,
    /// Addresses that are counted in it because they are code that no map names; 0 if it is
    /// a function.
    pub addresses: u32,
    /// Samples with it on top of the stack.
    pub self_samples: u64,
    /// Samples with it anywhere on the stack; recursion counts once.
    pub total_samples: u64,
    /// The waits among `total_samples`; `None` if there are none, or if nothing tells how
    /// long each was.
    pub waits: Option<Waits>,
    /// Self samples of the ten seconds before the window's end, oldest first,
    /// even if the window is shorter.
    pub trend: [u64; TREND_LEN],
}

/// One process.
#[derive(Debug, Clone)]
pub struct ProcessRow {
    /// The number of this one life of a process.
    pub id: ProcessId,
    /// The number that the system gave it; others may have had it before.
    pub pid: u32,
    /// Its name.
    pub comm: Arc<str>,
    /// Samples of all its threads.
    pub samples: u64,
    /// Samples that hit while it was in the kernel.
    pub kernel_samples: u64,
    /// Threads with at least one sample.
    pub threads: u32,
    /// Self samples of the function that burned most here.
    pub top_function: Option<Arc<str>>,
    /// What that function waited for most, as the frame for it is called; `None` where it ran, or
    /// where waits are not counted.
    pub top_wait: Option<Arc<str>>,
    /// Whether it has ended.
    pub exited: bool,
    /// Whose it is, and as what it was started.
    pub details: ProcessDetails,
    /// Samples of the ten seconds before the window's end, oldest first, even if the window
    /// is shorter.
    pub trend: [u64; TREND_LEN],
    /// What its threads did together; `None` if that was not told for this window.
    pub activity: Option<Activity>,
}

/// One thread.
#[derive(Debug, Clone)]
pub struct ThreadRow {
    /// The process that it belongs to.
    pub process: ProcessId,
    /// The number that the system gave that process.
    pub pid: u32,
    /// The number that the system gave the thread.
    pub tid: u32,
    /// The thread's own name.
    pub comm: Arc<str>,
    /// Samples that count.
    pub samples: u64,
    /// Samples that hit while it was in the kernel.
    pub kernel_samples: u64,
    /// Name of the function that has most self samples here; `None` without a sample.
    pub top_function: Option<Arc<str>>,
    /// What that function waited for most, as the frame for it is called; `None` where it ran, or
    /// where waits are not counted.
    pub top_wait: Option<Arc<str>>,
    /// Samples of the ten seconds before the window's end, oldest first, even if the window
    /// is shorter.
    pub trend: [u64; TREND_LEN],
    /// What it did; `None` if that was not told for this window.
    pub activity: Option<Activity>,
}

/// One CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuRow {
    /// Its number.
    pub cpu: u16,
    /// Samples that were taken on it.
    pub samples: u64,
    /// Samples that hit in the kernel.
    pub kernel_samples: u64,
}

/// Samples of a run whose stacks ended for one cause in one module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// How the walks ended.
    pub cause: Ending,
    /// The module of the last frame that was found; `-` where there was none.
    pub module: Arc<str>,
    /// Samples of the whole run.
    pub samples: u64,
}

/// Samples of a run in programs of a language whose functions are found beside the native ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanguageStacks {
    /// As a person would write it: `Python`.
    pub language: &'static str,
    /// Samples with all functions of that language.
    pub whole: u64,
    /// Samples that lack some or all, by the reason, which goes behind the number: `were taken
    /// before the thread was known`.
    pub lacking: Vec<(&'static str, u64)>,
    /// Samples on a CPU of which it is known whether the thread had the lock that one thread of
    /// a process has at a time to run that language, as Python's GIL.
    pub lock_known: u64,
    /// Those of `lock_known` whose thread had it.
    pub lock_held: u64,
}

impl LanguageStacks {
    /// Samples in programs of that language.
    pub fn samples(&self) -> u64 {
        self.whole + self.lacking.iter().map(|(_, samples)| samples).sum::<u64>()
    }
}

/// What proftop takes memory for, in bytes. What is not told apart is code, what is shared
/// with the kernel, reports, and what the allocator has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnMemory {
    /// Samples with their stacks and names.
    pub samples: u64,
    /// Symbols and debug information that were read and may be asked again.
    pub symbols: u64,
    /// The processes that read files. It is theirs, and no part of what is resident.
    pub helpers: u64,
}

/// What the sampler says of itself; the profile only carries it.
#[derive(Debug, Clone, Default)]
pub struct Health {
    /// Samples lost in the window because a buffer was full.
    pub lost: u64,
    /// Samples taken in this run so far.
    pub taken_run: u64,
    /// Samples lost in this run so far.
    pub lost_run: u64,
    /// Percent of one CPU that proftop itself costs, kernel part included.
    pub own_cpu_percent: f64,
    /// Memory of proftop that is resident, in bytes.
    pub own_rss_bytes: u64,
    /// What memory is taken for.
    pub own_memory: OwnMemory,
    /// Kernel memory that holds unwind tables.
    pub table_bytes: u64,
    /// Where the walks of this run stopped that did not reach the root, by cause
    /// and module, falling; the most frequent ones.
    pub stops: Vec<Stop>,
    /// How complete the stacks of this run are by language, where one has functions beside
    /// the native ones and something ran that is written in it.
    pub languages: Vec<LanguageStacks>,
    /// Sentences: what this source cannot give, what was degraded and why.
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

    /// The `±` of `count` in `samples`, in percentage points, as much as they tell; 0 only where
    /// chance had no part in it, as every wait gave its stack. `None` where it is not known how
    /// many samples there were.
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

    /// Digits behind the point that percents of so many samples have earned, as much as
    /// they tell; one where it is not known how many there were.
    pub fn percent_digits(&self, samples: u64) -> usize {
        if self.hides_samples {
            return 1;
        }
        let evidence = self.reweighed.map_or(1.0, |told| told.evidence);
        crate::percent_digits((samples as f64 * evidence).round() as u64)
    }

    /// The row of the function that `frame` belongs to by now.
    pub fn find_function(&self, frame: FrameId) -> Option<usize> {
        let owner = self.owners.get(frame.0 as usize).copied().unwrap_or(frame);
        self.functions.iter().position(|row| row.id == owner)
    }
}

/// The largest count of any second of these trends.
fn peak<'a>(trends: impl Iterator<Item = &'a [u64; TREND_LEN]>) -> u64 {
    trends.flatten().copied().max().unwrap_or(0)
}
