//! The source that samples without BPF: the kernel copies registers and stacks into rings, and they
//! are walked here, by the same code and with the same tables.
//!
//! It is used on kernels whose BPF has not enough, in containers that may not load programs, and by
//! unprivileged users for their own processes.

mod cpu;
pub(crate) mod record;
mod registers;
mod scope;
mod waits;

use crate::bpf::Config;
use crate::clocks::SETTLED_NS;
use crate::cpus::{self, presence::Presence};
use crate::decode;
use crate::error::Error;
use crate::events::tick::{Pair, Turns};
use crate::files;
use crate::machine::THIS;
use crate::open_files;
use crate::open_waits::OpenWaits;
use crate::python::{Python, PythonMaps};
use crate::ring::Ring;
use crate::sample::{Batch, Counters};
use crate::sideband::record::{Event, What};
use crate::source::{DRAIN, EngineKind, RateError, Source, SourceError, SourceInfo, wait_for_any};
use crate::tables::{TableMaps, Tables};
use crate::target::Target;
use crate::targets::Targets;
use crate::time::now_ns;
use crate::timeline::Timeline;
use crate::unwinding::Unwinding;
use cpu::{Cpu, Offer};
use probe_ebpf::limits::USER_FRAMES_MAX;
use record::Record;
use scope::Scope;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{Duration, Instant};
use waits::Waits;

/// Maximum number of samples that are read before they are processed: their stacks take memory.
const WAITING_MAX: usize = 64;

/// The rate cannot be changed for them: a clock that a task inherited has no descriptor.
const RATE_IS_FIXED: &str = "without BPF, threads that were started since keep the rate that \
    they began with";

/// Samples by `perf_event_open` alone. Dropping it detaches everything.
pub struct PerfSource {
    cpus: Vec<Cpu>,
    scope: Scope,
    /// The sampled CPUs; `None` for all.
    only: Option<BTreeSet<u32>>,
    offer: Offer,
    turns: Turns,
    timeline: Timeline,
    /// Rings of clocks that were replaced, which are not read to their ends yet, by CPU.
    left_behind: Vec<(u32, Ring)>,
    read: u64,
    lost: u64,
    lost_by_cpu: BTreeMap<u32, u64>,
    undecodable: u64,
    /// None if single threads are watched: their events survive when a CPU is turned off.
    presence: Option<Presence>,
    /// Upper limit of the CPU time, summed over CPUs, for which a CPU was online and not sampled yet.
    unsampled: Duration,
    target: Target,
    waits: Option<Followed>,
    info: SourceInfo,
}

/// The waits of a run, once they are followed.
struct Followed {
    waits: Waits,
    open: OpenWaits,
    scope: Scope,
    /// Start of following, on the clock of the samples.
    since_ns: u64,
}

impl PerfSource {
    /// Whether functions of Python are read. Native calls that have not returned are recognized by
    /// their return addresses on the stack, whose positions are known only on x86-64.
    pub const READS_PYTHON: bool = cfg!(target_arch = "x86_64");

    /// Whether waits are followed: the numbers of system calls are known only for x86-64.
    pub const FOLLOWS_WAITS: bool = THIS.has_probes;

    /// Starts to sample. `ring_bytes` of the configuration is for the other source.
    pub fn start(config: &Config) -> Result<Self, Error> {
        open_files::raise_limit();
        let online = cpus::online().map_err(Error::Cpus)?;
        // Everything that takes time is done before the first tick: the rings hold little.
        let tables = Tables::new(TableMaps::in_memory(), &config.tables).map_err(Error::Tables)?;
        let depth = config.max_depth.clamp(1, USER_FRAMES_MAX as u32);
        let unwinding = Unwinding::new(tables, depth as usize).keeping_walks(config.keep_walks);
        let targets = Targets::filtered_here(&config.target);
        let python = Python::new(PythonMaps::here(files::for_sampler()));
        let mut timeline = Timeline::new(targets, unwinding)
            .keeping_mappings(config.mappings_max)
            .naming_threads();
        if Self::READS_PYTHON {
            timeline = timeline.with_python(python);
        }
        let (scope, offer) = choose_scope(&config.target, &online)?;
        let is_of_threads = matches!(scope, Scope::Threads(_));
        // Before the clocks: what drops those drops the pulses, too.
        let presence = (!is_of_threads).then(Presence::begin);
        let mut cpus = Vec::new();
        for &number in &online {
            let rate_hz = config.target.is_on(number).then_some(config.rate_hz);
            match Cpu::open(number, &scope, rate_hz, offer) {
                Ok(cpu) => cpus.push(cpu),
                // The CPU went offline after the list was read.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(source) => return Err(refused(number, source)),
            }
        }
        if !cpus.iter().any(Cpu::is_sampled) {
            return Err(Error::NoCpu);
        }
        let mut notes = notes(offer);
        if let Scope::Threads(known) = &scope {
            notes.extend(latecomers(&config.target, known));
        }
        let buffers = buffers(&mut cpus);
        let rate_is_fixed = is_of_threads.then_some(RATE_IS_FIXED);
        let mut source = Self {
            cpus,
            scope,
            only: config.target.cpus.clone(),
            offer,
            turns: Turns::new(),
            timeline,
            left_behind: Vec::new(),
            read: 0,
            lost: 0,
            lost_by_cpu: BTreeMap::new(),
            undecodable: 0,
            presence,
            unsampled: Duration::ZERO,
            target: config.target.clone(),
            waits: None,
            info: SourceInfo {
                engine: Some(EngineKind::Perf),
                rate_hz: config.rate_hz,
                rate_is_fixed,
                unwinding: "tables, on copied stacks",
                buffers,
                notes,
            },
        };
        if config.waits
            && let Err(why) = source.follow_waits()
        {
            source.info.notes.push(why);
        }
        Ok(source)
    }

