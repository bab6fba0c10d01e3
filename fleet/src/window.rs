//! A *window* as it is sent: what an agent has recorded on one host in a stretch of time, by service.
//! It is read from a .pft, and is the same for all sinks.

/// Numbers of frames and stacks that are the same on every host.
pub mod ids;
/// A .pft as a window.
mod read;
/// Which service a process belongs to.
mod service;

pub use read::{Unreadable, read};

/// What an agent has recorded in a stretch of time.
#[derive(Debug, Default)]
pub struct Window {
    /// The id of the spool and the number there: no other window has both.
    pub spool: String,
    pub number: u64,
    pub host: Host,
    /// When it begins, in ms since 1970, and how long it is.
    pub begin_ms: i64,
    pub duration_ms: u64,
    /// Samples that were lost in that time.
    pub lost_samples: u64,
    /// What values count: `cpu`, `off-cpu`, or an event.
    pub event: String,
    /// Of one unit of a value: `samples`, `nanoseconds`, `events`.
    pub unit: String,
    /// Nanoseconds that a value of 1 stands for; 0 if values are no times.
    pub period_ns: u64,
    /// Samples per second of a busy CPU; 0 if that is not known.
    pub rate_hz: u32,
    pub frames: Vec<Frame>,
    /// Each stack once, as places in `frames`, innermost first.
    pub stacks: Vec<Stack>,
    /// In the order of their names.
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

/// A place on a stack, with the number that it has on every host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub id: u64,
    pub kind: Kind,
    /// The name of the file with its code; of the kernel and of code made at run time a stand-in.
    pub module: String,
    pub path: String,
    /// Empty if it has none, or if that is not known.
    pub build_id: Vec<u8>,
    /// Where in the file.
    pub address: u64,
    /// The functions that it stands for, innermost first; empty if it has no name.
    pub functions: Vec<Function>,
}

/// A function, and where in source text a frame is in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Function {
    pub name: String,
    /// Empty if it is not known.
    pub file: String,
    /// 0 if it is not known.
    pub line: u32,
}

/// What a frame is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Native = 0,
    Kernel = 1,
    /// Code made at run time.
    Jit = 2,
    Python = 3,
    /// No place, but why a stack has no root.
    Note = 4,
}

/// The samples of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    pub name: String,
    /// Empty if it is not known.
    pub version: String,
    /// The first characters of the container's id; empty if it runs in none.
    pub container: String,
    /// Which stack, and how often, in the order of stacks.
    pub samples: Vec<(u32, u64)>,
}

impl Window {
    /// The sum of all values.
    pub fn total(&self) -> u64 {
        let values = self.services.iter().flat_map(|it| &it.samples);
        values.map(|(_, value)| value).sum()
    }
}
