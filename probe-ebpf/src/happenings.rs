//! Sampling of what is counted besides time: which events record their stack, and how many a stack
//! stands for.
//!
//! One of *period* events records its stack, chosen at random, and stands for all of them. Each CPU
//! has a period of its own: it doubles as soon as a *slice* of time had too many stacks, and is
//! halved after a slice with few. So the first events of a burst all record their stacks, and a
//! million more record a few hundred. A run of the program is one event at a tracepoint, and several
//! where it ends a period of a counter of the kernel.

/// What user space asks the program to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct HappeningOrders {
    /// Stacks that one CPU takes in a slice before its period doubles; 0 as long as nothing is
    /// counted at a tracepoint.
    pub stacks: u64,
}

/// Length of a slice, as a shift of a time in nanoseconds: 134 ms.
const WHILE_SHIFT: u32 = 27;

/// The longest period: nothing happens so often on one CPU in a slice.
const PERIOD_MAX: u64 = 1 << 24;

/// What one CPU keeps about the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Pace {
    /// The number of the slice that `taken` counts in.
    pub at: u64,
    /// Stacks taken in that slice; half of the limit when the period has doubled.
    pub taken: u64,
    /// The period, which is a power of two, less 1.
    pub mask: u64,
}

impl Pace {
    /// Returns whether the program records the stack in a run that stands for this number of
    /// events. `luck` is a uniformly distributed random number.
    #[inline(always)]
    pub fn is_drawn(&self, luck: u32, events: u64) -> bool {
        (luck as u64 & self.mask) < events
    }

    /// Counts the stack of a run that stands for this number of events, and adapts the period.
    /// Returns the number of events that the stack stands for: a period, or the events of the run if
    /// they are more, since such a run always records its stack.
    #[inline(always)]
    pub fn take(&mut self, now_ns: u64, stacks: u64, events: u64) -> u64 {
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
        if events > period { events } else { period }
    }
}

/// What a sample of a counter stands for: what has happened since the sample before it.
///
/// That is the period that the kernel names, but for two cases. Where something has stopped
/// happening, the kernel cuts the long period that it had begun, and the next sample comes early: it
/// stands for less. And of some events the kernel gives no samples, as of switches of idle CPUs: the
/// next sample does not stand for those.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct CounterSeen {
    /// The counter at the sample before.
    pub count: u64,
}

impl CounterSeen {
    /// Returns what a sample stands for that ends a period when the counter is at `count`.
    #[inline(always)]
    pub fn stands_for(&mut self, count: u64, period: u64) -> u64 {
        // A counter that was opened anew, as of a CPU that came back, counts from 0.
        let since = if count >= self.count {
            count - self.count
        } else {
            count
        };
        self.count = count;
        if since < period { since } else { period }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates `runs` runs of the program in each of 20 slices, each run for this number of events.
    /// Returns the number of events that all stacks stand for, the number of stacks, and the number
    /// of stacks in the last slice.
    fn pass(runs: u64, events: u64) -> (u64, u64, u64) {
        let mut pace = Pace::default();
        let mut luck = 1u32;
        let (mut sum, mut stacks, mut last) = (0, 0, 0);
        for at in 0..20 {
            last = 0;
            for run in 0..runs {
                luck ^= luck << 13;
                luck ^= luck >> 17;
                luck ^= luck << 5;
                if pace.is_drawn(luck, events) {
                    sum += pace.take((at << WHILE_SHIFT) + run, 64, events);
                    last += 1;
                }
            }
            stacks += last;
        }
        (sum, stacks, last)
    }

    #[test]
    #[cfg_attr(miri, ignore = "a hundred thousand steps, each interpreted")]
    fn stacks_stand_for_all_passes_and_are_few() {
        assert_eq!(pass(40, 1), (800, 800, 40));
        assert_eq!(pass(40, 1000), (800_000, 800, 40));
        assert_stands_for_four_million(pass(200_000, 1));
    }

    /// Checks the result of [`pass`] for four million events.
    #[track_caller]
    fn assert_stands_for_four_million((sum, stacks, last): (u64, u64, u64)) {
        assert!(sum.abs_diff(4_000_000) < 400_000, "{sum} by {stacks}");
        assert!(
            stacks < 2_000 && (16..=80).contains(&last),
            "{stacks} {last}"
        );
    }

    #[test]
    fn a_run_for_several_events_is_drawn_as_often_as_so_many_runs() {
        assert_stands_for_four_million(pass(2_000, 100));
    }

    #[test]
    fn after_a_burst_every_pass_gives_its_stack_again() {
        let mut pace = Pace::default();
        for _ in 0..10_000 {
            pace.take(0, 64, 1);
        }
        assert!(pace.mask > 1_000);
        for at in 1..40 {
            pace.take(at << WHILE_SHIFT, 64, 1);
        }
        assert_eq!(pace.mask, 0);
    }

    #[test]
    fn a_sample_stands_for_no_more_than_has_happened() {
        let mut seen = CounterSeen::default();
        assert_eq!(seen.stands_for(1_000, 1_000), 1_000);
        // The kernel gave up a long period.
        assert_eq!(seen.stands_for(1_100, 200_000), 100);
        // In between were 5,000 events of which the kernel gives no sample.
        assert_eq!(seen.stands_for(6_200, 100), 100);
        // The CPU was offline.
        assert_eq!(seen.stands_for(3, 10), 3);
    }
}
