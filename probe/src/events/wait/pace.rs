//! How long a wait must be to give its stack for certain. The kernel side takes stacks of
//! shorter ones by chance; what they stand for stays right whatever the length is, so that
//! it may follow what the machine does.

use probe_ebpf::waits::Orders;

/// Stacks in a second that are wanted, from all CPUs together.
const STACKS_PER_SECOND: u64 = 1000;

/// What one CPU takes at most: a stack costs about 5 µs with interrupts off.
const STACKS_PER_SECOND_MAX: u64 = 4 * STACKS_PER_SECOND;

/// Where it begins.
const PERIOD_NS: u64 = 10_000_000;
const PERIOD_NS_MIN: u64 = 1_000_000;
const PERIOD_NS_MAX: u64 = 1_280_000_000;

/// How often it is looked at.
const LOOK_NS: u64 = 200_000_000;

/// What the kernel side was told last, and what came of it.
#[derive(Debug)]
pub struct Pace {
    period_ns: u64,
    looked_ns: u64,
    wanted: u64,
}

impl Pace {
    pub fn new(now_ns: u64) -> Self {
        Self {
            period_ns: PERIOD_NS,
            looked_ns: now_ns,
            wanted: 0,
        }
    }

    /// What to tell the kernel side.
    pub fn orders(&self) -> Orders {
        Orders {
            period_ns: self.period_ns,
            stacks_per_second: STACKS_PER_SECOND_MAX,
            ..Orders::default()
        }
    }

    /// `wanted` waits were to give their stack in this run. What to tell the kernel side,
    /// if that is something else now.
    pub fn follow(&mut self, wanted: u64, now_ns: u64) -> Option<Orders> {
        let passed_ns = now_ns.saturating_sub(self.looked_ns);
        if passed_ns < LOOK_NS {
            return None;
        }
        let stacks = wanted.saturating_sub(self.wanted);
        (self.looked_ns, self.wanted) = (now_ns, wanted);
        let per_second = u128::from(stacks) * 1_000_000_000 / u128::from(passed_ns);
        let aim = u128::from(STACKS_PER_SECOND);
        let before = self.period_ns;
        if per_second > aim {
            self.period_ns = (self.period_ns * 2).min(PERIOD_NS_MAX);
        } else if per_second < aim / 4 {
            self.period_ns = (self.period_ns / 2).max(PERIOD_NS_MIN);
        }
        (self.period_ns != before).then(|| self.orders())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_what_comes_within_its_bounds() {
        let mut now_ns = 0;
        let mut pace = Pace::new(now_ns);
        let mut wanted = 0;
        let mut look = |pace: &mut Pace, more: u64| {
            now_ns += LOOK_NS;
            wanted += more;
            pace.follow(wanted, now_ns).map(|orders| orders.period_ns)
        };
        // 10,000 in a second, then 500, then none.
        assert_eq!(look(&mut pace, 2000), Some(2 * PERIOD_NS));
        assert_eq!(look(&mut pace, 100), None);
        assert_eq!(look(&mut pace, 0), Some(PERIOD_NS));
        for _ in 0..100 {
            look(&mut pace, 1_000_000);
        }
        assert_eq!(pace.orders().period_ns, PERIOD_NS_MAX);
        for _ in 0..100 {
            look(&mut pace, 0);
        }
        assert_eq!(pace.orders().period_ns, PERIOD_NS_MIN);
        // Too early to tell.
        assert_eq!(pace.follow(u64::MAX, now_ns), None);
        // The kernel side multiplies it with 32 bits.
        const { assert!(PERIOD_NS_MAX < 1 << 32) };
    }
}
