//! The event *call*: a function that has a probe is called, or returns. Most calls only
//! count; some give their stack, and are samples.
//!
//! | module | holds |
//! |---|---|
//! | `attach` | a breakpoint at an instruction of a file |
//! | `changing` | attaching and taking away, one at a time and whole |
//! | `leaving` | probes that are in place, and those that are being taken away |
//! | `point` | probes at tracepoints of the kernel |
//! | `programs` | what runs at breakpoints |
//! | `maps` | what the programs share with us |
//! | `reading` | what was counted, of all CPUs together |
//! | `caution` | what must not be done, so that no process is ended by it |
//! | `cost` | what a hit costs on this machine, measured |

mod attach;
mod caution;
mod changing;
mod cost;
mod leaving;
mod maps;
mod point;
mod programs;
mod reading;

pub use attach::{AttachError, Scope};
pub use caution::Caution;
pub use changing::leave_to_exit;
pub use cost::Cost;
pub use maps::CallMaps;
pub(crate) use point::{Points, recursion_misses, verified_instructions};
pub use programs::Programs;
pub use reading::{Reading, Texts};

use attach::{Link, ProbedInstruction, Uprobes, When};
use leaving::{Leaving, Placed};
use probe_ebpf::calls::{Cookie, Orders, POINTS_MAX, PROBES_MAX, order, site};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The programs in `probe-ebpf/src/bpf/call.rs`.
pub const BEGINS: &str = "call_begins";
/// The program for the end of a call.
pub const ENDS: &str = "call_ends";

/// The programs for tracepoints of the kernel, in the order of their numbers, in
/// `probe-ebpf/src/bpf/point.rs`.
pub(crate) const POINTS: [&str; POINTS_MAX] = [
    "point_0", "point_1", "point_2", "point_3", "point_4", "point_5", "point_6", "point_7",
    "point_8", "point_9", "point_10", "point_11", "point_12", "point_13", "point_14", "point_15",
];

/// A sample stands for one call, whose stack was taken.
pub const WEIGHT: u64 = 1;

/// One instruction that gets a breakpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SitePlan {
    /// Where in the file.
    pub offset: u64,
    /// Bytes between the stack pointer there and the return address.
    pub pushed: u32,
    /// It is a branch, and only counts if it is not taken.
    pub unless_taken: bool,
    /// Where in the file the counter is that tells the program of the probe. The kernel
    /// counts it up in each process, and down again.
    pub semaphore: Option<u64>,
}

/// How the ends of calls are seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndPlan {
    /// Calls are counted when they begin, and not timed.
    Unseen,
    /// By the kernel's return address, put on the stack at the entry.
    Replaced,
    /// By a breakpoint at each `ret`; calls belong to goroutines.
    At(Vec<SitePlan>),
}

/// One copy of a function, in one file.
#[derive(Debug, Clone)]
pub struct FunctionPlan {
    /// The file itself, so that nobody can put another one in its place.
    pub file: Arc<File>,
    /// Where its calls are seen to begin.
    pub entry: SitePlan,
    /// How they are seen to end.
    pub ends: EndPlan,
    /// Its calls belong to goroutines, not to threads.
    pub is_go: bool,
}

/// How often a probe is read until no call comes in between.
const READ_AGAIN_MAX: u32 = 5;

/// How long a probe waits until those of the measurement are gone, if all numbers are taken.
const MEASURING_LEAVES: Duration = Duration::from_secs(10);

/// All probes. Dropping it, or dying, takes them away.
pub struct Calls {
    placed: BTreeMap<u8, Placed>,
    /// Probes on functions of our own, by which the cost was measured. Nobody calls these any
    /// more, so that they cost nothing where they are. The kernel makes one change at a time,
    /// and taking them away takes a third of a second: whoever waits for a probe comes first.
    measuring: Vec<u8>,
    leaving: Leaving,
    uprobes: Uprobes,
    maps: CallMaps,
}

