//! Determines how long a wait must be to give its stack with certainty. The kernel side takes
//! stacks of shorter waits at random. What they stand for is correct for any such length, so it can
//! be adjusted to the load.

use super::record::WaitCounters;
use probe_ebpf::waits::Orders;

/// Maximum CPU time in nanoseconds per second for taking stacks, over all CPUs: a quarter of a
/// percent of one CPU.
const COST_NS: u64 = 2_500_000;

/// Minimum number of stacks per second over all CPUs, whatever a stack costs: with fewer, ten
/// seconds would show little; more would add nothing.
const STACKS_MIN: u64 = 200;
const STACKS_MAX: u64 = 1000;

/// Maximum number of stacks per second on one CPU, as a multiple of the target: waits come in
/// bursts, and the period is adjusted five times a second.
const BURST: u64 = 4;

/// Assumed cost of a stack until one was taken.
const STACK_NS: u64 = 10_000;

/// Initial period.
const PERIOD_NS: u64 = 10_000_000;
const PERIOD_NS_MIN: u64 = 1_000_000;
const PERIOD_NS_MAX: u64 = 1_280_000_000;

/// Time between two adjustments.
const LOOK_NS: u64 = 200_000_000;

/// The last orders to the kernel side, and their effect.
#[derive(Debug)]
pub struct Pace {
    period_ns: u64,
    /// Target number of stacks per second.
    aim: u64,
    looked_ns: u64,
    /// The counters at the last adjustment.
    counters: WaitCounters,
}

impl Pace {
    /// Starts with the usual period. What `counters` have already counted is not considered later.
    pub fn new(counters: WaitCounters, now_ns: u64) -> Self {
        Self {
            period_ns: PERIOD_NS,
            aim: aim(STACK_NS),
            looked_ns: now_ns,
            counters,
        }
    }

    /// Returns the orders for the kernel side.
    pub fn orders(&self) -> Orders {
        Orders {
            period_ns: self.period_ns,
            stacks_per_second: BURST * self.aim,
            ..Orders::default()
        }
    }

    /// Adjusts the period; `counters` are those of the run so far. Returns the orders for the
    /// kernel side if they have changed.
    pub fn follow(&mut self, counters: WaitCounters, now_ns: u64) -> Option<Orders> {
        let passed_ns = now_ns.saturating_sub(self.looked_ns);
        if passed_ns < LOOK_NS {
            return None;
        }
        let before = (self.period_ns, self.aim);
        let taken = counters.taken.saturating_sub(self.counters.taken);
        let spent_ns = counters.stacks_ns.saturating_sub(self.counters.stacks_ns);
        if let Some(each_ns) = spent_ns.checked_div(taken) {
            self.aim = aim(each_ns);
        }
        let stacks = counters.wanted().saturating_sub(self.counters.wanted());
        (self.looked_ns, self.counters) = (now_ns, counters);
        let per_second = u128::from(stacks) * 1_000_000_000 / u128::from(passed_ns);
        if per_second > u128::from(self.aim) {
            self.period_ns = (self.period_ns * 2).min(PERIOD_NS_MAX);
        } else if per_second < u128::from(self.aim) / 4 {
            self.period_ns = (self.period_ns / 2).max(PERIOD_NS_MIN);
        }
        (before != (self.period_ns, self.aim)).then(|| self.orders())
    }
}

/// Returns the target number of stacks per second if each costs `each_ns` nanoseconds.
fn aim(each_ns: u64) -> u64 {
    (COST_NS / each_ns.max(1)).clamp(STACKS_MIN, STACKS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counters after `wanted` waits that were to give their stack, which took `each_ns`
    /// nanoseconds each.
    fn counted(wanted: u64, each_ns: u64) -> WaitCounters {
        WaitCounters {
            taken: wanted,
            stacks_ns: wanted * each_ns,
            ..WaitCounters::default()
        }
    }

    #[test]
    fn it_follows_what_comes_within_its_bounds() {
        let mut now_ns = 0;
        let mut pace = Pace::new(WaitCounters::default(), now_ns);
        let mut wanted = 0;
        let mut look = |pace: &mut Pace, more: u64| {
            now_ns += LOOK_NS;
            wanted += more;
            let orders = pace.follow(counted(wanted, STACK_NS), now_ns);
            orders.map(|orders| orders.period_ns)
        };
        // 10,000 in a second, then 250, then none.
        assert_eq!(look(&mut pace, 2000), Some(2 * PERIOD_NS));
        assert_eq!(look(&mut pace, 50), None);
        assert_eq!(look(&mut pace, 0), Some(PERIOD_NS));
        for _ in 0..100 {
            look(&mut pace, 1_000_000);
        }
        assert_eq!(pace.orders().period_ns, PERIOD_NS_MAX);
        for _ in 0..100 {
            look(&mut pace, 0);
        }
        assert_eq!(pace.orders().period_ns, PERIOD_NS_MIN);
        // Too early for an adjustment.
        assert_eq!(pace.follow(counted(wanted * 2, STACK_NS), now_ns), None);
        // The kernel side multiplies it with 32 bits.
        const { assert!(PERIOD_NS_MAX < 1 << 32) };
    }

    #[test]
    fn it_takes_fewer_where_each_costs_more() {
        let aim_after = |each_ns| {
            let mut pace = Pace::new(WaitCounters::default(), 0);
            pace.follow(counted(100, each_ns), LOOK_NS);
            pace.orders().stacks_per_second / BURST
        };
        assert_eq!(aim_after(1_000), STACKS_MAX);
        assert_eq!(aim_after(5_000), 500);
        assert_eq!(aim_after(1_000_000), STACKS_MIN);
        // Time spent before does not count.
        let mut pace = Pace::new(counted(1, 1_000_000_000), 0);
        pace.follow(counted(1, 1_000_000_000), LOOK_NS);
        assert_eq!(pace.orders().stacks_per_second / BURST, aim(STACK_NS));
    }
}
