//! The processes that are not walked because the processes of their user have used up a share of
//! the room for mappings, and the rest is reserved for others.

use std::collections::HashMap;

/// Time until room is requested again: for a process with thousands of mappings that is work.
const PATIENCE_NS: u64 = 1_000_000_000;

/// A process that was not sampled for this long is no longer reported.
const TOLD_NS: u64 = 10_000_000_000;

/// The refused processes, by pid.
#[derive(Debug, Default)]
pub struct Shares {
    refused: HashMap<u32, Refused>,
}

#[derive(Debug, Clone, Copy)]
struct Refused {
    user: u32,
    since_ns: u64,
}

impl Shares {
    /// Stores the result of a request for room.
    pub fn note(&mut self, pid: u32, user: u32, is_there: bool, now_ns: u64) {
        if is_there {
            self.refused.remove(&pid);
        } else {
            let since_ns = now_ns;
            self.refused.insert(pid, Refused { user, since_ns });
        }
    }

    /// Whether it is too early to ask again.
    pub fn is_refused(&self, pid: u32, now_ns: u64) -> bool {
        let refused = self.refused.get(&pid);
        refused.is_some_and(|refused| now_ns.saturating_sub(refused.since_ns) < PATIENCE_NS)
    }

    /// Whether it got no room at the last request.
    pub fn contains(&self, pid: u32) -> bool {
        self.refused.contains_key(&pid)
    }

    /// Removes a process.
    pub fn forget(&mut self, pid: u32) {
        self.refused.remove(&pid);
    }

    /// Returns each user with the number of its processes, by user.
    pub fn by_user(&self) -> Vec<(u32, usize)> {
        let mut users: HashMap<u32, usize> = HashMap::new();
        for refused in self.refused.values() {
            *users.entry(refused.user).or_default() += 1;
        }
        let mut users: Vec<_> = users.into_iter().collect();
        users.sort_unstable();
        users
    }

    /// Removes processes that were not sampled for long.
    pub fn sweep(&mut self, now_ns: u64) {
        let is_told =
            |_: &u32, refused: &mut Refused| now_ns.saturating_sub(refused.since_ns) < TOLD_NS;
        self.refused.retain(is_told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_asked_again_after_a_while_and_told_until_there_is_room() {
        let mut shares = Shares::default();
        shares.note(1, 60_001, false, 0);
        shares.note(2, 60_001, false, 0);
        assert!(shares.is_refused(1, PATIENCE_NS - 1));
        assert!(!shares.is_refused(1, PATIENCE_NS) && shares.contains(1));
        assert_eq!(shares.by_user(), [(60_001, 2)]);
        shares.note(1, 60_001, true, PATIENCE_NS);
        assert_eq!(shares.by_user(), [(60_001, 1)]);
        shares.sweep(TOLD_NS);
        assert!(shares.by_user().is_empty());
    }
}