    /// Starts to follow waits, and returns the time from which they are followed. The error is a
    /// sentence.
    fn follow_waits(&mut self) -> Result<u64, String> {
        if let Some(followed) = &self.waits {
            return Ok(followed.since_ns);
        }
        if !Self::FOLLOWS_WAITS {
            return Err("waits are followed on x86-64 only".into());
        }
        let target = self.timeline.targets().living(&self.target);
        let refused = |error: String| format!("time waited cannot be counted: {error}");
        let scope = match self.scope {
            Scope::Everybody => Ok(Scope::Everybody),
            Scope::Cgroup(_) | Scope::Threads(_) => Scope::of(&target),
        };
        let scope = scope.map_err(|error| refused(error.to_string()))?;
        let cpus = self.cpus.iter().map(Cpu::number).collect();
        let waits = Waits::start(&target, &scope, self.offer, &cpus)
            .map_err(|error| refused(error.to_string()))?;
        let since_ns = now_ns();
        self.info.notes.extend(notes_of_waits(self.offer));
        self.waits = Some(Followed {
            waits,
            open: OpenWaits::new(&files::for_those_aside()),
            scope,
            since_ns,
        });
        Ok(since_ns)
    }

    /// Adds a note on why this source is used and not the other one.
    #[must_use]
    pub fn because(mut self, reason: String) -> Self {
        self.info.notes.insert(0, reason);
        self
    }

    /// Checks whether this process may sample such a target at all: opens one clock, and closes it.
    pub fn may_sample(target: &Target) -> Result<(), Error> {
        let online = cpus::online().map_err(Error::Cpus)?;
        choose_scope(target, &online).map(|_| ())
    }

    /// Waits for a buffer to fill. Meanwhile the clocks of a CPU are restarted when it is time for
    /// that.
    fn wait(&mut self, wait: Duration) -> Result<(), SourceError> {
        let until = Instant::now() + wait;
        loop {
            let turning = self
                .cpus
                .iter_mut()
                .filter_map(|cpu| cpu.turning(&self.scope));
            let mut turning: Vec<&mut Pair> = turning.collect();
            if let Some((number, next_ns)) = self.turns.take(self.info.rate_hz, turning.len()) {
                // An error means that the CPU of the clock is gone.
                let _ = turning[number].turn(next_ns);
            }
            let buffers = self.cpus.iter().flat_map(Cpu::buffers);
            let waits = self.waits.as_ref().map(|followed| &followed.waits);
            let buffers = buffers.chain(waits.into_iter().flat_map(Waits::buffers));
            let to_look = waits.map_or(Duration::MAX, Waits::until_due);
            let answers = self.timeline.answers();
            let wait = |time: Duration| wait_for_any(buffers, answers, time.min(to_look));
            let is_turn = self.turns.wait(until, wait)?;
            let read = self.read;
            self.drain_samples();
            let has_looked = self.waits.as_ref().is_some_and(|it| it.waits.is_due());
            if has_looked {
                // Drains first, so that threads which have just begun are known.
                self.drain();
                if let Some(Followed { waits, .. }) = &mut self.waits {
                    waits.look(&mut self.timeline);
                }
            }
            // A sample wakes the sampler so that its frames of Python are read in time.
            let goes_on = is_turn || has_looked || self.read > read;
            if !goes_on || Instant::now() >= until || self.timeline.samples() >= WAITING_MAX {
                return Ok(());
            }
        }
    }

