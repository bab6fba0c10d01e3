//! The states of a thread.

use probe_ebpf::waits::state;

/// The state of a thread. The kernel side decides it by the rules in `probe-ebpf/src/waits.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitState {
    /// It is on a CPU.
    Run,
    /// It could run, but no CPU is free for it.
    Queue,
    /// It waits for a lock.
    Lock,
    /// It waits for a disk.
    Disk,
    /// It waits for a socket, a pipe, or one of several of them.
    Net,
    /// It waits until some time.
    Sleep,
    /// It waits for a page of memory.
    Fault,
    /// It was stopped, by a signal or a debugger.
    Stopped,
    /// It waits for something else: a child, a signal.
    Other,
    /// It waits for the global lock of Python.
    Gil,
    /// It waits for CPU time: its control group has used up its quota.
    Quota,
}

impl WaitState {
    /// All states, in the order of their numbers.
    pub const ALL: [WaitState; state::COUNT] = [
        WaitState::Run,
        WaitState::Queue,
        WaitState::Lock,
        WaitState::Disk,
        WaitState::Net,
        WaitState::Sleep,
        WaitState::Fault,
        WaitState::Stopped,
        WaitState::Other,
        WaitState::Gil,
        WaitState::Quota,
    ];

    /// The state of this number; `None` for one that this build does not know.
    pub fn of_number(number: u64) -> Option<WaitState> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Its index in [`WaitState::ALL`].
    pub fn number(self) -> usize {
        self as usize
    }

    /// The identifier used in filters and files.
    pub fn word(self) -> &'static str {
        match self {
            WaitState::Run => "run",
            WaitState::Queue => "queue",
            WaitState::Lock => "lock",
            WaitState::Disk => "disk",
            WaitState::Net => "net",
            WaitState::Sleep => "sleep",
            WaitState::Fault => "fault",
            WaitState::Stopped => "stopped",
            WaitState::Other => "other",
            WaitState::Gil => "gil",
            WaitState::Quota => "quota",
        }
    }

    /// Whether it is a wait for a lock that may contain its owner.
    pub fn has_owner(self) -> bool {
        matches!(self, WaitState::Lock | WaitState::Gil)
    }

    /// Describes what a thread in this state waits for, as a part of a sentence.
    pub fn waits_for(self) -> &'static str {
        match self {
            WaitState::Run => "nothing: it runs",
            WaitState::Queue => "a free CPU",
            WaitState::Lock => "a lock",
            WaitState::Disk => "a disk",
            WaitState::Net => "a socket or pipe",
            WaitState::Sleep => "a timer",
            WaitState::Fault => "a page of memory",
            WaitState::Stopped => "the end of a stop",
            WaitState::Other => "something else",
            WaitState::Gil => "Python's global lock",
            WaitState::Quota => "CPU time that its control group may use",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_its_number() {
        for (number, state) in WaitState::ALL.into_iter().enumerate() {
            assert_eq!(state.number(), number);
            assert_eq!(WaitState::of_number(number as u64), Some(state));
        }
        assert_eq!(WaitState::of_number(11), None);
        assert_eq!(WaitState::Queue.number(), state::QUEUE as usize);
        assert_eq!(WaitState::Stopped.number(), state::STOPPED as usize);
    }
}
