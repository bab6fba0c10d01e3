//! The event *happening*: something that is counted besides time, such as page faults, switches or
//! passes of a tracepoint, has occurred often enough to give a sample.
//!
//! | module | holds |
//! |---|---|
//! | `counters` | counters of the kernel and the CPU, on each CPU |
//! | `period` | how many events of a counter give one sample |
//! | `point` | a tracepoint that is counted |

mod counters;
mod period;
mod point;

use crate::cpus::presence::Present;
use crate::error::Error;
use crate::perf_event::kind;
use crate::plain::Plain;
use aya::maps::{Array, MapData};
use aya::programs::ProgramFd;
use counters::Counters;
use point::Point;
use probe_ebpf::happenings::HappeningOrders;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::Arc;

// SAFETY: a structure of numbers without padding, for which any bytes are a value.
unsafe impl aya::Pod for Plain<HappeningOrders> {}

/// The program in `probe-ebpf/src/bpf/happening.rs` for counters of the kernel or the CPU.
pub const COUNTER: &str = "happening";

/// The program in the same file for a tracepoint.
pub const POINT: &str = "happening_point";

/// An event that can be counted besides time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// A counter of the kernel or the CPU.
    Counter(Counter),
    /// Passes of a tracepoint of the kernel.
    Point {
        /// Subsystem, such as `sched`; `None` if it was not specified.
        subsystem: Option<Arc<str>>,
        /// Name, such as `sched_switch`.
        name: Arc<str>,
    },
}

/// A counter of the kernel or the CPU, one of [`COUNTERS`].
#[derive(Clone, Copy)]
pub struct Counter(&'static Known);

struct Known {
    name: &'static str,
    /// An alternative name; empty if there is none.
    other_name: &'static str,
    kind: u32,
    config: u64,
}

const fn software(name: &'static str, other_name: &'static str, config: u64) -> Known {
    Known {
        name,
        other_name,
        kind: kind::SOFTWARE,
        config,
    }
}

const fn hardware(name: &'static str, other_name: &'static str, config: u64) -> Known {
    Known {
        name,
        other_name,
        kind: kind::HARDWARE,
        config,
    }
}

/// Numbers and, except for dashes, names are those of include/uapi/linux/perf_event.h.
static COUNTERS: [Known; 17] = [
    software("page-faults", "faults", 2),
    software("minor-faults", "", 5),
    software("major-faults", "", 6),
    software("context-switches", "cs", 3),
    software("cpu-migrations", "migrations", 4),
    software("alignment-faults", "", 7),
    software("emulation-faults", "", 8),
    hardware("cycles", "cpu-cycles", 0),
    hardware("instructions", "", 1),
    hardware("cache-references", "", 2),
    hardware("cache-misses", "", 3),
    hardware("branches", "branch-instructions", 4),
    hardware("branch-misses", "", 5),
    hardware("bus-cycles", "", 6),
    hardware("stalled-cycles-frontend", "", 7),
    hardware("stalled-cycles-backend", "", 8),
    hardware("ref-cycles", "", 9),
];

impl Counter {
    /// The name by which users request it, such as `page-faults`.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Whether it is a counter of the CPU, and not of the kernel.
    pub fn is_hardware(self) -> bool {
        self.0.kind == kind::HARDWARE
    }
}

impl PartialEq for Counter {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Counter {}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Counter").field(&self.0.name).finish()
    }
}

/// Prefix of tracepoints.
const TRACEPOINT: &str = "tracepoint:";

impl Happening {
    /// The names of all counters.
    pub fn names() -> impl Iterator<Item = &'static str> {
        COUNTERS.iter().map(|known| known.name)
    }

    /// Parses a word: `page-faults`, `tracepoint:sched:sched_switch`. `None` for an unknown word.
    pub fn parse(word: &str) -> Option<Self> {
        let Some(place) = word.strip_prefix(TRACEPOINT) else {
            let is_it = |known: &&Known| known.name == word || known.other_name == word;
            let known = COUNTERS.iter().find(is_it).filter(|_| !word.is_empty());
            return known.map(|known| Self::Counter(Counter(known)));
        };
        let (subsystem, name) = match place.split_once(':') {
            Some((subsystem, name)) => (Some(subsystem), name),
            None => (None, place),
        };
        let is_name = |name: &str| {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            !name.is_empty() && name.len() <= NAME_MAX && name.bytes().all(is_part)
        };
        let is_fit = is_name(name) && subsystem.is_none_or(is_name);
        is_fit.then(|| Self::Point {
            subsystem: subsystem.map(Arc::from),
            name: name.into(),
        })
    }

    /// Its name: a word that [`parse`](Self::parse) accepts.
    pub fn name(&self) -> String {
        match self {
            Self::Counter(counter) => counter.name().into(),
            Self::Point {
                subsystem: Some(subsystem),
                name,
            } => format!("{TRACEPOINT}{subsystem}:{name}"),
            Self::Point { name, .. } => format!("{TRACEPOINT}{name}"),
        }
    }

    /// Checks whether this machine counts it for all processes, by opening and closing one counter.
    /// Not checked for a tracepoint.
    pub fn try_open(&self) -> io::Result<()> {
        match self {
            Self::Counter(counter) => counters::try_open(*counter),
            Self::Point { .. } => Ok(()),
        }
    }
}

