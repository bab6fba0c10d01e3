//! A program in exact step with the sampling clock is counted like any other.
//! With a constant period each tick would find it at the same place, and
//! 60 and 40 percent of its time would be shown as 100 and 0.
//!
//! All engines sample the same threads at the same time, which keep every CPU busy: none
//! knows the others' clocks, and each test checks one of them.

#[allow(dead_code, reason = "the other tests use the rest of it")]
mod burn;
mod common;

use common::{Seen, alone, only, unless_forbidden};
use probe::{BpfSource, Config, EngineKind, ModuleKind, PerfSource, Sample, Source, Target};
use std::collections::BTreeSet;
use std::fs::File;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Instant;
use symbolize::{ElfSymbols, FileOffset};
use test_support::DEADLINE;

const THREAD_NAME: &str = "aligned";
const FUNCTIONS: [&str; 2] = ["first_sixty", "last_forty"];
const SECOND_NS: u64 = 1_000_000_000;
/// Where in a period, in billionths of it, the second function begins.
const CHANGE: u64 = SECOND_NS / 10 * 6;

/// Threads that spend the first 60 percent of each period in one function and the rest in
/// another, by the machine's clock, until they are dropped.
struct Aligned {
    stop: Arc<AtomicBool>,
    /// Nanoseconds on a CPU in each function: other threads may take the CPU away.
    spent: Arc<[AtomicU64; 2]>,
    threads: Vec<JoinHandle<()>>,
}

impl Aligned {
    /// Starts one thread on each of these CPUs, where it stays: the clock of a thread starts anew
    /// when the thread gets a CPU again, and would not be in step any more.
    fn start(rate_hz: u64, cpus: &BTreeSet<u32>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let spent: Arc<[AtomicU64; 2]> = Arc::default();
        let start = |cpu: &u32| {
            let mut here = rustix::thread::CpuSet::new();
            here.set(*cpu as usize);
            let (stopped, spending) = (stop.clone(), spent.clone());
            let body = move || {
                // If that is not allowed, the thread runs on any CPU.
                _ = rustix::thread::sched_setaffinity(None, &here);
                while !stopped.load(Ordering::Relaxed) {
                    let parts = [first_sixty, last_forty];
                    for (part, spent) in parts.into_iter().zip(&*spending) {
                        let before = thread_ns();
                        part(rate_hz);
                        spent.fetch_add(thread_ns() - before, Ordering::Relaxed);
                    }
                }
            };
            let thread = std::thread::Builder::new().name(THREAD_NAME.into());
            thread.spawn(body).unwrap()
        };
        let threads = cpus.iter().map(start).collect();
        Self {
            stop,
            spent,
            threads,
        }
    }

    fn spent_ns(&self) -> [u64; 2] {
        [0, 1].map(|part| self.spent[part].load(Ordering::Relaxed))
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

/// Returns how far the machine's clock is in a period, in billionths.
fn phase(rate_hz: u64) -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let in_second = now.tv_nsec as u64;
    // A second is a whole number of periods.
    in_second * rate_hz % SECOND_NS
}

fn thread_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * SECOND_NS + time.tv_nsec as u64
}

#[inline(never)]
fn first_sixty(rate_hz: u64) {
    while phase(rate_hz) < CHANGE {
        spin(black_box(60));
    }
}

#[inline(never)]
fn last_forty(rate_hz: u64) {
    while phase(rate_hz) >= CHANGE {
        spin(black_box(40));
    }
}

/// Takes about 100 ns.
#[inline(always)]
fn spin(seed: u64) {
    let mut state = seed;
    for _ in 0..50 {
        state = black_box(state ^ (state << 13) ^ (state >> 7));
    }
}

/// Returns the index of the function in which a sample was taken.
fn function_of(seen: &Seen, symbols: &ElfSymbols, sample: &Sample) -> Option<usize> {
    let own = std::env::current_exe().unwrap();
    let mut names = sample
        .frames
        .iter()
        .filter(|frame| {
            let module = &seen.modules[&frame.module.0];
            matches!(module, ModuleKind::File { path, .. } if *path == own)
        })
        .filter_map(|frame| symbols.find(FileOffset(frame.address)).ok())
        .map(|symbol| symbolize::demangle(symbol.name).short().into_owned());
    names.find_map(|name| FUNCTIONS.iter().position(|f| name.contains(f)))
}

/// The engine that samples, and whether it samples all processes or this one only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Looker {
    engine: EngineKind,
    is_of_everybody: bool,
}

