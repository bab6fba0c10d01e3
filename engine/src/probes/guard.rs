//! Decides when a probe costs too much.
//!
//! The cost of a breakpoint for the program that hits it depends on how it is executed:
//!
//! ```text
//! entry   emulated: the kernel does what the instruction does         cheapest
//!         stepped: the instruction is run in a copy, by single step   dearest
//! end     unseen │ return address replaced │ breakpoints at `ret`, each stepped
//! ```
//!
//! The cost of each kind is measured on this machine before the first probe is placed ([`Cost`]).
//! From the number of hits in a quarter of a second follows the share of a CPU.

use probe::call::Cost;
use std::time::Duration;
use symbolize::sites::{Class, Site};

/// Limits for the probes of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeLimits {
    /// Maximum cost of all probes together for the programs, in percent of one CPU.
    pub cost_percent: u32,
    /// Maximum number of hits of one probe per second.
    pub hits_per_second: u32,
}

impl Default for ProbeLimits {
    fn default() -> Self {
        Self {
            cost_percent: 5,
            hits_per_second: 200_000,
        }
    }
}

impl ProbeLimits {
    /// The cost limit as a share of one CPU.
    pub fn share(self) -> f64 {
        f64::from(self.cost_percent) / 100.0
    }
}

/// Why a probe was removed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TooMuch {
    /// Its hits cost this share of a CPU.
    Share(f64),
    /// It had this many hits per second.
    Hits(f64),
}

impl TooMuch {
    /// A clause for users: the cost, and what is allowed.
    pub fn explain(self, limits: ProbeLimits) -> String {
        match self {
            TooMuch::Share(share) => format!(
                "it cost {:.0}% of a CPU, and {}% are allowed",
                share * 100.0,
                limits.cost_percent
            ),
            TooMuch::Hits(hits) => format!(
                "it was hit {hits:.0} times a second, and {} are allowed",
                limits.hits_per_second
            ),
        }
    }
}

/// Cost of each hit of one probe, and the limits.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Cost of one call, with all its hits, in nanoseconds.
    pub cost_ns: u64,
    /// The time that is displayed for a call that does nothing, in nanoseconds.
    pub floor_ns: u64,
    limits: ProbeLimits,
    /// Number of all hits at the last check.
    last_hits: u64,
}

impl Guard {
    /// The guard of a probe at these sites. `return_sites` is the number of breakpoints at returns.
    pub fn new(
        sites: &[Site],
        return_sites: usize,
        timed: bool,
        cost: Cost,
        limits: ProbeLimits,
    ) -> Self {
        let is_stepped = sites.iter().any(|site| site.class == Class::Stepped);
        let entry_ns = if is_stepped {
            cost.stepped_ns
        } else {
            cost.emulated_ns
        };
        let end_ns = match return_sites {
            0 if timed => cost.timed_ns,
            0 => 0,
            // A `ret` is single-stepped.
            _ => cost.stepped_ns,
        };
        Self {
            cost_ns: entry_ns + end_ns,
            floor_ns: match (return_sites, is_stepped) {
                (0, false) => cost.floor_ns,
                (0, true) => cost.stepped_floor_ns,
                // The `ret` runs after its probe, and the entry's instruction before.
                (_, is_stepped) => {
                    let step_ns = if is_stepped { entry_ns } else { 0 };
                    cost.floor_ns + step_ns
                }
            },
            limits,
            last_hits: 0,
        }
    }

    /// The guard of a probe at a tracepoint whose hits have this cost.
    pub fn of_point(cost_ns: u64, limits: ProbeLimits) -> Self {
        Self {
            cost_ns,
            floor_ns: 0,
            limits,
            last_hits: 0,
        }
    }

    /// Number of hits per second since the last check.
    pub fn per_second(&self, hits: u64, since: Duration) -> f64 {
        hits.saturating_sub(self.last_hits) as f64 / since.as_secs_f64().max(1e-3)
    }

    /// Whether the probe cost too much since the last check, `since` ago. `hits` are all since it
    /// was placed.
    pub fn judge(&mut self, hits: u64, since: Duration) -> Option<TooMuch> {
        let per_second = self.per_second(hits, since);
        self.last_hits = hits;
        let share = per_second * self.cost_ns as f64 / 1e9;
        if per_second > f64::from(self.limits.hits_per_second) {
            Some(TooMuch::Hits(per_second))
        } else if share > self.limits.share() {
            Some(TooMuch::Share(share))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_too_much_is_told() {
        let cost = Cost {
            emulated_ns: 600,
            stepped_ns: 19_000,
            timed_ns: 400,
            floor_ns: 300,
            stepped_floor_ns: 18_000,
        };
        let mut guard = Guard::new(&[], 0, true, cost, ProbeLimits::default());
        assert_eq!(guard.cost_ns, 1000);
        let second = Duration::from_secs(1);
        assert_eq!(guard.judge(49_000, second), None);
        // The same number again.
        assert_eq!(guard.judge(98_000, second), None);
        assert!(matches!(
            guard.judge(149_000, second),
            Some(TooMuch::Share(_))
        ));
        assert!(matches!(
            guard.judge(400_000, second),
            Some(TooMuch::Hits(_))
        ));
        let limits = ProbeLimits::default();
        assert_eq!(
            TooMuch::Share(0.123).explain(limits),
            "it cost 12% of a CPU, and 5% are allowed"
        );
        assert_eq!(
            TooMuch::Hits(250_000.4).explain(limits),
            "it was hit 250000 times a second, and 200000 are allowed"
        );
        let cheap = Cost::default();
        let mut guard = Guard::new(&[], 0, false, cheap, ProbeLimits::default());
        assert_eq!(guard.judge(100_000, second), None);
    }
}
