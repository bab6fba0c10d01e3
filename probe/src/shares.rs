//! *Shares*: how limited resources are divided among the users of a machine.
//!
//! One user may use almost everything while no others need it. But an eighth stays reserved for
//! users who have less than an eighth, so that the next user finds room:
//!
//! ```text
//!  ├──────────── anybody's ────────────┼─ those with less than an eighth ─┤
//!  0                                  7/8                                all
//! ```

mod queue;
mod turns;

pub use queue::FairQueue;
pub use turns::Turns;

/// Number of shares: no user, and no process, has more than one of these parts while others want
/// room.
pub const SHARES: usize = 8;

/// The user to whom work and memory is charged if the user is unknown.
pub const NOBODY: u32 = u32::MAX;

/// The user who is not held to shares, or last: root could do worse anyway.
pub const ROOT: u32 = 0;

/// A user for whom something is left out: a share is used up, or a process has more than is kept of
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverShare {
    /// The user; [`NOBODY`] for those who are unknown.
    pub user: u32,
    /// The resource that is used up.
    pub what: Scarce,
    /// How many items are left out.
    pub count: usize,
}

/// The resources that are shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scarce {
    /// Room for lists of mappings; processes are left out.
    Mappings,
    /// Mappings, and files, that are kept of one process; the rest of some processes is left out.
    OfOneProcess,
    /// Time to read mappings; processes are left for later.
    Scans,
    /// Room for unwind tables; files are left out.
    Tables,
    /// Numbers for unwind rules; rules are left out, in the whole run.
    Rules,
    /// Room for copies of stacks; copies are walked before all tables are there, in the whole
    /// run.
    Stacks,
    /// Time to read structures of Python; readings are left out, in the whole run.
    Python,
}

/// Whether a user who has `own` units may have one more, while `all` are in use and `max` are
/// possible.
pub fn may_have_more(own: usize, all: usize, max: usize) -> bool {
    all < max && (own < max / SHARES || all < max - max / SHARES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_eighth_is_for_those_who_have_less_than_one() {
        assert!(may_have_more(0, 0, 80) && may_have_more(69, 69, 80));
        assert!(!may_have_more(70, 70, 80), "it has all but the last eighth");
        assert!(may_have_more(9, 79, 80) && !may_have_more(10, 70, 80));
        assert!(!may_have_more(0, 80, 80), "there is no more");
    }
}