impl Calls {
    /// No probes yet. An error where the kernel has no such breakpoints.
    pub fn new(maps: CallMaps) -> io::Result<Self> {
        Ok(Self {
            placed: BTreeMap::new(),
            measuring: Vec::new(),
            leaving: Leaving::default(),
            uprobes: Uprobes::of(&maps.programs)?,
            maps,
        })
    }

    /// Places a probe at all these copies of a function, and gives its number. It is at
    /// all of them, or at none.
    pub fn place(
        &mut self,
        functions: &[FunctionPlan],
        orders: &Orders,
        scope: &Scope,
    ) -> Result<u8, AttachError> {
        let number = self.number().ok_or(AttachError::TooMany)?;
        self.maps.begin(number, orders).map_err(AttachError::Maps)?;
        let mut placed = Placed::default();
        // The ends first: a call whose beginning is seen has its end seen.
        for function in functions {
            self.attach_ends(number, function, scope, &mut placed.links)?;
        }
        for function in functions {
            self.attach_entry(number, function, scope, &mut placed.links)?;
        }
        self.placed.insert(number, placed);
        Ok(number)
    }

    /// Places a probe at a tracepoint of the kernel, and gives its number and what a hit of it
    /// costs, in nanoseconds.
    pub fn place_point(
        &mut self,
        tracepoint: &str,
        orders: &Orders,
    ) -> Result<(u8, u64), AttachError> {
        let is_free = |number: &u8| !self.placed.contains_key(number) && !self.leaving.has(*number);
        let number = point::numbers()
            .find(is_free)
            .ok_or(AttachError::TooManyPoints)?;
        let loaded = self.maps.points.load(number);
        loaded.map_err(|error| AttachError::Program(error.to_string()))?;
        // Nothing of the measurement is told: neither stacks, nor what was counted.
        let measured = Orders {
            flags: orders.flags & !(order::STACKS | order::FEW) | order::EVERYBODY,
            ..*orders
        };
        self.maps
            .begin(number, &measured)
            .map_err(AttachError::Maps)?;
        let cost_ns = self
            .maps
            .points
            .cost_ns(number)
            .map_err(AttachError::Cost)?;
        self.maps.begin(number, orders).map_err(AttachError::Maps)?;
        let mut placed = Placed::default();
        placed.missed_before = self.maps.points.missed(number);
        placed.point = Some(self.maps.points.attach(number, tracepoint)?);
        self.placed.insert(number, placed);
        Ok((number, cost_ns))
    }

    /// Instructions of the program of a tracepoint that the verifier looked at, by the number
    /// of its probe.
    pub fn verified_instructions(&self, number: u8) -> u32 {
        self.maps.points.verified(number)
    }

    /// One that no probe has. If there is none, those of the measurement make room.
    fn number(&mut self) -> Option<u8> {
        if let Some(number) = self.free_number() {
            return Some(number);
        }
        if self.measuring.is_empty() {
            return None;
        }
        self.end_measuring();
        let end = Instant::now() + MEASURING_LEAVES;
        while Instant::now() < end {
            if let Some(number) = self.free_number() {
                return Some(number);
            }
            thread::sleep(Duration::from_millis(1));
        }
        None
    }

    /// One that no probe has. Those that are leaving still count.
    fn free_number(&self) -> Option<u8> {
        let mut numbers = (0..PROBES_MAX as u8).filter(|n| !self.placed.contains_key(n));
        numbers.find(|number| !self.leaving.has(*number))
    }

    fn attach_ends(
        &self,
        number: u8,
        function: &FunctionPlan,
        scope: &Scope,
        links: &mut Vec<Link>,
    ) -> Result<(), AttachError> {
        let go = go_flag(function);
        let place = |at: &SitePlan, flags, pushed| ProbedInstruction {
            offset: at.offset,
            semaphore: None,
            cookie: Cookie::new(number, go | flags, pushed),
        };
        let (when, places) = match &function.ends {
            EndPlan::Unseen => return Ok(()),
            EndPlan::Replaced => (When::Returned, vec![place(&function.entry, 0, 0)]),
            EndPlan::At(sites) => {
                let sites = sites.iter();
                let places = sites.map(|at| place(at, site::AT_RETURN, at.pushed));
                (When::AtReturn, places.collect())
            }
        };
        let programs = &self.maps.programs;
        self.uprobes
            .attach(programs, when, &function.file, &places, scope, links)
    }

