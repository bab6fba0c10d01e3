//! What the loader tells the programs before they are loaded, and the counters
//! they keep: names and numbers that both sides must agree on.

/// Bits of the global `FILTER`: which conditions a task has to meet, all of
/// those that are set.
pub mod filter {
    /// Its process is in `TARGET_PIDS`.
    pub const PIDS: u32 = 1;
    /// It is in `TARGET_TIDS`.
    pub const TIDS: u32 = 2;
    /// Its own name, or its process's, fits: `COMM_VERDICTS`, `COMM_PIDS`.
    pub const COMM: u32 = 4;
    /// Its cgroup is `CGROUP_ID` or below it.
    pub const CGROUP: u32 = 8;
    /// Children of processes in `TARGET_PIDS` are targets, too.
    pub const CHILDREN: u32 = 16;
    /// Its real user id, as the first user namespace has it, is in `TARGET_UIDS`.
    pub const UIDS: u32 = 32;
}

/// Slots of the per-CPU array `COUNTERS`.
pub mod counter {
    /// Samples written to the ring buffer.
    pub const TAKEN: u32 = 0;
    /// Samples that found the ring buffer full.
    pub const LOST: u32 = 1;
    /// Ticks that hit a task which is no target.
    pub const FILTERED: u32 = 2;
    /// Ticks that hit an idle CPU.
    pub const IDLE: u32 = 3;
    /// Nanoseconds spent in the sampling program.
    pub const SPENT_NS: u32 = 4;
    /// Children that could not be made targets: the map is full.
    pub const TARGETS_FULL: u32 = 5;

    /// Whole stacks shipped, and not shipped because there were too many.
    pub const STACKS_SHIPPED: u32 = 6;
    /// Stacks that were not shipped: too many in this second, or no room in the ring.
    pub const STACKS_OVER_RATE: u32 = 7;

    /// How often that happened which is counted besides time, as far as the program was told.
    pub const HAPPENED: u32 = 8;
    /// Samples of it that were written.
    pub const HAPPENINGS_TAKEN: u32 = 9;
    /// Samples of it that found no room.
    pub const HAPPENINGS_LOST: u32 = 10;
    /// How often it happened that these stand for.
    pub const HAPPENED_UNSEEN: u32 = 11;
    /// Nanoseconds spent on these samples.
    pub const HAPPENINGS_SPENT_NS: u32 = 12;

    /// How many slots there are.
    pub const COUNT: u32 = 13;
}

/// Values of `COMM_VERDICTS`.
pub mod verdict {
    /// The name does not fit.
    pub const UNWANTED: u8 = 0;
    /// The name fits.
    pub const WANTED: u8 = 1;
}
