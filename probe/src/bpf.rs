//! The source that samples with BPF.

use crate::alarm::Alarm;
use crate::clocks::{Clocks, SETTLED_NS};
use crate::cpus::presence::{Presence, Present};
use crate::decode::decode;
use crate::drain::read_what_is_there;
use crate::error::Error;
use crate::events::call::Calls;
use crate::events::happening::{Happening, Happenings, Told};
use crate::events::wait::Waits;
use crate::events::{Event, tick};
use crate::files;
use crate::first_record::FirstRecord;
use crate::loader::{self, HappeningProgram, Settings};
use crate::mappings::MAPPINGS_MAX;
use crate::open_files;
use crate::open_waits::OpenWaits;
use crate::privilege::Rights;
use crate::python::Python;
use crate::sample::{Batch, Counters};
use crate::source::{DRAIN, EngineKind, RateError, Source, SourceError, SourceInfo, wait_for_any};
use crate::tables::{Limits, TableMaps, Tables};
use crate::target::Target;
use crate::targets::{FilterMaps, Targets};
use crate::time::now_ns;
use crate::timeline::Timeline;
use crate::unwinding::Unwinding;
use crate::wakeup::Wakeup;
use aya::maps::{MapData, PerCpuArray, RingBuf};
use probe_ebpf::limits::{RING_BYTES, USER_FRAMES_MAX};
use probe_ebpf::settings::counter;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two looks at the rings as long as records come: as often as they are read, as functions
/// of Python can be read only while their process lives. If there is nothing, the source rests.
const LOOK: Duration = DRAIN;

/// How long after the first record after a rest the rings are read: by then it is complete
/// ([`SETTLED_NS`]), as are others of the same moment.
const AFTER_FIRST: Duration = Duration::from_millis(5);

/// What to sample, and how.
#[derive(Debug, Clone)]
pub struct Config {
    /// Which tasks are sampled.
    pub target: Target,
    /// Samples per second of a busy CPU; 0 for no clock at all: then only probes of calls give
    /// samples.
    pub rate_hz: u32,
    /// Maximum number of user frames per sample, up to [`USER_FRAMES_MAX`].
    pub max_depth: u32,
    /// Size of the ring buffer in bytes; a power of two.
    pub ring_bytes: u32,
    /// Limits for memory and cache of unwind tables.
    pub tables: Limits,
    /// Maximum number of mappings that are kept of one process.
    pub mappings_max: usize,
    /// Whether to walk every stack a second time, from a copy, and compare; for tests.
    pub check_walks: bool,
    /// Whether to provide the data from which stacks were walked here; for tests.
    pub keep_walks: bool,
    /// Whether to make room for probes of calls: see [`BpfSource::take_calls`].
    pub calls: bool,
    /// Whether to follow the waits of threads, too.
    pub waits: bool,
    /// An event to be counted besides time.
    pub happening: Option<Happening>,
    /// Whether to walk stacks as on kernels without `bpf_loop`, whatever this one has; for tests.
    pub without_loop: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            target: Target::default(),
            rate_hz: 99,
            max_depth: 512,
            ring_bytes: RING_BYTES as u32,
            tables: Limits::default(),
            mappings_max: MAPPINGS_MAX,
            check_walks: false,
            keep_walks: false,
            calls: false,
            waits: false,
            happening: None,
            without_loop: false,
        }
    }
}

