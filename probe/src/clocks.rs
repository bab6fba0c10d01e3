//! The sampling clocks and one side band per online CPU; CPUs can come and go. If only some CPUs
//! are sampled, the others have no clocks, but a side band: a process can map files on any CPU.

use crate::cpus::{self, presence::Present};
use crate::error::Error;
use crate::events::tick::{self, Pair, Turns};
use crate::perf_event::Tasks;
use crate::sideband::bell::Bell;
use crate::sideband::record::{Event, What};
use crate::sideband::{self, SideBand};
use crate::time::now_ns;
use aya::programs::ProgramFd;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

/// Upper limit of the time between a record's timestamp and its visibility in the ring: a record
/// may have got its time just before we read the clock, and be committed just after we read the
/// ring.
pub const SETTLED_NS: u64 = 2_000_000;

/// Clocks and side band of one CPU. Closing it detaches them.
#[derive(Debug)]
struct Cpu {
    /// `None` if the CPU is not sampled.
    clocks: Option<Pair>,
    sideband: SideBand,
    /// `None` if the kernel refuses it: new processes are then noticed a moment later.
    bell: Option<Bell>,
}

/// Clocks and side bands of all CPUs.
#[derive(Debug)]
pub struct Clocks {
    cpus: BTreeMap<u32, Cpu>,
    rate_hz: u32,
    turns: Turns,
    program: ProgramFd,
    /// The sampled CPUs; `None` for all.
    only: Option<BTreeSet<u32>>,
    /// Unread records of CPUs that went offline.
    left_behind: Vec<Event>,
    /// Upper limit of the CPU time, summed over CPUs, for which a CPU was online and not sampled yet.
    unsampled: Duration,
}

impl Clocks {
    /// Opens the side bands, and the clocks unless the rate is 0. The side bands come first, so
    /// that no process is missed.
    pub fn start(
        program: ProgramFd,
        rate_hz: u32,
        only: Option<BTreeSet<u32>>,
    ) -> Result<Self, Error> {
        let mut clocks = Self {
            cpus: BTreeMap::new(),
            rate_hz,
            turns: Turns::new(),
            program,
            only,
            left_behind: Vec::new(),
            unsampled: Duration::ZERO,
        };
        let online = cpus::online().map_err(Error::Cpus)?;
        for &cpu in &online {
            match clocks.open(cpu) {
                // The CPU went offline after the list was read.
                Err(Error::PerfEvent { source, .. })
                    if source.raw_os_error() == Some(libc::ENODEV) => {}
                result => result?,
            }
        }
        if clocks.len() == 0 && rate_hz > 0 {
            return Err(Error::NoCpu);
        }
        // Last, because they are not indispensable: a user's events may lock memory for the rings of
        // the side bands, and whatever the limit of locked memory adds.
        online.iter().for_each(|cpu| clocks.open_bell(*cpu));
        Ok(clocks)
    }

    /// Adds and removes CPUs that came online or went offline, or both. One that cannot be opened is
    /// tried again at the next call.
    pub fn follow_hotplug(&mut self, present: &Present) {
        self.cpus.retain(|cpu, opened| {
            let is_kept = present.keeps_events_of(*cpu);
            if !is_kept {
                opened.sideband.drain(&mut self.left_behind);
            }
            is_kept
        });
        for &cpu in &present.online {
            if !self.cpus.contains_key(&cpu) {
                if self.is_sampled(cpu) {
                    self.unsampled += present.unseen_max;
                }
                _ = self.open(cpu);
                self.open_bell(cpu);
                // What happened there meanwhile was not reported.
                self.left_behind.push(Event {
                    time_ns: now_ns(),
                    what: What::Lost(0),
                });
            }
        }
    }

    /// Returns the upper limit of the CPU time, summed over CPUs, for which a CPU was online and not
    /// sampled yet.
    pub fn unsampled(&self) -> Duration {
        self.unsampled
    }

    fn is_sampled(&self, cpu: u32) -> bool {
        let is_wanted = self.only.as_ref().is_none_or(|only| only.contains(&cpu));
        is_wanted && self.rate_hz > 0
    }

    /// Changes the rate, also for CPUs that come later.
    pub fn set_rate(&mut self, rate_hz: u32) -> io::Result<()> {
        self.rate_hz = rate_hz;
        self.sampled().try_for_each(|pair| pair.set_rate(rate_hz))
    }

    /// Says whether the machine is idle: clocks are restarted less often then.
    pub fn set_idle(&mut self, is_idle: bool) {
        self.turns.set_idle(is_idle);
    }

    /// Restarts the clocks of a CPU when it is its turn. Calls `wait` with the time to wait, until
    /// the time `until`.
    pub fn turn_while<E>(
        &mut self,
        until: Instant,
        wait: impl Fn(&Self, Duration) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            if let Some((number, next_ns)) = self.turns.take(self.rate_hz, self.len())
                && let Some(pair) = self.sampled().nth(number)
            {
                // Clocks that fail belong to a CPU that is gone.
                let _ = pair.turn(next_ns);
            }
            if !self.turns.wait(until, |time| wait(self, time))? {
                return Ok(());
            }
        }
    }

    fn sampled(&mut self) -> impl Iterator<Item = &mut Pair> {
        self.cpus.values_mut().filter_map(|cpu| cpu.clocks.as_mut())
    }

    /// Reads all records of the side bands; they are not sorted.
    pub fn drain(&mut self, events: &mut Vec<Event>) {
        events.append(&mut self.left_behind);
        for cpu in self.cpus.values_mut() {
            cpu.sideband.drain(events);
        }
    }

    /// Descriptors that become readable when a side band fills up.
    pub fn sidebands(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.cpus.values().map(|cpu| cpu.sideband.as_fd())
    }

    /// Descriptors that become readable when processes begin, end or execute a program.
    pub fn bells(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let bells = self.cpus.values().filter_map(|cpu| cpu.bell.as_ref());
        bells.map(Bell::as_fd)
    }

    /// Whether that has happened since the last call.
    pub fn have_rung(&mut self) -> bool {
        let bells = self.cpus.values_mut().filter_map(|cpu| cpu.bell.as_mut());
        bells.fold(false, |rung, bell| bell.has_rung() | rung)
    }

    /// Number of sampled CPUs.
    pub fn len(&self) -> usize {
        self.cpus
            .values()
            .filter(|cpu| cpu.clocks.is_some())
            .count()
    }

    fn open(&mut self, cpu: u32) -> Result<(), Error> {
        let failed = |source: io::Error| Error::PerfEvent { cpu, source };
        let sideband = SideBand::open(Tasks::All, cpu, sideband::RING_BYTES).map_err(failed)?;
        let clocks = if self.is_sampled(cpu) {
            Some(tick::attach(&self.program, cpu, self.rate_hz).map_err(failed)?)
        } else {
            None
        };
        let opened = Cpu {
            clocks,
            sideband,
            bell: None,
        };
        self.cpus.insert(cpu, opened);
        Ok(())
    }

    fn open_bell(&mut self, cpu: u32) {
        if let Some(opened) = self.cpus.get_mut(&cpu) {
            opened.bell = Bell::open(cpu).ok();
        }
    }
}