const BPF: Looker = Looker {
    engine: EngineKind::Bpf,
    is_of_everybody: false,
};
const PERF: Looker = Looker {
    engine: EngineKind::Perf,
    is_of_everybody: false,
};
const BPF_OF_ALL: Looker = Looker {
    is_of_everybody: true,
    ..BPF
};
/// With the clocks of whole CPUs instead of threads.
const PERF_OF_ALL: Looker = Looker {
    is_of_everybody: true,
    ..PERF
};

/// What one of them has seen.
struct Sight {
    looker: Looker,
    /// Number of samples of the aligned threads, by function.
    counts: [f64; 2],
    /// Number of all samples, as a share of those that busy CPUs give at that rate; and the same
    /// with lost samples.
    of_rate: f64,
    with_lost: f64,
    /// The share of the time that a host took away from the CPUs of this virtual machine.
    stolen: f64,
}

/// The results at one rate.
struct Measured {
    rate_hz: u32,
    /// The share of the first function in the CPU time of the threads.
    truth: f64,
    sights: Vec<Sight>,
}

/// Number of samples of one CPU during a measurement.
const SAMPLES_OF_CPU: u64 = 800;

/// Keeps every CPU busy with an aligned thread, and samples with all of these at once.
fn measure(rate_hz: u32, lookers: &[Looker]) -> Measured {
    let _alone = alone();
    let online = probe::cpus::online().unwrap();
    let cpus = online.len();
    // Started before the sources: without rights, only the threads that exist then can be watched.
    let aligned = Aligned::start(rate_hz.into(), &online);
    let started = lookers
        .iter()
        .filter_map(|looker| Some((*looker, start(*looker, rate_hz)?)));
    let started: Vec<_> = started.collect();
    let before = aligned.spent_ns();
    let looking: Vec<_> = started
        .into_iter()
        .map(|(looker, source)| std::thread::spawn(move || look(looker, source, rate_hz, cpus)))
        .collect();
    let sights = looking
        .into_iter()
        .map(|sight| sight.join().unwrap())
        .collect();
    let after = aligned.spent_ns();
    let spent = [0, 1].map(|part| (after[part] - before[part]) as f64);
    Measured {
        rate_hz,
        truth: spent[0] / (spent[0] + spent[1]),
        sights,
    }
}

fn start(looker: Looker, rate_hz: u32) -> Option<Box<dyn Source>> {
    let target = if looker.is_of_everybody {
        Target::default()
    } else {
        only(std::process::id())
    };
    let config = Config {
        target,
        rate_hz,
        ..Config::default()
    };
    Some(match looker.engine {
        EngineKind::Bpf => {
            let needs = "needs CAP_BPF and CAP_PERFMON";
            Box::new(unless_forbidden(BpfSource::start(&config), needs)?)
        }
        EngineKind::Perf => {
            let needs = "needs perf_event_paranoid <= 2";
            Box::new(unless_forbidden(PerfSource::start(&config), needs)?)
        }
    })
}

/// Samples until there are enough samples of the threads, and the time is over.
fn look(looker: Looker, mut source: Box<dyn Source>, rate_hz: u32, cpus: usize) -> Sight {
    let mut seen = Seen::default();
    // The time from when all clocks tick, until all samples are complete.
    let (mut complete_ns, mut wanted_ns) = (0, u64::MAX);
    let symbols = ElfSymbols::read(&File::open("/proc/self/exe").unwrap()).unwrap();
    let (mut counts, mut counted) = ([0.0; 2], 0);
    let (started, stolen_before_s) = (Instant::now(), stolen_s());
    let end = started + DEADLINE;
    loop {
        complete_ns = seen.take(&mut *source).max(complete_ns);
        for sample in &seen.samples[counted..] {
            let time_ns = SECOND_NS + SECOND_NS * SAMPLES_OF_CPU / u64::from(rate_hz);
            wanted_ns = wanted_ns.min(sample.time_ns + time_ns);
            // On a busy machine the first samples may come before the mappings are known.
            if &*sample.comm == THREAD_NAME
                && let Some(function) = function_of(&seen, &symbols, sample)
            {
                counts[function] += 1.0;
            }
        }
        counted = seen.samples.len();
        let is_enough = counts.iter().sum::<f64>() >= SAMPLES_OF_CPU as f64;
        if (is_enough && complete_ns >= wanted_ns) || Instant::now() >= end {
            break;
        }
    }
    let times = seen.samples.iter().map(|sample| sample.time_ns);
    let first_ns = times.clone().min().unwrap_or_default() + SECOND_NS;
    let taken = times.filter(|time| (first_ns..=complete_ns).contains(time));
    let busy_s = complete_ns.saturating_sub(first_ns) as f64 / 1e9 * cpus as f64;
    let expected = busy_s * f64::from(rate_hz);
    // Everything that was stolen during this function may have been in the counted part.
    let stolen = (stolen_s() - stolen_before_s) / busy_s;
    let taken = taken.count() as f64;
    Sight {
        looker,
        counts,
        of_rate: taken / expected,
        with_lost: (taken + seen.counters.lost as f64) / expected,
        stolen,
    }
}