/// Samples by BPF: one clock per CPU runs a program that walks the stack.
///
/// Dropping it detaches everything.
pub struct BpfSource {
    // Closed first, so that no tick uses maps that are being removed.
    clocks: Clocks,
    presence: Presence,
    samples: RingBuf<MapData>,
    ring_bytes: usize,
    /// Whether the ring may hold more than was read last.
    is_behind: bool,
    wakeup: Wakeup,
    first_record: FirstRecord,
    /// Ends a wait from another thread. `None`: no wait is long.
    alarm: Option<Arc<Alarm>>,
    counters: PerCpuArray<MapData, u64>,
    timeline: Timeline,
    undecodable: u64,
    info: SourceInfo,
    verified: Vec<(&'static str, u32)>,
    waits: Option<Followed>,
    happenings: Option<Happenings>,
    /// Whether programs of probes are loaded.
    has_calls: bool,
    target: Target,
    loaded: loader::Object,
}

/// The waits of a run that are being followed.
struct Followed {
    waits: Waits,
    open: OpenWaits,
    /// When following began, on the clock of the samples.
    since_ns: u64,
}

impl BpfSource {
    /// Loads the programs, and begins to sample.
    pub fn start(config: &Config) -> Result<Self, Error> {
        let settings = Settings {
            max_user_frames: config.max_depth.clamp(1, USER_FRAMES_MAX as u32),
            ring_bytes: config.ring_bytes,
            check_walks: config.check_walks,
            calls: config.calls,
            happening: config.happening.clone(),
            waits: config.waits,
            without_loop: config.without_loop,
        };
        open_files::raise_limit();
        let mut loaded = loader::load(&settings, &config.target)?;
        let tick = loaded.events.remove(&Event::Tick);
        let tick = tick.ok_or(Error::Foreign(tick::PROGRAM))?;
        let targets = Targets::filtered_in_bpf(
            &config.target,
            FilterMaps {
                pids: loaded.target_pids,
                tids: loaded.target_tids,
                uids: loaded.target_uids,
                comm_pids: loaded.comm_pids,
                comm_verdicts: loaded.comm_verdicts,
            },
        )?;
        let maps = TableMaps::of_bpf(loaded.tables).map_err(Error::Tables)?;
        let tables = Tables::new(maps, &config.tables).map_err(Error::Tables)?;
        let unwinding = Unwinding::new(tables, settings.max_user_frames as usize)
            .keeping_walks(config.keep_walks);
        let happenings = match loaded.happening {
            Some(HappeningProgram::Counter(counter, maps)) => {
                let only = config.target.cpus.clone();
                Some(Happenings::of_counter(counter, maps, only)?)
            }
            Some(HappeningProgram::Point(maps)) => Some(Happenings::of_point(maps)?),
            None => None,
        };
        // SAFETY: the ring's descriptor is open as long as `loaded.samples` is there.
        let ring = unsafe { BorrowedFd::borrow_raw(loaded.samples.as_raw_fd()) };
        let wakeup = Wakeup::of(ring).map_err(Error::Ring)?;
        // Before the clocks: what drops those drops the pulses, too.
        let presence = Presence::begin();
        let clocks = Clocks::start(tick, config.rate_hz, config.target.cpus.clone())?;
        let rights = Rights::current().map(|rights| rights.notes());
        let notes = rights.unwrap_or_default().into_iter().chain(loaded.notes);
        let mut source = Self {
            clocks,
            presence,
            wakeup,
            first_record: FirstRecord::new(loaded.is_resting),
            alarm: None,
            samples: loaded.samples,
            ring_bytes: config.ring_bytes as usize,
            is_behind: false,
            counters: loaded.counters,
            timeline: Timeline::new(targets, unwinding)
                .keeping_mappings(config.mappings_max)
                .with_python(Python::new(loaded.python)),
            undecodable: 0,
            info: SourceInfo {
                engine: Some(EngineKind::Bpf),
                rate_hz: config.rate_hz,
                rate_is_fixed: None,
                unwinding: "tables",
                buffers: format!("one ring of {} MB", config.ring_bytes >> 20),
                notes: notes.collect(),
            },
            verified: loaded.verified,
            waits: None,
            happenings,
            has_calls: false,
            target: config.target.clone(),
            loaded: loaded.object,
        };
        if config.waits
            && let Err(why) = source.follow_waits()
        {
            source.info.notes.push(why);
        }
        Ok(source)
    }

    /// Begins to follow waits; returns since when they are followed. The error is a sentence.
    fn follow_waits(&mut self) -> Result<u64, String> {
        if let Some(followed) = &self.waits {
            return Ok(followed.since_ns);
        }
        let loaded = self.loaded.load_waits()?;
        self.info.notes.extend(loaded.notes);
        self.verified.extend(loaded.verified);
        let files = files::for_those_aside();
        let target = self.timeline.targets().living(&self.target);
        let waits = Waits::start(loaded.maps, &target, &files);
        let since_ns = now_ns();
        self.waits = Some(Followed {
            waits,
            open: OpenWaits::new(&files),
            since_ns,
        });
        Ok(since_ns)
    }

    /// Maximum number of instructions that the verifier may process for one program. The kernel's
    /// own limit is a million; this one keeps the start short: a thousand instructions take about
    /// 0.6 ms, `tick` 13 ms on Linux 6.18. Kernels count differently: 6.19 has a tenth more than
    /// 6.18.
    pub const VERIFIED_MAX: u32 = 25_000;

