//! The event *happening*: something that is counted besides time, such as page faults, switches or
//! passes of a tracepoint, has happened so often that it gives a sample.
//!
//! | module | holds |
//! |---|---|
//! | `counters` | what the kernel and the CPU count, on each CPU |
//! | `point` | a tracepoint that is counted |

mod counters;
mod point;

pub use point::PointMaps;

use crate::perf_event::kind;
use counters::Counters;
use point::Point;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::Arc;

/// The program in `probe-ebpf/src/bpf/happening.rs` for what the kernel or the CPU counts.
pub const COUNTER: &str = "happening";

/// The program there for a tracepoint.
pub const POINT: &str = "happening_point";

/// Something that can be counted besides time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// What the kernel or the CPU counts.
    Counter(Counter),
    /// The kernel passes this tracepoint.
    Point {
        /// As in `sched`; `None` if it was not named.
        subsystem: Option<Arc<str>>,
        /// As in `sched_switch`.
        name: Arc<str>,
    },
}

/// A counter of the kernel or of the CPU, of those in [`COUNTERS`].
#[derive(Clone, Copy)]
pub struct Counter(&'static Known);

struct Known {
    name: &'static str,
    /// As it is called elsewhere; empty if it is not.
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

/// With the numbers and, but for dashes, the names of include/uapi/linux/perf_event.h.
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
    /// What it is called.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Whether the CPU counts it, and not the kernel.
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

/// A tracepoint begins with this word.
const TRACEPOINT: &str = "tracepoint:";

impl Happening {
    /// The names of all counters.
    pub fn names() -> impl Iterator<Item = &'static str> {
        COUNTERS.iter().map(|known| known.name)
    }

    /// What is meant by a word: `page-faults`, `tracepoint:sched:sched_switch`. `None` for a word
    /// that means nothing.
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

    /// What it is called: a word that [`parse`](Self::parse) understands.
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

    /// Whether this machine counts it for everybody: one counter is opened, and closed. Of a
    /// tracepoint nothing is asked.
    pub fn try_open(&self) -> io::Result<()> {
        match self {
            Self::Counter(counter) => counters::try_open(*counter),
            Self::Point { .. } => Ok(()),
        }
    }
}

/// Longer names the kernel's tracepoints do not have.
const NAME_MAX: usize = 127;

/// What was counted in this run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Happened {
    /// How often it happened, to everybody on the CPUs that are sampled.
    pub times: u64,
    /// How often of those it gave no sample and should have: the kernel did not run the program,
    /// or there was no room for the sample.
    pub unseen: u64,
    /// Samples that were written.
    pub samples: u64,
}

/// What the program counted, of all CPUs together.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told {
    pub happened: u64,
    pub samples: u64,
    pub unseen: u64,
}

/// What has the samples taken.
pub enum Happenings {
    Counters(Counters),
    Point(Point),
}

impl Happenings {
    /// Counts something of the kernel or of the CPU from now on, on all CPUs or on `only` these.
    pub fn of_counter(
        counter: Counter,
        program: aya::programs::ProgramFd,
        only: Option<BTreeSet<u32>>,
    ) -> Result<Self, crate::Error> {
        Counters::start(counter, program, only).map(Self::Counters)
    }

    /// Counts the passes of a tracepoint, whose program runs already.
    pub fn of_point(maps: PointMaps) -> Result<Self, crate::Error> {
        Point::start(maps).map(Self::Point)
    }

    /// What was counted up to now; `told` is what the program counted.
    pub fn happened(&self, told: Told) -> Happened {
        let times = match self {
            Self::Counters(counters) => counters.times(),
            Self::Point(point) => point.times(told),
        };
        Happened {
            times,
            unseen: told.unseen + times.saturating_sub(told.happened),
            samples: told.samples,
        }
    }

    /// Follows CPUs that came or went.
    pub fn follow_hotplug(&mut self) {
        if let Self::Counters(counters) = self {
            counters.follow_hotplug();
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
