//! The event *call*: a function that has a probe is called, or returns. Most calls are only
//! counted; some give their stack, and are samples.
//!
//! | module | holds |
//! |---|---|
//! | `attach` | a breakpoint at an instruction of a file |
//! | `changing` | makes sure that breakpoints are changed one at a time and completely |
//! | `leaving` | probes that are in place, and those that are being taken away |
//! | `point` | probes at tracepoints of the kernel |
//! | `programs` | what runs at breakpoints |
//! | `maps` | maps that are shared with the programs |
//! | `reading` | the counts, summed over all CPUs |
//! | `caution` | what must be avoided, so that no process is killed by it |
//! | `cost` | measures what a hit costs on this machine |

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
    /// Offset in the file.
    pub offset: u64,
    /// Bytes between the stack pointer there and the return address.
    pub pushed: u32,
    /// Whether it is a branch, and the call counts only if it is not taken.
    pub unless_taken: bool,
    /// File offset of the counter by which the program recognizes the probe. The kernel increments
    /// it in each process, and decrements it at the end.
    pub semaphore: Option<u64>,
}

/// How the ends of calls are detected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndPlan {
    /// Not at all: calls are counted when they begin, and not timed.
    Unseen,
    /// By the kernel's return address, which replaces the caller's at the entry.
    Replaced,
    /// By a breakpoint at each `ret`; calls are matched by goroutine.
    At(Vec<SitePlan>),
}

/// One copy of a function, in one file.
#[derive(Debug, Clone)]
pub struct FunctionPlan {
    /// The open file, so that it cannot be replaced by another one.
    pub file: Arc<File>,
    /// Where the beginning of calls is detected.
    pub entry: SitePlan,
    /// How their end is detected.
    pub ends: EndPlan,
    /// Whether its calls are matched by goroutine, and not by thread.
    pub is_go: bool,
}

/// Maximum number of repeated readings of a probe that is hit in between.
const READ_AGAIN_MAX: u32 = 5;

/// How long a new probe waits until those of the measurement are gone, if all numbers are in use.
const MEASURING_LEAVES: Duration = Duration::from_secs(10);

/// All probes. They are removed when this is dropped, or when the process ends.
pub struct Calls {
    placed: BTreeMap<u8, Placed>,
    /// Probes on our own functions, by which the cost was measured. These functions are not called
    /// any more, so the probes cost nothing. The kernel makes one change at a time, and removing
    /// them takes a third of a second: so new probes are placed first.
    measuring: Vec<u8>,
    leaving: Leaving,
    uprobes: Uprobes,
    maps: CallMaps,
}

impl Calls {
    /// Starts without probes. Fails if the kernel does not support such breakpoints.
    pub fn new(maps: CallMaps) -> io::Result<Self> {
        Ok(Self {
            placed: BTreeMap::new(),
            measuring: Vec::new(),
            leaving: Leaving::default(),
            uprobes: Uprobes::of(&maps.programs)?,
            maps,
        })
    }

    /// Places a probe at all these copies of a function, and returns its number. It is placed at
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
        // The ends first: then the end of every counted call is detected.
        for function in functions {
            self.attach_ends(number, function, scope, &mut placed.links)?;
        }
        for function in functions {
            self.attach_entry(number, function, scope, &mut placed.links)?;
        }
        self.placed.insert(number, placed);
        Ok(number)
    }

    /// Places a probe at a tracepoint of the kernel, and returns its number and the cost of a hit,
    /// in nanoseconds.
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
        // Nothing of the measurement is reported: neither stacks, nor counts.
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

    /// Number of instructions that the verifier processed for the program of a tracepoint, by the
    /// number of its probe.
    pub fn verified_instructions(&self, number: u8) -> u32 {
        self.maps.points.verified(number)
    }

    /// Returns an unused number. If there is none, the probes of the measurement are removed.
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

    /// Returns an unused number. Numbers of probes that are being removed are still in use.
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

    /// Removes a probe, which continues to count for a moment. Its counts can be read until its
    /// number is reused.
    pub fn remove(&mut self, number: u8) {
        if let Some(placed) = self.placed.remove(&number) {
            self.leaving.take_away(number, placed);
        }
    }

    /// The numbers of the probes that are in place.
    pub fn placed(&self) -> impl Iterator<Item = u8> + '_ {
        self.placed.keys().copied()
    }

    /// Changes what the program does for a probe.
    pub fn set_orders(&mut self, number: u8, orders: &Orders) -> io::Result<()> {
        self.maps.set_orders(number, orders)
    }

    /// Reads the counts of a probe so far.
    pub fn read(&self, number: u8) -> io::Result<Reading> {
        let mut reading = self.maps.read(number)?;
        if let Some(placed) = self.placed.get(&number).filter(|it| it.point.is_some()) {
            let missed = self.maps.points.missed(number);
            reading.missed = missed.saturating_sub(placed.missed_before);
        }
        Ok(reading)
    }

    /// Reads the values and the counts of a probe. Values come first, and each belongs to a call
    /// that is already counted: so there are never more values than calls.
    pub fn read_with_values(&mut self, number: u8) -> io::Result<(Reading, Texts)> {
        let texts = self.maps.texts(number);
        Ok((self.read(number)?, texts))
    }

    /// Reads values and counts like [`Calls::read_with_values`], both of the same moment if the
    /// probe is hit seldom enough: reading is repeated while there are calls in between, but not
    /// for ever.
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

    /// Measures the cost of a hit on a function of our own, for some milliseconds. The probes of
    /// the measurement stay until [`Calls::end_measuring`].
    pub fn measure_cost(&mut self) -> Result<Cost, AttachError> {
        let measured = cost::measure(self);
        if measured.is_err() {
            self.end_measuring();
        }
        measured
    }

    /// Removes the probes of the measurement, if they are still there. To be called when no probe
    /// is waiting to be placed.
    pub fn end_measuring(&mut self) {
        for number in std::mem::take(&mut self.measuring) {
            self.remove(number);
        }
    }
}

/// Returns the flag that marks a site as Go's, whose goroutines move between threads.
fn go_flag(function: &FunctionPlan) -> u64 {
    if function.is_go { site::GO } else { 0 }
}
