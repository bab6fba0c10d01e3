//! A program of exactly the rhythm of the sampling clock is counted like any other.
//! With a period that never changes each tick would find it at the same place, and
//! 60 and 40 percent of its time would be shown as 100 and 0.
//!
//! All engines look at the same threads in the same time, which keep every CPU busy: none
//! knows of the others' clocks, and each test judges one of them.

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
/// Where in a period, counted in billionths of it, the second function begins.
const CHANGE: u64 = SECOND_NS / 10 * 6;

/// Threads that spend the first 60 percent of each period in one function and the rest in
/// another, by the clock of the machine, until they are dropped.
struct Aligned {
    stop: Arc<AtomicBool>,
    /// Nanoseconds on a CPU, by function: others may take the CPU away.
    spent: Arc<[AtomicU64; 2]>,
    threads: Vec<JoinHandle<()>>,
}

impl Aligned {
    /// One on each of these CPUs, where it stays: a clock of a thread begins anew when another
    /// one takes its place, and would be in step no longer.
    fn start(rate_hz: u64, cpus: &BTreeSet<u32>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let spent: Arc<[AtomicU64; 2]> = Arc::default();
        let start = |cpu: &u32| {
            let mut here = rustix::thread::CpuSet::new();
            here.set(*cpu as usize);
            let (stopped, spending) = (stop.clone(), spent.clone());
            let body = move || {
                // Where that is not allowed it runs anywhere.
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

/// How far the machine's clock is into a period, in billionths.
fn phase(rate_hz: u64) -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let in_second = now.tv_nsec as u64;
    // Whole seconds are whole numbers of periods.
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

/// Some 100 ns.
#[inline(always)]
fn spin(seed: u64) {
    let mut state = seed;
    for _ in 0..50 {
        state = black_box(state ^ (state << 13) ^ (state >> 7));
    }
}

/// Which of the functions a sample is of, by number.
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

/// Who takes the samples, and whether of this process alone or of everybody.
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
/// The clocks of whole CPUs, not of threads.
const PERF_OF_ALL: Looker = Looker {
    is_of_everybody: true,
    ..PERF
};

/// What one of them saw.
struct Sight {
    looker: Looker,
    /// Samples of aligned threads, by function.
    counts: [f64; 2],
    /// Samples of all, of those that busy CPUs make at that rate; and with those lost.
    of_rate: f64,
    with_lost: f64,
    /// The share of the time that a host took from the CPUs of this virtual machine.
    stolen: f64,
}

/// What was measured at one rate.
struct Measured {
    rate_hz: u32,
    /// The share of the first function, of the time that the threads had.
    truth: f64,
    sights: Vec<Sight>,
}

/// Samples that one CPU makes in the time of a measurement.
const SAMPLES_OF_CPU: u64 = 800;

/// Every CPU is busy with an aligned thread, and all look at them at once.
fn measure(rate_hz: u32, lookers: &[Looker]) -> Measured {
    let _alone = alone();
    let online = probe::cpus::online().unwrap();
    let cpus = online.len();
    // Before the sources: what one may watch of oneself are the threads that there are.
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

/// Takes samples until there are enough of the threads, and the time is over.
fn look(looker: Looker, mut source: Box<dyn Source>, rate_hz: u32, cpus: usize) -> Sight {
    let mut seen = Seen::default();
    // From when all clocks tick, up to where all samples are there.
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
            // On a busy machine the first may come before what is mapped is known.
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
    // All that was stolen while this looked may have been in the part that is counted.
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

/// Seconds in which a host ran something else than the CPUs of this virtual machine, since it
/// was started: the eighth number of `cpu user nice system idle iowait irq softirq steal`.
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

    /// Perf is not asked for everybody: a busy machine may not come round to reading so many
    /// copies of stacks in time.
    fn at_999() -> &'static Self {
        static MEASURED: OnceLock<Measured> = OnceLock::new();
        MEASURED.get_or_init(|| measure(999, &[BPF, PERF, BPF_OF_ALL]))
    }

    /// `None` where rights are missing.
    fn of(&self, looker: Looker) -> Option<&Sight> {
        self.sights.iter().find(|sight| sight.looker == looker)
    }

    /// The functions have as many of the samples as of the time.
    fn check_shares(&self, looker: Looker) {
        let (Some(sight), truth) = (self.of(looker), self.truth) else {
            return;
        };
        let all: f64 = sight.counts.iter().sum();
        assert!(all > 400.0, "{all} samples");
        let share = sight.counts[0] / all;
        // Five standard deviations, which is once in a million runs, and where the functions
        // begin and end.
        let band = 5.0 * (truth * (1.0 - truth) / all).sqrt() + 0.01;
        let told = format!("{share:.3} of {all} samples, {truth:.3} of the time, ± {band:.3}");
        println!("{} Hz: {told}", self.rate_hz);
        assert!((truth - 0.6).abs() < 0.1, "it was not aligned: {truth:.3}");
        assert!((share - truth).abs() < band, "{told}");
    }

    /// Every CPU is busy, whoever with: so many CPUs, for so long, at that rate.
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
        // A virtual machine that is not run for a while has no ticks either.
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
