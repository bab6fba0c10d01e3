//! A self-test for kernels other than this one: samples its own threads, which
//! work at the bottom of a deep recursion, sleep, or wait, by BPF and then by perf alone,
//! prints the results, and has proftop itself sample it if that is there. Ends with 1 if something
//! is wrong. Linked statically it can be the first program of a virtual machine: `cargo xtask
//! kernels` builds it and boots it on the kernels that it is given.

mod faults;
mod own_machine;
mod program;
mod rights;
mod wakers;

use probe::machine::THIS;
use probe::{
    Batch, BpfSource, Config, Counters, Ending, EngineKind, Error, Event, PerfSource, Source,
    Target, ThreadTotals, WaitState,
};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wakers::Wakers;

const DEPTH: u32 = 100;
const TIME: Duration = Duration::from_secs(3);
/// Before the measurement, stacks are watched until for this long none has ended because the unwind
/// table of a file was not read yet. Reading the program's own tables takes a tenth of a second on
/// a computer, and several seconds if each instruction is emulated. Stacks that wait for a table
/// are delivered up to 1.5 s later than others.
const QUIET: Duration = Duration::from_secs(2);
/// Maximum time until then.
const WARM_UP_MAX: Duration = Duration::from_secs(60);
/// The name of a thread that sleeps, and for how long each time.
const SLEEPER: &str = "sleeper";
const NAP: Duration = Duration::from_millis(50);
/// How often a CPU is turned off and on.
const HOTPLUG_ROUNDS: u32 = 20;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(rights::SAMPLE) {
        return rights::sample();
    }
    own_machine::run(test)
}

/// One nap of the thread that sleeps.
#[inline(never)]
#[unsafe(no_mangle)]
fn selftest_naps() {
    std::thread::sleep(black_box(NAP));
}

fn test() -> ExitCode {
    for _ in 0..2 {
        std::thread::spawn(|| {
            loop {
                black_box(descend(DEPTH));
            }
        });
    }
    std::thread::Builder::new()
        .name(SLEEPER.into())
        .spawn(|| {
            loop {
                selftest_naps();
            }
        })
        .expect("a thread");
    if let Err(error) = wakers::start() {
        println!("FAILED: this machine does not send to itself: {error}");
        return ExitCode::FAILURE;
    }
    let config = Config {
        waits: true,
        target: Target {
            pids: vec![std::process::id()],
            ..Target::default()
        },
        rate_hz: 199,
        ..Config::default()
    };
    match by_bpf(&config)
        .and_then(|()| rights::check())
        .and_then(|()| program::check())
        .and_then(|()| by_perf(&config))
    {
        Ok(()) => {
            println!("ok");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("FAILED: {why}");
            ExitCode::FAILURE
        }
    }
}

/// By BPF: what runs, what waits, and page faults, where the kernel has `bpf_loop`.
fn by_bpf(config: &Config) -> Result<(), String> {
    let mut config = config.clone();
    let mut started = BpfSource::start(&config);
    if let Err(error @ Error::OldKernel) = started {
        println!("bpf: no waits: {error}");
        config.waits = false;
        started = BpfSource::start(&config);
    }
    let mut source = started.map_err(|error| error.to_string())?;
    println!("verified: {:?}", source.verified_instructions());
    let over = source
        .verified_instructions()
        .iter()
        .any(|(_, instructions)| *instructions >= BpfSource::VERIFIED_MAX);
    if over {
        return Err("too much to verify".into());
    }
    watch(&mut source, config.waits)?;
    turn_off_and_on(&mut source)?;
    drop(source);
    if config.waits {
        faults::check(&config)?;
    }
    Ok(())
}

fn by_perf(config: &Config) -> Result<(), String> {
    // The kernel copies tens of kilobytes for each sample: too much for the rings at a higher rate,
    // if everything is emulated and other programs want the CPUs.
    let config = Config {
        rate_hz: 49,
        ..config.clone()
    };
    let mut source = PerfSource::start(&config).map_err(|error| error.to_string())?;
    // Waits by perf have a test of their own.
    watch(&mut source, false)?;
    turn_off_and_on(&mut source)
}

/// Takes the spare CPU out of the machine or puts it back in, if there is one.
fn set_spare_cpu(is_online: bool) {
    if let Some(cpu) = own_machine::spare_cpu() {
        let done = own_machine::set_cpu(cpu, is_online);
        let state = if is_online { "on" } else { "off" };
        println!("CPU {cpu} is turned {state}: {done:?}");
    }
}

