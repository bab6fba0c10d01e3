//! The settings that the loader gives to the programs before they are loaded, and the
//! counters that they keep: names and numbers that both sides must agree on.

/// Bits of the global `FILTER`: the conditions that a task has to meet to be a target.
/// If several are set, it has to meet all of them.
pub mod filter {
    /// The task's process is in `TARGET_PIDS`.
    pub const PIDS: u32 = 1;
    /// The task is in `TARGET_TIDS`.
    pub const TIDS: u32 = 2;
    /// The task's name fits (`COMM_VERDICTS`), or that of its process (`COMM_PIDS`).
    pub const COMM: u32 = 4;
    /// The task's cgroup is `CGROUP_ID` or below it.
    pub const CGROUP: u32 = 8;
    /// Children of processes in `TARGET_PIDS` are targets, too.
    pub const CHILDREN: u32 = 16;
    /// The task's real user id, in the first user namespace, is in `TARGET_UIDS`.
    pub const UIDS: u32 = 32;
}

/// Slots of the per-CPU array `COUNTERS`.
pub mod counter {
    /// Samples written to the ring buffer.
    pub const TAKEN: u32 = 0;
    /// Samples that found the ring buffer full.
    pub const LOST: u32 = 1;
    /// Ticks that hit a task which is not a target.
    pub const FILTERED: u32 = 2;
    /// Ticks that hit an idle CPU.
    pub const IDLE: u32 = 3;
    /// Nanoseconds spent in the sampling program.
    pub const SPENT_NS: u32 = 4;
    /// Children that could not be made targets, because the map was full.
    pub const TARGETS_FULL: u32 = 5;

    /// Stacks of which a copy was shipped.
    pub const STACKS_SHIPPED: u32 = 6;
    /// Stacks that were not shipped: too many bytes in this second, or no room in the ring.
    pub const STACKS_OVER_RATE: u32 = 7;

    /// How often what is counted besides time has happened, as far as the program has seen.
    pub const HAPPENED: u32 = 8;
    /// Samples of such a happening that were written.
    pub const HAPPENINGS_TAKEN: u32 = 9;
    /// Samples of such a happening that found no room.
    pub const HAPPENINGS_LOST: u32 = 10;
    /// How often it happened that the samples without room stood for.
    pub const HAPPENED_UNSEEN: u32 = 11;
    /// Nanoseconds spent on samples of such happenings.
    pub const HAPPENINGS_SPENT_NS: u32 = 12;

    /// Number of slots.
    pub const COUNT: u32 = 13;
}

/// Values of `COMM_VERDICTS`.
pub mod verdict {
    /// The name does not fit.
    pub const UNWANTED: u8 = 0;
    /// The name fits.
    pub const WANTED: u8 = 1;
}
