//! The source that samples with BPF.

use crate::clocks::Clocks;
use crate::decode::{RawSample, Record, StackCopy, decode};
use crate::error::Error;
use crate::loader::{self, Settings};
use crate::process::ProcessTable;
use crate::resolve::Resolver;
use crate::sample::{Batch, Counters};
use crate::sideband::record::{Event, What};
use crate::source::{Source, SourceError, SourceInfo};
use crate::startup::StartupScan;
use crate::tables::{Limits, TableMaps, Tables};
use crate::target::Target;
use crate::targets::{FilterMaps, Targets};
use crate::unwinding::Unwinding;
use aya::maps::{MapData, PerCpuArray, RingBuf};
use probe_ebpf::limits::{RING_BYTES, USER_FRAMES_MAX};
use probe_ebpf::settings::counter;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashMap;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::time::{Duration, Instant};

/// A record may have got its time just before we looked at the clock, and be
/// committed just after we looked at the ring. Nothing takes that long.
const SETTLED_NS: u64 = 2_000_000;

/// How often CPUs that came or went are looked for, and the dead forgotten.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// What to sample and how.
#[derive(Debug, Clone)]
pub struct Config {
    pub target: Target,
    pub rate_hz: u32,
    /// User frames per sample, up to [`USER_FRAMES_MAX`].
    pub max_depth: u32,
    /// Size of the ring buffer; a power of two.
    pub ring_bytes: u32,
    /// Memory and cache of unwind tables.
    pub tables: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            target: Target::default(),
            rate_hz: 99,
            max_depth: 512,
            ring_bytes: RING_BYTES as u32,
            tables: Limits::default(),
        }
    }
}

/// Samples by BPF: one clock per CPU runs a program that walks the stack.
///
/// Dropping it detaches everything.
pub struct BpfSource {
    // Closed first: no tick finds maps that are going away.
    clocks: Clocks,
    samples: RingBuf<MapData>,
    counters: PerCpuArray<MapData, u64>,
    targets: Targets,
    processes: ProcessTable,
    startup: StartupScan,
    resolver: Resolver,
    unwinding: Unwinding,
    /// Read, but newer than the side band has been read.
    waiting_samples: Vec<RawSample>,
    waiting_events: Vec<Event>,
    /// Copies of stacks, by the CPU and time of their samples.
    stacks: HashMap<(u32, u64), StackCopy>,
    events_lost: u64,
    undecodable: u64,
    unwanted: u64,
    housekeeping: Instant,
    info: SourceInfo,
    verified: Vec<(&'static str, u32)>,
    _loaded: loader::Object,
}

impl BpfSource {
    pub fn start(config: &Config) -> Result<Self, Error> {
        let settings = Settings {
            max_user_frames: config.max_depth.clamp(1, USER_FRAMES_MAX as u32),
            ring_bytes: config.ring_bytes,
        };
        let loaded = loader::load(&settings, &config.target)?;
        let targets = Targets::new(
            &config.target,
            FilterMaps {
                pids: loaded.target_pids,
                tids: loaded.target_tids,
                comm_pids: loaded.comm_pids,
                comm_verdicts: loaded.comm_verdicts,
            },
        )?;
        let maps = TableMaps::of_bpf(loaded.tables).map_err(Error::Tables)?;
        let tables = Tables::new(maps, &config.tables).map_err(Error::Tables)?;
        let unwinding = Unwinding::new(tables, settings.max_user_frames as usize);
        let clocks = Clocks::start(loaded.sampler, config.rate_hz)?;
        let mut notes = loaded.notes;
        if !clocks.has_build_ids() {
            notes.push("this kernel does not tell build-ids of mapped files (5.12 does)".into());
        }
        Ok(Self {
            clocks,
            samples: loaded.samples,
            counters: loaded.counters,
            targets,
            processes: ProcessTable::new(),
            startup: StartupScan::new(),
            resolver: Resolver::default(),
            unwinding,
            waiting_samples: Vec::new(),
            waiting_events: Vec::new(),
            stacks: HashMap::new(),
            events_lost: 0,
            undecodable: 0,
            unwanted: 0,
            housekeeping: Instant::now(),
            info: SourceInfo {
                engine: "bpf",
                rate_hz: config.rate_hz,
                unwinding: "tables",
                notes,
            },
            verified: loaded.verified,
            _loaded: loaded.object,
        })
    }

