//! What is counted besides time, where it is a tracepoint: which passes give their stack.
//!
//! Of *period* passes one gives its stack, drawn by chance, and stands for all of them. Each CPU has
//! a period of its own, which follows the number of passes: it doubles as soon as there were too many stacks in a while, and is
//! halved after one in which there were few. So the first passes of a burst give their stacks, and
//! a million more take a few hundred.

/// What user space asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct PointOrders {
    /// Stacks that one CPU takes in a while before its period doubles; 0 as long as nothing is
    /// counted.
    pub stacks: u64,
}

/// Of a clock in nanoseconds: how long a while is, 134 ms.
const WHILE_SHIFT: u32 = 27;

/// Longer periods there are not: a CPU passes no place so often in a while.
const PERIOD_MAX: u64 = 1 << 24;

/// What one CPU keeps of the passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct PointPace {
    /// Which while `taken` counts in.
    pub at: u64,
    /// Stacks in it, since the period was changed.
    pub taken: u64,
    /// One less than the period, which is a power of two.
    pub mask: u64,
}

impl PointPace {
    /// Whether a pass gives its stack. `luck` is any number, each as likely as the others.
    #[inline(always)]
    pub fn is_drawn(&self, luck: u32) -> bool {
        luck as u64 & self.mask == 0
    }

    /// A pass gives its stack: how many it stands for. The period may be another one behind it.
    #[inline(always)]
    pub fn take(&mut self, now_ns: u64, stacks: u64) -> u64 {
        let period = self.mask + 1;
        let at = now_ns >> WHILE_SHIFT;
        if self.at != at {
            if self.taken < stacks / 4 {
                self.mask >>= 1;
            }
            self.at = at;
            self.taken = 0;
        }
        self.taken += 1;
        if self.taken >= stacks && period < PERIOD_MAX {
            self.mask = self.mask << 1 | 1;
            self.taken = stacks / 2;
        }
        period
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What all stacks stand for, how many there are, and how many of them in the last while, of
    /// so many passes in each of 20.
    fn pass(passes: u64) -> (u64, u64, u64) {
        let mut pace = PointPace::default();
        let mut luck = 1u32;
        let (mut sum, mut stacks, mut last) = (0, 0, 0);
        for at in 0..20 {
            last = 0;
            for pass in 0..passes {
                luck ^= luck << 13;
                luck ^= luck >> 17;
                luck ^= luck << 5;
                if pace.is_drawn(luck) {
                    sum += pace.take((at << WHILE_SHIFT) + pass, 64);
                    last += 1;
                }
            }
            stacks += last;
        }
        (sum, stacks, last)
    }

    #[test]
    fn stacks_stand_for_all_passes_and_are_few() {
        assert_eq!(pass(40), (800, 800, 40));
        let (sum, stacks, last) = pass(200_000);
        assert!(sum.abs_diff(4_000_000) < 400_000, "{sum} by {stacks}");
        assert!(
            stacks < 2_000 && (16..=80).contains(&last),
            "{stacks} {last}"
        );
    }

    #[test]
    fn after_a_burst_every_pass_gives_its_stack_again() {
        let mut pace = PointPace::default();
        for _ in 0..10_000 {
            pace.take(0, 64);
        }
        assert!(pace.mask > 1_000);
        for at in 1..40 {
            pace.take(at << WHILE_SHIFT, 64);
        }
        assert_eq!(pace.mask, 0);
    }
}