/// Turns the spare CPU off and on again, sooner than a source looks which CPUs there are. Returns an
/// error if it is not sampled after that.
fn turn_off_and_on(source: &mut dyn Source) -> Result<(), String> {
    let Some(cpu) = own_machine::spare_cpu() else {
        return Ok(());
    };
    let failed = |error: std::io::Error| format!("CPU {cpu} cannot be turned off and on: {error}");
    for _ in 0..HOTPLUG_ROUNDS {
        own_machine::set_cpu(cpu, false).map_err(failed)?;
        own_machine::set_cpu(cpu, true).map_err(failed)?;
        source
            .poll(Duration::from_millis(50))
            .map_err(|error| error.to_string())?;
    }
    let is_over = AtomicBool::new(false);
    let samples = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            own_machine::stay_on(cpu)?;
            while !is_over.load(Ordering::Relaxed) {
                black_box(descend(DEPTH));
            }
            Ok(())
        });
        let samples = wait_for_samples(source, cpu);
        is_over.store(true, Ordering::Relaxed);
        worker.join().expect("no panic").map_err(failed)?;
        samples
    })?;
    println!(
        "CPU {cpu} was turned off and on {HOTPLUG_ROUNDS} times, and then had {samples} samples"
    );
    match samples {
        0 => Err("a CPU is not sampled any more".into()),
        _ => Ok(()),
    }
}

/// Polls until there are samples of a CPU. Returns their number, which is 0 if there are none in time.
fn wait_for_samples(source: &mut dyn Source, cpu: u32) -> Result<usize, String> {
    let begun = Instant::now();
    let mut count = 0;
    while count == 0 && begun.elapsed() < WARM_UP_MAX {
        let batch = source.poll(Duration::from_millis(50));
        let batch = batch.map_err(|error| error.to_string())?;
        let ticks = batch.samples.iter();
        let ticks = ticks.filter(|sample| sample.event == Event::Tick && sample.cpu == cpu);
        count = ticks.count();
    }
    Ok(count)
}

fn watch(source: &mut dyn Source, has_waits: bool) -> Result<(), String> {
    let info = source.info();
    let engine = info.engine.map_or("", probe::EngineKind::label);
    println!("{engine}: notes: {:?}", info.notes);
    let lost_before = wait_for_tables(source, engine)?;
    let mut endings: BTreeMap<String, u64> = BTreeMap::new();
    let (mut samples, mut frames, mut deepest, mut lost) = (0, 0, 0, 0);
    let (mut first, mut last) = (None, Counters::default());
    let mut waits = Waits::default();
    let mut wakers = Wakers::default();
    let begun = Instant::now();
    let mut all_cpus = true;
    while begun.elapsed() < TIME {
        // In the middle third of the time the machine has one CPU less.
        let is_middle = (TIME / 3..TIME / 3 * 2).contains(&begun.elapsed());
        if all_cpus == is_middle {
            all_cpus = !is_middle;
            set_spare_cpu(all_cpus);
        }
        let batch = source
            .poll(Duration::from_millis(50))
            .map_err(|error| error.to_string())?;
        waits.add(&batch);
        wakers.add(&batch);
        let ticks = batch.samples.iter();
        for sample in ticks.filter(|sample| sample.event == Event::Tick) {
            samples += 1;
            frames += sample.frames.len();
            deepest = deepest.max(sample.frames.len());
            let why = if sample.tables_late {
                " before its table"
            } else {
                ""
            };
            *endings
                .entry(format!("{:?}{why}", sample.ending))
                .or_default() += 1;
        }
        lost = batch.counters.lost;
        first.get_or_insert(batch.counters);
        last = batch.counters;
    }
    let first = first.unwrap_or_default();
    let taken = (last.taken - first.taken).max(1);
    let spent_ns = last.kernel_ns - first.kernel_ns;
    println!(
        "{engine}: {} ns in the kernel for a sample",
        spent_ns / taken
    );
    println!("{engine}: samples {samples} frames {frames} lost {lost} endings {endings:?}",);
    let root = format!("{:?}", Ending::Root);
    let whole = endings.get(&root).copied().unwrap_or(0);
    println!("result: {engine} {whole} of {samples}, {lost} lost");
    // Checked before everything else, because they print what they found, also if something else is
    // wrong.
    let of_waits = if has_waits && THIS.has_probes {
        [waits.check(), wakers.check()].into_iter().collect()
    } else {
        Ok(())
    };
    // If everything is emulated, the rings with copies of stacks are read too slowly, above all
    // while files are read at the start.
    let is_too_much = match info.engine {
        Some(EngineKind::Bpf) => lost > 0,
        _ => lost - lost_before > samples / 5,
    };
    if samples == 0 || is_too_much || whole * 100 < samples * 99 {
        return Err("too few samples, or too few whole stacks".into());
    }
    if deepest < DEPTH as usize {
        return Err("stacks are not as deep as they should be".into());
    }
    of_waits
}