    /// Number of instructions that the verifier processed, by program.
    pub fn verified_instructions(&self) -> &[(&'static str, u32)] {
        &self.verified
    }

    /// Loads the programs of probes of calls, if [`Config::calls`] is set; can be called once.
    /// Their samples come together with those of the clock.
    pub fn take_calls(&mut self) -> Result<Calls, Error> {
        let loaded = self.loaded.load_calls()?;
        self.has_calls = true;
        self.info.notes.extend(loaded.notes);
        self.verified.extend(loaded.verified);
        Calls::new(loaded.maps).map_err(Error::Uprobes)
    }

    /// Number of sampled CPUs.
    pub fn cpus(&self) -> usize {
        self.clocks.len()
    }

    /// Waits once. Returns whether it has to be followed by a turn, whatever was read: the alarm has
    /// rung, or a process has begun, ended or executed a program.
    fn wait(&mut self, wait: Duration) -> Result<bool, SourceError> {
        let alarm = self.alarm.clone();
        let wakeup = &self.wakeup;
        let answers = self.timeline.answers();
        // While processes start all the time, the sampler is not woken up for each of them.
        let is_quiet = self.timeline.is_quiet();
        self.clocks
            .turn_while(Instant::now() + wait, |clocks, time| {
                let bells = is_quiet.then(|| clocks.bells()).into_iter().flatten();
                let own = alarm.iter().map(|alarm| alarm.as_fd());
                let own = std::iter::once(wakeup.as_fd()).chain(own);
                let buffers = own.chain(clocks.sidebands()).chain(bells);
                wait_for_any(buffers, answers, time)
            })?;
        self.wakeup.clear();
        let is_called = self.alarm.as_ref().is_some_and(|alarm| alarm.silence());
        let has_rung = self.clocks.have_rung() && is_quiet;
        if has_rung {
            self.timeline.expect_processes();
        }
        Ok(is_called || has_rung)
    }

    /// Waits until there is something, but no longer than `wait`, and reads both rings; returns the time
    /// until which they were read. Records do not wake the sampler while they come often: it looks for
    /// them. Once it finds none it rests, and the next record wakes it.
    fn rest(&mut self, wait: Duration) -> Result<u64, SourceError> {
        let mut end = Instant::now() + wait;
        // Records that were too new for the last turn are there already.
        let mut is_woken = self.first_record.wakes() && self.timeline.has_records();
        if is_woken {
            end = end.min(Instant::now() + AFTER_FIRST);
        }
        loop {
            // While processes begin and end, it looks for what happens to them, too.
            let is_resting = self.first_record.wakes() && self.timeline.is_quiet();
            let look_at = if is_resting {
                end
            } else {
                end.min(Instant::now() + LOOK)
            };
            let is_called = self.wait(look_at.saturating_duration_since(Instant::now()))?;
            let is_over = look_at >= end || Instant::now() < look_at;
            let mut settled_ns = self.drain();
            if !is_called && !is_over && !self.timeline.has_records() {
                self.first_record.set_waking(true);
                // What came before that has not woken the sampler.
                settled_ns = self.drain();
            }
            let has_records = self.timeline.has_records();
            if has_records && !is_woken && self.first_record.wakes() {
                is_woken = true;
                self.first_record.came();
                end = end.min(Instant::now() + AFTER_FIRST);
            } else if is_called || is_over || has_records {
                return Ok(settled_ns);
            }
        }
    }

    /// Whether a wait may be long while nothing happens: not if its end would come late to a user who
    /// waits for a process to end or for the first call of a function, nor if threads that wait have
    /// to be looked at.
    fn may_rest(&self) -> bool {
        self.alarm.is_some()
            && self.waits.is_none()
            && self.happenings.is_none()
            && !self.has_calls
            && self.timeline.targets().alive().is_none()
    }

    /// Reads both rings; the side band first, so that no sample is newer than what is known about
    /// its process, except those that have to wait.
    fn drain(&mut self) -> u64 {
        let settled_ns = now_ns().saturating_sub(SETTLED_NS);
        self.clocks.drain(self.timeline.events());
        self.is_behind = read_what_is_there(&mut self.samples, self.ring_bytes, |record| {
            match decode(record) {
                Ok(record) => self.timeline.push(record),
                Err(_) => self.undecodable += 1,
            }
        });
        settled_ns
    }

    fn total(&self, slot: u32) -> u64 {
        let values = self.counters.get(&slot, 0);
        values.map_or(0, |values| values.iter().sum())
    }

    /// Returns a total that the program of an event besides time counts.
    fn total_of_happenings(&self, slot: u32) -> u64 {
        let counted = self.happenings.as_ref().map(|_| self.total(slot));
        counted.unwrap_or_default()
    }

    /// Reads the program's counters. Each of them takes a system call.
    fn count(&self, batch: &mut Batch) {
        let unwanted = self.timeline.unwanted();
        let taken =
            self.total(counter::TAKEN) + self.total_of_happenings(counter::HAPPENINGS_TAKEN);
        batch.lost_by_cpu = self.lost_by_cpu();
        let lost = batch
            .lost_by_cpu
            .iter()
            .map(|(_, samples)| samples)
            .sum::<u64>()
            + self.total_of_happenings(counter::HAPPENINGS_LOST);
        batch.counters = Counters {
            // Samples that were filtered late are not wanted, and do not count.
            taken: taken - unwanted.min(taken),
            lost: lost + self.undecodable,
            filtered: self.total(counter::FILTERED) + unwanted,
            events_lost: self.timeline.events_lost(),
            kernel_ns: self.total(counter::SPENT_NS)
                + self.total_of_happenings(counter::HAPPENINGS_SPENT_NS),
            unsampled_ns: self.clocks.unsampled().as_nanos() as u64,
        };
    }

    /// Opens and closes the events of CPUs that came or went.
    fn follow_hotplug(&mut self, present: &Present) {
        self.clocks.follow_hotplug(present);
        if let Some(happenings) = &mut self.happenings {
            happenings.follow_hotplug(present);
        }
    }

    /// Returns the program's counts of the event besides time. How often it happened is read last,
    /// so that the others are never of more occurrences.
    fn told(&self) -> Told {
        Told {
            samples: self.total(counter::HAPPENINGS_TAKEN),
            unseen: self.total(counter::HAPPENED_UNSEEN),
            happened: self.total(counter::HAPPENED),
        }
    }

    fn lost_by_cpu(&self) -> Vec<(u32, u64)> {
        let Ok(values) = self.counters.get(&counter::LOST, 0) else {
            return Vec::new();
        };
        let by_cpu = (0..).zip(values.iter().copied());
        by_cpu.filter(|(_, samples)| *samples > 0).collect()
    }
}

impl Source for BpfSource {
    fn info(&self) -> SourceInfo {
        self.info.clone()
    }