    /// Reads both rings of each CPU: the side bands first, so that no sample is newer than what is
    /// known about its process, except for those that wait.
    fn drain(&mut self) -> u64 {
        let settled_ns = now_ns().saturating_sub(SETTLED_NS);
        let known = self.timeline.events().len();
        for cpu in &mut self.cpus {
            cpu.sideband().drain(self.timeline.events());
        }
        self.drain_samples();
        if let Some(Followed { waits, .. }) = &mut self.waits {
            waits.drain();
            waits.handle_side_events(&self.timeline.events()[known..]);
            for record in waits.advance(settled_ns, &mut self.timeline) {
                self.timeline.push(record);
            }
        }
        settled_ns
    }

    /// Reads the samples. Frames of Python are read at once, as their thread continues to run.
    fn drain_samples(&mut self) {
        let (timeline, has_cgroup) = (&mut self.timeline, self.offer.cgroup);
        let (read, lost, undecodable) = (&mut self.read, &mut self.lost, &mut self.undecodable);
        let lost_by_cpu = &mut self.lost_by_cpu;
        let rings = self
            .cpus
            .iter_mut()
            .filter_map(|cpu| Some((cpu.number(), cpu.samples()?)));
        let left_behind = self.left_behind.iter_mut().map(|(cpu, ring)| (*cpu, ring));
        for (cpu, ring) in left_behind.chain(rings) {
            ring.drain(|bytes| match record::parse(bytes, has_cgroup) {
                Some(Record::Sample(mut sample, stack)) => {
                    *read += 1;
                    if let Some(stack) = &stack {
                        timeline.read_python(&mut sample, stack);
                    }
                    timeline.push(decode::Record::Sample(sample));
                    if let Some(stack) = stack {
                        timeline.push(decode::Record::Stack(stack));
                    }
                }
                Some(Record::Lost(samples)) => {
                    *lost += samples;
                    *lost_by_cpu.entry(cpu).or_default() += samples;
                }
                Some(Record::Other) => {}
                None => *undecodable += 1,
            });
        }
        self.left_behind.clear();
    }

    /// Opens and closes CPUs that came or went, if all tasks are watched. For single threads the
    /// watched CPUs stay those that existed at the start.
    fn follow_hotplug(&mut self) {
        let Some(present) = self.presence.as_mut().and_then(Presence::look) else {
            return;
        };
        self.turns.set_idle(present.is_idle);
        let (offer, rate_hz) = (self.offer, self.info.rate_hz);
        self.cpus
            .retain(|cpu| present.keeps_events_of(cpu.number()));
        for &number in &present.online {
            if self.cpus.iter().all(|cpu| cpu.number() != number) {
                let is_sampled = self.only.as_ref().is_none_or(|only| only.contains(&number));
                if is_sampled {
                    self.unsampled += present.unseen_max;
                }
                let rate_hz = is_sampled.then_some(rate_hz);
                // An error is ignored, as it is tried again in a second.
                self.cpus
                    .extend(Cpu::open(number, &self.scope, rate_hz, offer));
                // What happened there meanwhile was not reported.
                self.timeline.events().push(Event {
                    time_ns: now_ns(),
                    what: What::Lost(0),
                });
            }
        }
        if let Some(Followed { waits, scope, .. }) = &mut self.waits {
            waits.follow_hotplug(&present, scope);
        }
    }
}

impl Source for PerfSource {
    fn info(&self) -> SourceInfo {
        self.info.clone()
    }

    fn poll(&mut self, wait: Duration) -> Result<Batch, SourceError> {
        let scanning = self.timeline.read_some_processes();
        let wait = self.timeline.next_turn(wait.min(DRAIN));
        let wait = if scanning { Duration::ZERO } else { wait };
        self.wait(wait)?;
        let settled_ns = self.drain();
        let mut batch = Batch::default();
        self.timeline.replay(settled_ns, &mut batch);
        let unwanted = self.timeline.unwanted();
        batch.counters = Counters {
            // Waits are not ticks, and may be unwanted as well.
            taken: self.read.saturating_sub(unwanted),
            lost: self.lost + self.undecodable,
            filtered: unwanted,
            events_lost: self.timeline.events_lost(),
            // The time that the kernel spends on its copies is not counted.
            kernel_ns: 0,
            unsampled_ns: self.unsampled.as_nanos() as u64,
        };
        batch.lost_by_cpu = self
            .lost_by_cpu
            .iter()
            .map(|(cpu, samples)| (*cpu, *samples))
            .collect();
        let is_new_second = self.timeline.keep_house();
        if is_new_second {
            self.follow_hotplug();
        }
        if let Some(Followed { waits, open, .. }) = &mut self.waits {
            for record in open.turn(waits, &[], is_new_second, &mut batch) {
                self.timeline.push(record);
            }
        }
        Ok(batch)
    }

