//! Limits how much memory of processes is requested in one turn: reading takes CPU time, and a
//! process that makes new code without end must not use up all of that.

use crate::shares::may_have_more;
use std::collections::HashMap;

/// Maximum number of code objects that are requested in one turn: at most a tenth of a second of
/// work. A large program runs through its first thousand within seconds.
const CODES_MAX: usize = 256;

/// Maximum number of processes that are inspected in one turn.
const LOOKS_MAX: usize = 16;

/// The requests of this turn.
#[derive(Debug)]
pub struct Budget {
    codes: Kind,
    looks: Kind,
}

#[derive(Debug)]
struct Kind {
    max: usize,
    all: usize,
    by_user: HashMap<u32, usize>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            codes: Kind::new(CODES_MAX),
            looks: Kind::new(LOOKS_MAX),
        }
    }
}

impl Budget {
    /// Resets the counts for a new turn.
    pub fn begin_turn(&mut self) {
        *self = Self::default();
    }

    /// Whether one more code object may be read for a user.
    pub fn take_code(&mut self, user: u32) -> bool {
        self.codes.take(user)
    }

    /// Whether one more process of a user may be looked at.
    pub fn take_look(&mut self, user: u32) -> bool {
        self.looks.take(user)
    }
}

impl Kind {
    fn new(max: usize) -> Self {
        Self {
            max,
            all: 0,
            by_user: HashMap::new(),
        }
    }

    fn take(&mut self, user: u32) -> bool {
        let own = self.by_user.entry(user).or_default();
        let may = may_have_more(*own, self.all, self.max);
        *own += usize::from(may);
        self.all += usize::from(may);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_has_an_end_and_the_next_one_begins_anew() {
        let mut budget = Budget::default();
        for _ in 0..2 {
            budget.begin_turn();
            assert_eq!((0..1000).filter(|_| budget.take_code(1)).count(), 224);
            assert_eq!((0..1000).filter(|_| budget.take_code(2)).count(), 32);
            assert_eq!((0..1000).filter(|_| budget.take_look(1)).count(), 14);
            assert_eq!((0..1000).filter(|_| budget.take_look(2)).count(), 2);
        }
    }
}
