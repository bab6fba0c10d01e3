//! *Shares*: how the users of a machine divide what there is only so much of.
//!
//! Nobody is kept from having all of it while nobody else wants any. But an eighth stays
//! free for those who have less than an eighth, so that whoever comes next finds room:
//!
//! ```text
//!  ├──────────── anybody's ────────────┼─ those with less than an eighth ─┤
//!  0                                  7/8                                all
//! ```

mod queue;
mod turns;

pub use queue::FairQueue;
pub use turns::Turns;

/// No user, and no process, has more than one part of so many while others want room.
pub const SHARES: usize = 8;

/// Work and memory that no user can be told for is counted as this one's.
pub const NOBODY: u32 = u32::MAX;

/// What somebody has so much of that there is none left for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverShare {
    /// Who has it; [`NOBODY`] for those who are not known.
    pub user: u32,
    /// What there is too much of.
    pub what: Scarce,
    /// How many of those are left out.
    pub count: usize,
}

/// What users have shares of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scarce {
    /// Room for lists of mappings; processes are left out.
    Mappings,
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

/// Whether somebody who has `own` may have one more, of which there are `all` in use and
/// can be `max`.
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
