//! How much of processes' memory is read in one turn: whoever makes new code without end must
//! not keep the sampler from its rings.

/// Code objects that are read in one turn: at most a tenth of a second of work. A large
/// program has met its first thousand within seconds.
const CODES_MAX: u32 = 256;

/// Processes that are looked at in one turn.
const LOOKS_MAX: u32 = 16;

/// What is left of it in this turn.
#[derive(Debug, Default)]
pub struct Budget {
    codes: u32,
    looks: u32,
}

impl Budget {
    pub fn begin_turn(&mut self) {
        self.codes = CODES_MAX;
        self.looks = LOOKS_MAX;
    }

    /// Whether one more code object may be read.
    pub fn take_code(&mut self) -> bool {
        take(&mut self.codes)
    }

    /// Whether one more process may be looked at.
    pub fn take_look(&mut self) -> bool {
        take(&mut self.looks)
    }
}

fn take(left: &mut u32) -> bool {
    match left.checked_sub(1) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_has_an_end_and_the_next_one_begins_anew() {
        let mut budget = Budget::default();
        assert!(!budget.take_code() && !budget.take_look());
        for _ in 0..2 {
            budget.begin_turn();
            assert_eq!((0..1000).filter(|_| budget.take_code()).count(), 256);
            assert_eq!((0..1000).filter(|_| budget.take_look()).count(), 16);
        }
    }
}