    fn poll(&mut self, wait: Duration) -> Result<Batch, SourceError> {
        let scanning = self.timeline.read_some_processes();
        let wait = self.timeline.next_turn(if self.may_rest() {
            wait
        } else {
            wait.min(DRAIN)
        });
        let goes_on = scanning || self.is_behind;
        let settled_ns = self.rest(if goes_on { Duration::ZERO } else { wait })?;
        let mut batch = Batch::default();
        self.timeline.replay(settled_ns, &mut batch);
        self.count(&mut batch);
        let is_new_second = self.timeline.keep_house();
        if is_new_second && let Some(present) = self.presence.look() {
            self.clocks.set_idle(present.is_idle);
            self.follow_hotplug(&present);
        }
        if let Some(happenings) = &self.happenings {
            batch.happened = happenings.happened(|| self.told());
        }
        if let Some(happenings) = &mut self.happenings {
            happenings.follow_rates(now_ns());
        }
        let ended = self.timeline.take_ended_threads();
        if let Some(Followed { waits, open, .. }) = &mut self.waits {
            for record in open.turn(waits, &ended, is_new_second, &mut batch) {
                self.timeline.push(record);
            }
        }
        Ok(batch)
    }

    fn wake_by(&mut self, alarm: Arc<Alarm>) {
        self.alarm = Some(alarm);
    }

    fn set_rate(&mut self, rate_hz: u32) -> Result<u64, RateError> {
        if let Err(error) = self.clocks.set_rate(rate_hz) {
            // Clocks that fail here belong to a CPU that is gone.
            let _ = self.clocks.set_rate(self.info.rate_hz);
            return Err(RateError::refused(rate_hz, &error));
        }
        self.info.rate_hz = rate_hz;
        Ok(now_ns())
    }

    fn count_waits(&mut self) -> Result<u64, String> {
        self.follow_waits()
    }

    fn calls(&mut self) -> Result<Calls, String> {
        self.take_calls().map_err(|error| error.to_string())
    }
}
