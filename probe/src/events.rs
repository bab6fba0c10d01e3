//! The *events* that are sampled. Each has a file here, which knows how it is attached and what its
//! record contains, and a program in a file of the same name in `probe-ebpf/src/bpf/`. Everything
//! else (target filter, walk, ring, timeline, mappings) is shared by all.

pub mod call;
pub mod happening;
pub mod tick;
pub mod wait;

use probe_ebpf::record::event;

/// What happened to a thread when it was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Event {
    /// The sampling clock found it on a CPU.
    Tick,
    /// A function was called that has the probe with this number.
    Call(u8),
    /// A call of such a function ended, and had taken long.
    SlowCall(u8),
    /// A thread had waited, and runs again.
    Wait,
    /// A thread ended a wait of another thread.
    Wake,
    /// The event that is counted besides time happened.
    Happening,
}

impl Event {
    /// The events that a source samples from its start on. Probes of calls are added later, and the
    /// others are sampled only if requested.
    pub const ALL: [Event; 1] = [Event::Tick];

    /// The name of its program in the BPF object.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Event::Tick => tick::PROGRAM,
            Event::Call(_) => call::BEGINS,
            Event::SlowCall(_) => call::ENDS,
            Event::Wait => wait::STACK,
            Event::Wake => wait::ENDS,
            Event::Happening => happening::COUNTER,
        }
    }

    /// Describes what is sampled.
    pub fn what(self) -> &'static str {
        match self {
            Event::Tick => "time on a CPU",
            Event::Call(_) => "calls",
            Event::SlowCall(_) => "slow calls",
            Event::Wait => "time waited",
            Event::Wake => "who ends waits",
            Event::Happening => "other events",
        }
    }

    /// Returns the event with this number in the header of a record, for this probe; `None` if this
    /// build does not know it.
    pub fn of_record(number: u8, probe: u8) -> Option<Event> {
        match number {
            event::TICK => Some(Event::Tick),
            event::CALL => Some(Event::Call(probe)),
            event::SLOW_CALL => Some(Event::SlowCall(probe)),
            event::WAKE => Some(Event::Wake),
            event::HAPPENING => Some(Event::Happening),
            event::WAIT | event::THREAD_END => Some(Event::Wait),
            _ => None,
        }
    }
}