    /// Instructions that the verifier looked at, by program.
    pub fn verified_instructions(&self) -> &[(&'static str, u32)] {
        &self.verified
    }

    pub fn cpus(&self) -> usize {
        self.clocks.len()
    }

    fn wait(&self, wait: Duration) -> Result<(), SourceError> {
        // SAFETY: the ring buffer's descriptor lives as long as `self`.
        let ring = unsafe { BorrowedFd::borrow_raw(self.samples.as_raw_fd()) };
        let mut descriptors: Vec<PollFd<'_>> = std::iter::once(ring)
            .chain(self.clocks.sidebands())
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let timeout = Timespec::try_from(wait)
            .map_err(|_| SourceError("the waiting time is too long".into()))?;
        match poll(&mut descriptors, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(SourceError(format!("poll: {error}"))),
        }
    }

    /// Reads both rings; the side band first, so that no sample is newer than
    /// what is known of its process, but for those that wait.
    fn drain(&mut self) -> u64 {
        let settled_ns = now_ns().saturating_sub(SETTLED_NS);
        self.clocks.drain(&mut self.waiting_events);
        while let Some(record) = self.samples.next() {
            match decode(&record) {
                Ok(Record::Sample(sample)) => self.waiting_samples.push(sample),
                Ok(Record::Stack(stack)) => {
                    self.stacks.insert((stack.cpu, stack.time_ns), stack);
                }
                Err(_) => self.undecodable += 1,
            }
        }
        settled_ns
    }

    /// Everything up to `settled_ns`, in the order in which it happened.
    fn replay(&mut self, settled_ns: u64, batch: &mut Batch) {
        let now_ns = now_ns();
        self.waiting_events.sort_by_key(|event| event.time_ns);
        self.waiting_samples.sort_by_key(|sample| sample.time_ns);
        let old_events = self
            .waiting_events
            .partition_point(|event| event.time_ns <= settled_ns);
        let old_samples = self
            .waiting_samples
            .partition_point(|sample| sample.time_ns <= settled_ns);
        let mut events = self.waiting_events.drain(..old_events).peekable();
        for raw in self.waiting_samples.drain(..old_samples) {
            while let Some(event) = events.next_if(|event| event.time_ns <= raw.time_ns) {
                follow(
                    &event,
                    &mut self.processes,
                    &mut self.targets,
                    &mut self.unwinding,
                    &mut self.events_lost,
                );
            }
            if !self.targets.wants(&raw) {
                self.unwanted += 1;
                continue;
            }
            let located = self.resolver.locate(&raw, &mut self.processes, now_ns);
            // What it maps is built from now on, if it was not before.
            for module in self.processes.modules.take_fresh() {
                self.unwinding.meet(&module);
                batch.modules.push(module);
            }
            self.unwinding.sampled(raw.tgid, &located.mappings, now_ns);
            match self.stacks.remove(&(raw.cpu, raw.time_ns)) {
                Some(stack) if !located.in_exec => self.unwinding.hold(raw, located, stack),
                _ => batch
                    .samples
                    .push(self.resolver.resolve(&raw, &located, &mut self.processes)),
            }
        }
        for event in events {
            follow(
                &event,
                &mut self.processes,
                &mut self.targets,
                &mut self.unwinding,
                &mut self.events_lost,
            );
        }
        self.stacks.retain(|(_, time_ns), _| *time_ns > settled_ns);
        for (raw, located) in self.unwinding.poll(now_ns) {
            batch
                .samples
                .push(self.resolver.resolve(&raw, &located, &mut self.processes));
        }
    }

    fn keep_house(&mut self) {
        if self.housekeeping.elapsed() < HOUSEKEEPING {
            return;
        }
        self.housekeeping = Instant::now();
        self.clocks.follow_hotplug();
        self.processes.sweep(now_ns());
        self.unwinding.sweep(now_ns());
    }

    fn count(&self) -> Counters {
        let total = |slot: u32| {
            self.counters
                .get(&slot, 0)
                .map_or(0, |values| values.iter().sum::<u64>())
        };
        Counters {
            // A sample of nobody's interest is one that was filtered late.
            taken: total(counter::TAKEN) - self.unwanted.min(total(counter::TAKEN)),
            lost: total(counter::LOST) + self.undecodable,
            filtered: total(counter::FILTERED) + self.unwanted,
            events_lost: self.events_lost,
            kernel_ns: total(counter::SPENT_NS),
        }
    }
}

impl Source for BpfSource {
    fn info(&self) -> SourceInfo {
        self.info.clone()
    }

    fn poll(&mut self, wait: Duration) -> Result<Batch, SourceError> {
        let scanning = self
            .startup
            .step(&mut self.processes, &mut self.targets, now_ns());
        self.wait(if scanning { Duration::ZERO } else { wait })?;
        let settled_ns = self.drain();
        let mut batch = Batch::default();
        self.replay(settled_ns, &mut batch);
        for module in self.processes.modules.take_fresh() {
            self.unwinding.meet(&module);
            batch.modules.push(module);
        }
        batch.processes = self.processes.take_changes();
        batch.counters = self.count();
        // Samples that are held will come later than those around them.
        let held_ns = self
            .unwinding
            .oldest_held_ns()
            .map_or(u64::MAX, |oldest| oldest - 1);
        batch.complete_until_ns = settled_ns.min(held_ns);
        batch.targets_alive = self.targets.alive();
        batch.tables = self.unwinding.tables().stats();
        self.keep_house();
        Ok(batch)
    }
}

fn follow(
    event: &Event,
    processes: &mut ProcessTable,
    targets: &mut Targets,
    unwinding: &mut Unwinding,
    lost: &mut u64,
) {
    if let What::Lost(records) = event.what {
        *lost += records;
    }
    processes.apply(event);
    targets.apply(event);
    unwinding.apply(event, now_ns());
}

/// `CLOCK_MONOTONIC`, as in samples and events.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
