//! A program of exactly the rhythm of the sampling clock is counted like any other.
//! With a period that never changes each tick would find it at the same place, and
//! 60 and 40 percent of its time would be shown as 100 and 0.

#[allow(dead_code, reason = "the other tests use the rest of it")]
mod burn;
mod common;

use common::{Seen, alone, only, unless_forbidden};
use probe::{BpfSource, Config, ModuleKind, PerfSource, Sample, Source, Target};
use std::fs::File;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use symbolize::{ElfSymbols, FileOffset};

const THREAD_NAME: &str = "aligned";
const FUNCTIONS: [&str; 2] = ["first_sixty", "last_forty"];
const SECOND_NS: u64 = 1_000_000_000;
/// Where in a period, counted in billionths of it, the second function begins.
const CHANGE: u64 = SECOND_NS / 10 * 6;

/// A thread that spends the first 60 percent of each period in one function and the
/// rest in another, by the clock of the machine, until it is dropped.
struct Aligned {
    stop: Arc<AtomicBool>,
    /// Nanoseconds on a CPU, by function: others may take the CPU away.
    spent: Arc<[AtomicU64; 2]>,
    thread: Option<JoinHandle<()>>,
}

impl Aligned {
    fn start(rate_hz: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let spent: Arc<[AtomicU64; 2]> = Arc::default();
        let (stopped, spending) = (stop.clone(), spent.clone());
        let body = move || {
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
        Self {
            stop,
            spent,
            thread: Some(thread.spawn(body).unwrap()),
        }
    }

    fn spent_ns(&self) -> [u64; 2] {
        [0, 1].map(|part| self.spent[part].load(Ordering::Relaxed))
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
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
    let mut names = { sample.frames.iter() }
        .filter(|frame| {
            let module = &seen.modules[&frame.module.0];
            matches!(module, ModuleKind::File { path, .. } if *path == own)
        })
        .filter_map(|frame| symbols.find(FileOffset(frame.address)).ok())
        .map(|symbol| symbolize::demangle(symbol.name).short().into_owned());
    names.find_map(|name| FUNCTIONS.iter().position(|f| name.contains(f)))
}

/// Samples an aligned thread of the clock's own rate, and compares.
fn check(rate_hz: u32, start: impl Fn(&Config) -> Option<Box<dyn Source>>) {
    let _alone = alone();
    // Before the source: what one may watch of oneself are the threads that there are.
    let aligned = Aligned::start(rate_hz.into());
    let config = Config {
        target: only(std::process::id()),
        rate_hz,
        ..Config::default()
    };
    let Some(mut source) = start(&config) else {
        return;
    };
    let symbols = ElfSymbols::read(&File::open("/proc/self/exe").unwrap()).unwrap();
    let before = aligned.spent_ns();
    let seen = Seen::until(&mut *source, "samples of the thread", |seen| {
        let of_thread = seen.samples.iter().filter(|s| &*s.comm == THREAD_NAME);
        of_thread.count() >= 1_500
    });
    let after = aligned.spent_ns();
    drop(aligned);
    let mut counts = [0.0; 2];
    for sample in seen.samples.iter().filter(|s| &*s.comm == THREAD_NAME) {
        if let Some(function) = function_of(&seen, &symbols, sample) {
            counts[function] += 1.0;
        }
    }
    let all: f64 = counts.iter().sum();
    assert!(all > 400.0, "{all} samples");
    let spent = [0, 1].map(|part| (after[part] - before[part]) as f64);
    let truth = spent[0] / (spent[0] + spent[1]);
    let share = counts[0] / all;
    // Three standard deviations; and where the functions begin and end.
    let band = 3.0 * (truth * (1.0 - truth) / all).sqrt() + 0.01;
    println!("{rate_hz} Hz: {share:.3} of {all} samples, {truth:.3} of the time, ± {band:.3}");
    assert!((truth - 0.6).abs() < 0.1, "it was not aligned: {truth:.3}");
    assert!(
        (share - truth).abs() < band,
        "{share:.3} of the samples, {truth:.3} of the time, ± {band:.3}"
    );
}

fn bpf(config: &Config) -> Option<Box<dyn Source>> {
    let source = unless_forbidden(BpfSource::start(config), "needs CAP_BPF and CAP_PERFMON")?;
    Some(Box::new(source))
}

fn perf(config: &Config) -> Option<Box<dyn Source>> {
    let source = unless_forbidden(PerfSource::start(config), "needs perf_event_paranoid <= 2")?;
    Some(Box::new(source))
}

#[test]
fn bpf_at_99_hz() {
    check(99, bpf);
}

#[test]
fn bpf_at_999_hz() {
    check(999, bpf);
}

#[test]
fn perf_at_99_hz() {
    check(99, perf);
}

#[test]
fn perf_at_999_hz() {
    check(999, perf);
}

/// The clocks of whole CPUs, not of the thread.
#[test]
fn perf_of_everybody_at_99_hz() {
    check(99, |config| {
        perf(&Config {
            target: Target::default(),
            ..config.clone()
        })
    });
}

/// Every CPU is busy, whoever with: so many CPUs, for so long, at that rate.
fn check_rate(rate_hz: u32, start: impl Fn(&Config) -> Option<Box<dyn Source>>) {
    let _alone = alone();
    let cpus = probe::cpus::online().unwrap().len();
    let _threads = burn::Threads::start(2 * cpus);
    let config = Config {
        rate_hz,
        ..Config::default()
    };
    let Some(mut source) = start(&config) else {
        return;
    };
    // From when all clocks tick, up to where all samples are there.
    let (mut times, mut lost) = (Vec::new(), 0);
    let end = Instant::now() + Duration::from_secs(30);
    let (mut complete_ns, mut wanted_ns) = (0, u64::MAX);
    while complete_ns < wanted_ns && Instant::now() < end {
        let batch = source.poll(Duration::from_millis(20)).unwrap();
        times.extend(batch.samples.iter().map(|sample| sample.time_ns));
        (complete_ns, lost) = (batch.complete_until_ns, batch.counters.lost);
        if let Some(first) = times.iter().min() {
            wanted_ns = first + SECOND_NS + SECOND_NS * 1_500 / u64::from(rate_hz);
        }
    }
    let first_ns = *times.iter().min().unwrap() + SECOND_NS;
    times.retain(|time| (first_ns..=complete_ns).contains(time));
    let busy = (complete_ns - first_ns) as f64 / 1e9 * cpus as f64;
    let ratio = times.len() as f64 / (busy * f64::from(rate_hz));
    let with_lost = ratio + lost as f64 / (busy * f64::from(rate_hz));
    println!("{rate_hz} Hz: {ratio:.4} of what is expected, {with_lost:.4} with those lost");
    assert!(ratio < 1.01, "{ratio:.4} of what is expected");
    // A virtual machine that is not run for a while has no ticks either.
    assert!(with_lost > 0.97, "{with_lost:.4} of what is expected");
}

#[test]
fn bpf_keeps_the_rate() {
    check_rate(99, bpf);
    check_rate(999, bpf);
}

/// Not faster: a busy machine may not come round to reading such stacks in time.
#[test]
fn perf_keeps_the_rate() {
    check_rate(99, perf);
}
