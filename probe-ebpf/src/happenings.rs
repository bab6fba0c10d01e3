//! Sampling at a tracepoint that is counted besides time: which passes record their stack.
//!
//! One of *period* passes records its stack, chosen at random, and stands for all of them. Each CPU
//! has a period of its own: it doubles as soon as a *slice* of time had too many stacks,
//! and is halved after a slice with few. So the first passes of a burst all record their stacks,
//! and a million more record a few hundred.

/// What user space asks the program of a counted tracepoint to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct PointOrders {
    /// Stacks that one CPU takes in a slice before its period doubles; 0 as long as nothing is
    /// counted.
    pub stacks: u64,
}

/// Length of a slice, as a shift of a time in nanoseconds: 134 ms.
const WHILE_SHIFT: u32 = 27;

/// The longest period: no CPU passes a tracepoint so often in a slice.
const PERIOD_MAX: u64 = 1 << 24;

/// What one CPU keeps about the passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct PointPace {
    /// The number of the slice that `taken` counts in.
    pub at: u64,
    /// Stacks taken in that slice; half of the limit when the period has doubled.
    pub taken: u64,
    /// The period, which is a power of two, less 1.
    pub mask: u64,
}

impl PointPace {
    /// Returns whether a pass records its stack. `luck` is a uniformly distributed random number.
    #[inline(always)]
    pub fn is_drawn(&self, luck: u32) -> bool {
        luck as u64 & self.mask == 0
    }

    /// Notes that a pass records its stack, and returns for how many passes. Adapts the period.
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

    /// Makes `passes` passes in each of 20 slices. Returns how many passes all stacks stand for,
    /// the number of stacks, and their number in the last slice.
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