    fn attach_entry(
        &self,
        number: u8,
        function: &FunctionPlan,
        scope: &Scope,
        links: &mut Vec<Link>,
    ) -> Result<(), AttachError> {
        let go = go_flag(function);
        let at = &function.entry;
        let branch = if at.unless_taken {
            site::UNLESS_TAKEN
        } else {
            0
        };
        let replaced = match function.ends {
            EndPlan::Replaced => site::REPLACED,
            EndPlan::Unseen | EndPlan::At(_) => 0,
        };
        let place = ProbedInstruction {
            offset: at.offset,
            semaphore: at.semaphore,
            cookie: Cookie::new(number, go | branch | replaced, at.pushed),
        };
        let (programs, file) = (&self.maps.programs, &function.file);
        self.uprobes
            .attach(programs, When::Begins, file, &[place], scope, links)
    }

    /// Takes a probe away, which goes on counting for a moment. What it counted can be
    /// read until its number is used again.
    pub fn remove(&mut self, number: u8) {
        if let Some(placed) = self.placed.remove(&number) {
            self.leaving.take_away(number, placed);
        }
    }

    /// The numbers of the probes that are in place.
    pub fn placed(&self) -> impl Iterator<Item = u8> + '_ {
        self.placed.keys().copied()
    }

    /// Does other things for a probe from now on.
    pub fn set_orders(&mut self, number: u8, orders: &Orders) -> io::Result<()> {
        self.maps.set_orders(number, orders)
    }

    /// What was counted of a probe so far.
    pub fn read(&self, number: u8) -> io::Result<Reading> {
        let mut reading = self.maps.read(number)?;
        if let Some(placed) = self.placed.get(&number).filter(|it| it.point.is_some()) {
            let missed = self.maps.points.missed(number);
            reading.missed = missed.saturating_sub(placed.missed_before);
        }
        Ok(reading)
    }

    /// What was read of the values of a probe, and what was counted of it. Values come first, and
    /// each belongs to a call that is counted by then: of no value there are more than calls.
    pub fn read_with_values(&mut self, number: u8) -> io::Result<(Reading, Texts)> {
        let texts = self.maps.texts(number);
        Ok((self.read(number)?, texts))
    }

    /// As [`Calls::read_with_values`], and both of one moment if the probe is hit so seldom that
    /// there is one: it is read again while calls come in between, but not for ever.
    pub fn read_at_one_moment(&mut self, number: u8) -> io::Result<(Reading, Texts)> {
        let mut before = self.read(number)?;
        for _ in 1..READ_AGAIN_MAX {
            let (reading, texts) = self.read_with_values(number)?;
            if (before.calls, before.returns) == (reading.calls, reading.returns) {
                return Ok((reading, texts));
            }
            before = reading;
        }
        self.read_with_values(number)
    }

    /// What a hit costs here: measured on a function of our own, for some milliseconds. The
    /// probes of the measurement stay until [`Calls::end_measuring`].
    pub fn measure_cost(&mut self) -> Result<Cost, AttachError> {
        let measured = cost::measure(self);
        if measured.is_err() {
            self.end_measuring();
        }
        measured
    }

    /// Takes the probes of the measurement away, if they are still there: to be called when
    /// nobody waits for a probe.
    pub fn end_measuring(&mut self) {
        for number in std::mem::take(&mut self.measuring) {
            self.remove(number);
        }
    }
}

/// Tells the BPF programs that a site is of Go, whose goroutines move from thread to thread.
fn go_flag(function: &FunctionPlan) -> u64 {
    if function.is_go { site::GO } else { 0 }
}
