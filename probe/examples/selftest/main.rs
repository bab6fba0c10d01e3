//! A self-test for kernels other than this one: samples its own threads, which
//! work at the bottom of a deep recursion, sleep, or wait, by BPF and then by perf alone,
//! and prints what came of it. Ends with 1 if something is wrong. Built static it runs as
//! the only program of a virtual machine: `cargo xtask kernels` builds it and boots it on
//! the kernels that it is given.

mod own_machine;
mod wakers;

use probe::machine::THIS;
use probe::{
    Batch, BpfSource, Config, Ending, EngineKind, Event, PerfSource, Source, Target, ThreadTotals,
    WaitState,
};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use wakers::Wakers;

const DEPTH: u32 = 100;
const TIME: Duration = Duration::from_secs(3);
/// A thread that sleeps, and how long each time.
const SLEEPER: &str = "sleeper";
const NAP: Duration = Duration::from_millis(50);
/// The first kernel that has `bpf_loop`.
const BPF_SINCE: (u32, u32) = (5, 17);

fn main() -> ExitCode {
    own_machine::run(test)
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
                std::thread::sleep(NAP);
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
    match by_bpf(&config).and_then(|()| by_perf(&config)) {
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

fn by_bpf(config: &Config) -> Result<(), String> {
    let mut source = match BpfSource::start(config) {
        Ok(source) => source,
        Err(error) if kernel() < BPF_SINCE => {
            println!("bpf: not on this kernel: {error}");
            return Ok(());
        }
        Err(error) => return Err(error.to_string()),
    };
    println!("verified: {:?}", source.verified_instructions());
    let over = source
        .verified_instructions()
        .iter()
        .any(|(_, instructions)| *instructions >= BpfSource::VERIFIED_MAX);
    if over {
        return Err("too much to verify".into());
    }
    watch(&mut source)
}

fn by_perf(config: &Config) -> Result<(), String> {
    watch(&mut PerfSource::start(config).map_err(|error| error.to_string())?)
}

fn watch(source: &mut dyn Source) -> Result<(), String> {
    let info = source.info();
    let engine = info.engine.map_or("", probe::EngineKind::label);
    println!("{engine}: notes: {:?}", info.notes);
    let mut endings: BTreeMap<String, u64> = BTreeMap::new();
    let (mut samples, mut frames, mut deepest, mut lost) = (0, 0, 0, 0);
    let mut waits = Waits::default();
    let mut wakers = Wakers::default();
    let begun = Instant::now();
    let mut all_cpus = true;
    while begun.elapsed() < TIME {
        // For the middle third of the time the machine has one CPU less.
        let is_middle = (TIME / 3..TIME / 3 * 2).contains(&begun.elapsed());
        if all_cpus == is_middle {
            all_cpus = !is_middle;
            own_machine::set_last_cpu(all_cpus);
        }
        let batch = source.poll(Duration::from_millis(50));
        let batch = batch.map_err(|error| error.to_string())?;
        waits.add(&batch);
        wakers.add(&batch);
        let ticks = batch.samples.iter();
        for sample in ticks.filter(|sample| sample.event == Event::Tick) {
            samples += 1;
            frames += sample.frames.len();
            deepest = deepest.max(sample.frames.len());
            *endings.entry(format!("{:?}", sample.ending)).or_default() += 1;
        }
        lost = batch.counters.lost;
    }
    println!("{engine}: samples {samples} frames {frames} lost {lost} endings {endings:?}",);
    let root = format!("{:?}", Ending::Root);
    let whole = endings.get(&root).copied().unwrap_or(0);
    println!("result: {engine} {whole} of {samples}, {lost} lost");
    // Before all else is looked at: they say what they found also where something else is wrong.
    let of_waits = if info.engine == Some(EngineKind::Bpf) && THIS.has_probes {
        [waits.check(), wakers.check()].into_iter().collect()
    } else {
        Ok(())
    };
    // Where all is emulated, the rings with copies of stacks are read too slowly.
    let lost_max = match info.engine {
        Some(EngineKind::Bpf) => 0,
        _ => samples / 5,
    };
    if samples == 0 || lost > lost_max || whole * 100 < samples * 99 {
        return Err("too few samples, or too few whole stacks".into());
    }
    if deepest < DEPTH as usize {
        return Err("stacks are not as deep as they should be".into());
    }
    of_waits
}

/// What came of the thread that sleeps.
#[derive(Default)]
struct Waits {
    totals: Option<ThreadTotals>,
    /// Nanoseconds asleep that its stacks stand for.
    sampled_ns: u64,
    stacks: u64,
    whole: u64,
}

impl Waits {
    fn add(&mut self, batch: &Batch) {
        let mut own = { batch.threads.iter() }.filter(|thread| &*thread.comm == SLEEPER);
        self.totals = own.next_back().cloned().or(self.totals.take());
        let own = { batch.samples.iter() }.filter(|sample| &*sample.comm == SLEEPER);
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

/// `5.10.0-46-cloud-amd64` is 5.10.
fn kernel() -> (u32, u32) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split('.').map_while(|part| part.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[inline(never)]
fn descend(left: u32) -> u64 {
    if left == 0 {
        return (0..20_000u64).fold(1, |state, step| black_box(state ^ step.rotate_left(7)));
    }
    // Not a tail call: the frame must stay.
    black_box(descend(left - 1)).wrapping_add(1)
}