/// Maximum length of the name of a tracepoint.
const NAME_MAX: usize = 127;

/// The counts of this run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Happened {
    /// Number of occurrences in all processes, on the sampled CPUs.
    pub times: u64,
    /// Number of occurrences that gave no sample although they should have: the kernel did not run
    /// the program, or there was no room for the sample.
    pub unseen: u64,
    /// Number of written samples.
    pub samples: u64,
}

/// The counts of the program, summed over all CPUs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told {
    /// Number of occurrences that the program has seen.
    pub happened: u64,
    /// Number of written samples.
    pub samples: u64,
    /// Number of occurrences for which samples stand that were not written for lack of room.
    pub unseen: u64,
}

/// What is shared with the program.
pub struct HappeningMaps {
    /// The orders for it.
    pub orders: Array<MapData, Plain<HappeningOrders>>,
    /// The program itself.
    pub program: ProgramFd,
}

impl HappeningMaps {
    /// Orders that one CPU takes about this many stacks within 134 ms.
    fn order_stacks(&mut self, stacks: u64) -> Result<(), Error> {
        let set = self.orders.set(0, Plain(HappeningOrders { stacks }), 0);
        set.map_err(|source| Error::Map {
            name: "HAPPENING_ORDERS",
            source,
        })
    }
}

/// The source of the samples.
pub enum Happenings {
    /// Counters of the kernel or the CPU.
    Counters(Counters),
    /// A tracepoint.
    Point(Point),
}

impl Happenings {
    /// Counts an event of the kernel or the CPU from now on, on all CPUs or on those in `only`.
    pub fn of_counter(
        counter: Counter,
        maps: HappeningMaps,
        only: Option<BTreeSet<u32>>,
    ) -> Result<Self, Error> {
        Counters::start(counter, maps, only).map(Self::Counters)
    }

    /// Counts the passes of a tracepoint, whose program is already running.
    pub fn of_point(maps: HappeningMaps) -> Result<Self, Error> {
        Point::start(maps).map(Self::Point)
    }

    /// Returns the counts so far. `read` reads those of the program.
    ///
    /// The kernel's counters are read before them: what happens in between is then counted by the
    /// program already, and does not seem to be unseen.
    pub fn happened(&self, read: impl FnOnce() -> Told) -> Happened {
        let (times, told) = match self {
            Self::Counters(counters) => {
                let times = counters.times();
                let told = read();
                (times.max(told.happened), told)
            }
            Self::Point(point) => {
                let told = read();
                (point.times(told), told)
            }
        };
        Happened {
            times,
            unseen: told.unseen + times.saturating_sub(told.happened),
            samples: told.samples,
        }
    }

    /// Adapts how many events give one sample to how often they happen.
    pub fn follow_rates(&mut self, now_ns: u64) {
        if let Self::Counters(counters) = self {
            counters.follow_rates(now_ns);
        }
    }

    /// Adds and removes CPUs that came online or went offline, or both.
    pub fn follow_hotplug(&mut self, present: &Present) {
        if let Self::Counters(counters) = self {
            counters.follow_hotplug(present);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_means_what_it_is_called() {
        for name in Happening::names() {
            let meant = Happening::parse(name).unwrap();
            assert_eq!(meant.name(), name);
        }
        for word in ["tracepoint:sched:sched_switch", "tracepoint:sys_enter"] {
            assert_eq!(Happening::parse(word).unwrap().name(), word);
        }
        assert_eq!(Happening::parse("faults"), Happening::parse("page-faults"));
        assert_ne!(Happening::parse("cycles"), Happening::parse("page-faults"));
        for word in [
            "",
            "cpu",
            "page-fault",
            "tracepoint:",
            "tracepoint::x",
            "tracepoint:sched:",
            "tracepoint:../sched:x",
            "tracepoint:a:b:c",
            "tracepoint:a b",
        ] {
            assert_eq!(Happening::parse(word), None, "{word}");
        }
    }
}