/// Returns the seconds in which a host ran something else than the CPUs of this virtual machine,
/// since its start: the eighth number of `cpu user nice system idle iowait irq softirq steal`.
fn stolen_s() -> f64 {
    let all = std::fs::read_to_string("/proc/stat").unwrap();
    let ticks = all.split_ascii_whitespace().nth(8).unwrap();
    ticks.parse::<f64>().unwrap() / 100.0
}

impl Measured {
    fn at_99() -> &'static Self {
        static MEASURED: OnceLock<Measured> = OnceLock::new();
        MEASURED.get_or_init(|| measure(99, &[BPF, PERF, BPF_OF_ALL, PERF_OF_ALL]))
    }

    /// Perf does not sample all processes here: at 999 Hz a busy machine may be too slow to read its
    /// copies of stacks in time.
    fn at_999() -> &'static Self {
        static MEASURED: OnceLock<Measured> = OnceLock::new();
        MEASURED.get_or_init(|| measure(999, &[BPF, PERF, BPF_OF_ALL]))
    }

    /// Returns what an engine saw; `None` if rights are missing.
    fn of(&self, looker: Looker) -> Option<&Sight> {
        self.sights.iter().find(|sight| sight.looker == looker)
    }

    /// Checks that the functions have the same shares of the samples and of the time.
    fn check_shares(&self, looker: Looker) {
        let (Some(sight), truth) = (self.of(looker), self.truth) else {
            return;
        };
        let all: f64 = sight.counts.iter().sum();
        assert!(all > 400.0, "{all} samples");
        let share = sight.counts[0] / all;
        // Five standard deviations, which chance exceeds once in a million runs, and the
        // inaccuracy of where the functions begin and end.
        let band = 5.0 * (truth * (1.0 - truth) / all).sqrt() + 0.01;
        let told = format!("{share:.3} of {all} samples, {truth:.3} of the time, ± {band:.3}");
        println!("{} Hz: {told}", self.rate_hz);
        assert!((truth - 0.6).abs() < 0.1, "it was not aligned: {truth:.3}");
        assert!((share - truth).abs() < band, "{told}");
    }

    /// Checks that the number of samples fits the number of CPUs, all of which are busy, the time
    /// and the rate.
    fn check_rate(&self, looker: Looker) {
        let Some(sight) = self.of(looker) else {
            return;
        };
        let (ratio, with_lost, stolen) = (sight.of_rate, sight.with_lost, sight.stolen);
        println!(
            "{} Hz: {ratio:.4} of what is expected, {with_lost:.4} with those lost, \
             {stolen:.4} stolen by the host",
            self.rate_hz
        );
        assert!(ratio < 1.01, "{ratio:.4} of what is expected");
        // A virtual machine has no ticks while its host does not run it.
        assert!(
            with_lost > 0.97 - stolen,
            "{with_lost:.4} of what is expected, {stolen:.4} stolen"
        );
    }
}

#[test]
fn bpf_at_99_hz() {
    Measured::at_99().check_shares(BPF);
}

#[test]
fn bpf_at_999_hz() {
    Measured::at_999().check_shares(BPF);
}

#[test]
fn perf_at_99_hz() {
    Measured::at_99().check_shares(PERF);
}

#[test]
fn perf_at_999_hz() {
    Measured::at_999().check_shares(PERF);
}

#[test]
fn of_everybody_at_99_hz() {
    Measured::at_99().check_shares(BPF_OF_ALL);
    Measured::at_99().check_shares(PERF_OF_ALL);
}

#[test]
fn bpf_keeps_the_rate() {
    Measured::at_99().check_rate(BPF_OF_ALL);
    Measured::at_999().check_rate(BPF_OF_ALL);
}

#[test]
fn perf_keeps_the_rate() {
    Measured::at_99().check_rate(PERF_OF_ALL);
}
