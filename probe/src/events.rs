//! The *events* that a sample can be of. Each has a file here, which knows how it is
//! attached and what its record says, and a program in a file of the same name in
//! `probe-ebpf/src/bpf/`. Everything else (target filter, walk, ring, timeline,
//! mappings) is shared by all.

pub mod call;
pub mod happening;
pub mod tick;
pub mod wait;

use probe_ebpf::record::event;

/// What happened to a thread when a sample was taken of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Event {
    /// The sampling clock found it on a CPU.
    Tick,
    /// A function was called that has the probe of this number.
    Call(u8),
    /// A call of such a function ended, and had taken long.
    SlowCall(u8),
    /// A thread waited, and runs again.
    Wait,
    /// A thread ended a wait of another one.
    Wake,
    /// Something that is counted besides time happened.
    Happening,
}

impl Event {
    /// The events that a source samples from its start on. Probes of calls come and go, and
    /// the others are sampled if that is asked for.
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

    /// What is sampled, in words.
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

    /// The event of this number in the header of a record, of this probe; `None` for one
    /// that this build does not know.
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