    /// A ring cannot grow, and would overflow at a higher rate: so each clock is replaced by
    /// another one.
    fn set_rate(&mut self, rate_hz: u32) -> Result<u64, RateError> {
        if let Some(why) = self.info.rate_is_fixed {
            return Err(RateError(why.into()));
        }
        let refused = |error| RateError::refused(rate_hz, &error);
        let sampled = self.cpus.iter().filter(|cpu| cpu.is_sampled());
        let prepared = sampled.map(|cpu| cpu.prepare(&self.scope, rate_hz, self.offer));
        let prepared: Vec<_> = prepared.collect::<Result<_, _>>().map_err(refused)?;
        let sampled = self.cpus.iter_mut().filter(|cpu| cpu.is_sampled());
        for (cpu, next) in sampled.zip(prepared) {
            let left = cpu.go_on_with(next).map_err(refused)?;
            self.left_behind
                .extend(left.map(|ring| (cpu.number(), ring)));
        }
        self.info.rate_hz = rate_hz;
        self.info.buffers = buffers(&mut self.cpus);
        Ok(now_ns())
    }

    fn count_waits(&mut self) -> Result<u64, String> {
        self.follow_waits()
    }
}

/// Decides which tasks to watch, and what the kernel offers for them. With very many threads it is
/// all tasks.
fn choose_scope(target: &Target, online: &BTreeSet<u32>) -> Result<(Scope, Offer), Error> {
    let first = *online.first().ok_or(Error::NoCpu)?;
    let scope = Scope::of(target)?;
    if scope.is_large(online.len())
        && let Ok(offer) = cpu::probe(&Scope::Everybody, first)
        && offer.kernel
    {
        return Ok((Scope::Everybody, offer));
    }
    let offer = cpu::probe(&scope, first).map_err(|source| refused(first, source))?;
    Ok((scope, offer))
}

/// `2 rings of 2048 kB each`
fn buffers(cpus: &mut [Cpu]) -> String {
    let rings = cpus.iter_mut().filter_map(Cpu::samples);
    let bytes: Vec<usize> = rings.map(|ring| ring.bytes()).collect();
    let each = bytes.iter().sum::<usize>() / bytes.len().max(1);
    format!("{} rings of {} kB each", bytes.len(), each >> 10)
}

fn refused(cpu: u32, source: io::Error) -> Error {
    match source.raw_os_error() {
        Some(libc::ESRCH) => Error::Ended,
        _ => Error::PerfEvent { cpu, source },
    }
}

/// Returns a note on threads that may have been started by threads which were not watched yet: then
/// they are not watched themselves. The kernel does not report which of them are.
fn latecomers(target: &Target, known: &BTreeSet<u32>) -> Option<String> {
    let new = scope::threads(target).difference(known).count();
    (new > 0).then(|| {
        format!("{new} threads started while the others were being opened: some may be missing")
    })
}

/// Returns notes on what differs for waits, and on what is not available.
fn notes_of_waits(offer: Offer) -> Vec<String> {
    let stacks = if offer.kernel {
        None
    } else {
        Some(
            "stacks of waits are walked without the frame pointer, which is not told without rights: \
             some are cut where a function needs it; times in the queue after a preemption have none"
                .into(),
        )
    };
    let notes = [
        "when threads wait is exact; what for, and with which stack, is looked up while they do: \
         waits too short to be met count as those that were",
        "who ends waits is not known without BPF, so that kept-waiting is empty; waits for the \
         global lock of Python are told as lock, and those for a quota as queue",
    ];
    notes.map(String::from).into_iter().chain(stacks).collect()
}

fn notes(offer: Offer) -> Vec<String> {
    let mut notes = vec![
        "the kernel copies stacks to be walked here: several times the cost of BPF, and the \
         kernel's part is not in the own cost"
            .to_string(),
    ];
    if PerfSource::READS_PYTHON {
        notes.push(
            "functions of Python are read a moment after each sample, not at that moment as by \
             BPF: what a thread did in between may be missing"
                .into(),
        );
    }
    if !offer.kernel {
        notes.push(
            "time in the kernel is not seen: that takes root, CAP_PERFMON or kernel.perf_event_paranoid = 1"
                .into(),
        );
    }
    if !offer.cgroup {
        notes.push("this kernel does not tell the control groups of samples (5.7 does)".into());
    }
    notes
}