/// Polls until the unwind tables of this program are read, and prints how many stacks came before.
/// Returns how many samples were lost.
fn wait_for_tables(source: &mut dyn Source, engine: &str) -> Result<u64, String> {
    let begun = Instant::now();
    // On the clock of the samples: the first samples that are read were taken while the source
    // started, and one poll may take longer than all of the quiet time.
    let mut last_late_ns = monotonic_ns();
    let (mut samples, mut late) = (0, 0);
    let lost = loop {
        if begun.elapsed() > WARM_UP_MAX {
            return Err(format!("tables are not read after {WARM_UP_MAX:?}"));
        }
        let batch = source
            .poll(Duration::from_millis(50))
            .map_err(|error| error.to_string())?;
        samples += batch.samples.len();
        for sample in batch.samples.iter().filter(|sample| sample.tables_late) {
            late += 1;
            last_late_ns = last_late_ns.max(sample.time_ns);
        }
        let newest_ns = batch.samples.iter().map(|sample| sample.time_ns).max();
        let quiet_ns = newest_ns.unwrap_or(0).saturating_sub(last_late_ns);
        if Duration::from_nanos(quiet_ns) > QUIET {
            break batch.counters.lost;
        }
    };
    println!(
        "{engine}: {late} of {samples} stacks in the first {:?} came before their tables, {lost} lost",
        begun.elapsed()
    );
    Ok(lost)
}

/// Returns the time by the clock that samples have.
fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The waits of the thread that sleeps.
#[derive(Default)]
struct Waits {
    totals: Option<ThreadTotals>,
    /// Nanoseconds of sleep that its samples stand for.
    sampled_ns: u64,
    stacks: u64,
    whole: u64,
}

impl Waits {
    fn add(&mut self, batch: &Batch) {
        let mut own = batch
            .threads
            .iter()
            .filter(|thread| &*thread.comm == SLEEPER);
        self.totals = own.next_back().cloned().or(self.totals.take());
        let own = batch
            .samples
            .iter()
            .filter(|sample| &*sample.comm == SLEEPER);
        for sample in own {
            let Some(wait) = sample.wait else {
                continue;
            };
            self.stacks += 1;
            self.whole += u64::from(sample.ending == Ending::Root && sample.kernel_frames > 2);
            let asleep = wait.parts().filter(|(state, _)| *state == WaitState::Sleep);
            self.sampled_ns += asleep.map(|(_, ns)| ns).sum::<u64>();
        }
    }

    fn check(&self) -> Result<(), String> {
        let totals = self.totals.as_ref().ok_or("no thread sleeps")?;
        let lived = totals.until_ns - totals.since_ns;
        let (asleep, queued) = (
            totals.ns_in(WaitState::Sleep),
            totals.ns_in(WaitState::Queue),
        );
        println!(
            "waits: {} stacks, {} whole, asleep {asleep} sampled {} queued {queued} of {lived}",
            self.stacks, self.whole, self.sampled_ns
        );
        println!("result: waits {} of {}", self.whole, self.stacks);
        if (asleep + queued) * 10 < lived * 9 || asleep * 2 < lived {
            return Err("who sleeps is not asleep".into());
        }
        if self.stacks == 0 || self.whole * 10 < self.stacks * 9 {
            return Err("too few stacks of waits are whole".into());
        }
        Ok(())
    }
}

#[inline(never)]
fn descend(left: u32) -> u64 {
    if left == 0 {
        return (0..20_000u64).fold(1, |state, step| black_box(state ^ step.rotate_left(7)));
    }
    // Not a tail call: the frame must stay.
    black_box(descend(left - 1)).wrapping_add(1)
}
