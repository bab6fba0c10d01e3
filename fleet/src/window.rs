//! A *window*: what an agent has recorded on one host in a period of time, by service. It is read
//! from a .pft, and is the same for all sinks.

/// Computes numbers of frames and stacks that are the same on every host.
pub mod ids;
/// Converts a .pft to a window.
mod read;
/// Finds the service of a process.
mod service;

pub use read::{Unreadable, read};

use crate::schedule::Weight;
use std::sync::Arc;

/// What an agent has recorded in a period of time.
#[derive(Debug, Default)]
pub struct Window {
    /// The id of the spool, which together with the number is unique.
    pub spool: String,
    pub number: u64,
    pub host: Host,
    /// When it begins, in ms since 1970, and how long it is.
    pub begin_ms: i64,
    pub duration_ms: u64,
    /// Number of samples that were lost in that time.
    pub lost_samples: u64,
    /// The kind of values: `cpu`, `off-cpu`, or an event.
    pub event: String,
    /// The unit of values: `samples`, `nanoseconds`, `events`.
    pub unit: String,
    /// Nanoseconds that a value of 1 stands for; 0 if values are not times.
    pub period_ns: u64,
    /// Samples per second of a busy CPU; 0 if unknown.
    pub rate_hz: u32,
    /// How many samples each sample stands for, as a schedule has left out others.
    pub weight: Weight,
    pub frames: Vec<Frame>,
    /// The distinct stacks, as indices in `frames`, innermost first.
    pub stacks: Vec<Stack>,
    /// The services, sorted by name.
    pub services: Vec<Service>,
}

/// A machine.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Host {
    pub name: String,
    pub kernel: String,
    pub arch: String,
    pub cpus: u32,
}

/// A stack, with the number that it has on every host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    pub id: u64,
    pub frames: Vec<u32>,
}

/// A place on a stack, with the number that it has on every host. Frames share their texts, as a
/// window has thousands of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub id: u64,
    pub kind: Kind,
    /// The name of the file with its code; a substitute for the kernel and for code made at run
    /// time.
    pub module: Arc<str>,
    pub path: Arc<str>,
    /// Empty if it has none, or it is unknown.
    pub build_id: Arc<[u8]>,
    /// The position in the file.
    pub address: u64,
    /// The functions that it stands for, innermost first; empty if it has no name.
    pub functions: Arc<[Function]>,
}

/// A function of a frame, with a source location.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Function {
    pub name: Arc<str>,
    /// The source file; empty if unknown.
    pub file: Arc<str>,
    /// The source line; 0 if unknown.
    pub line: u32,
}

/// The kind of a frame's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Native = 0,
    Kernel = 1,
    /// Code made at run time.
    Jit = 2,
    Python = 3,
    /// Not a place, but the reason why a stack has no root.
    Note = 4,
}

/// The samples of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    pub name: String,
    /// Empty if unknown.
    pub version: String,
    /// The first characters of the container's id; empty if it runs in no container.
    pub container: String,
    /// Index of the stack and value, sorted by stack.
    pub samples: Vec<(u32, u64)>,
}

impl Window {
    /// Returns the sum of all values.
    pub fn total(&self) -> u64 {
        let values = self.services.iter().flat_map(|it| &it.samples);
        values.map(|(_, value)| value).sum()
    }
}
