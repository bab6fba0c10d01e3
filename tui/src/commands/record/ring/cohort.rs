//! The rate of a flight recorder whose host is in a *cohort* from time to time: then it samples more
//! often. Shippers decide by the same cohorts what they send (docs/fleet.md). A sample stands for the
//! time to the next tick whatever the rate is, so no weight has to be told to anybody.

use crate::cli::CohortConfig;

/// The present rate.
#[derive(Debug)]
pub struct CohortRate {
    config: CohortConfig,
    is_in: bool,
}

impl CohortRate {
    /// Begins with the usual rate, with which sampling begins.
    pub fn new(config: CohortConfig) -> Self {
        Self {
            config,
            is_in: false,
        }
    }

    /// Looks whether the host is in the cohort at this moment, in ms since 1970. Returns the rate
    /// from now on if that has changed.
    pub fn turn(&mut self, host: &str, unix_ms: i64) -> Option<u32> {
        let is_in = self.config.cohort.has(host, unix_ms);
        let was_in = std::mem::replace(&mut self.is_in, is_in);
        (is_in != was_in).then_some(if is_in {
            self.config.rate_hz
        } else {
            self.config.usual_hz
        })
    }

    /// Whether the host is in the cohort.
    pub fn is_in(&self) -> bool {
        self.is_in
    }

    /// Returns the rates, and whose they are.
    pub fn config(&self) -> &CohortConfig {
        &self.config
    }

    /// Returns a sentence on when the rate is another one.
    pub fn what(&self) -> String {
        let CohortConfig {
            cohort, rate_hz, ..
        } = self.config;
        let seconds = cohort.period_ms / 1000;
        format!(
            "samples at {rate_hz} Hz in {} % of the periods of {seconds}s, when this host is in the cohort",
            cohort.share * 100.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::Cohort;

    #[test]
    fn the_rate_changes_with_the_cohort_and_is_told_once() {
        let period_ms = 60_000;
        let config = CohortConfig {
            cohort: Cohort {
                share: 0.5,
                period_ms,
            },
            rate_hz: 99,
            usual_hz: 19,
        };
        let mut rate = CohortRate::new(config);
        let (mut hz, mut changes) = (19, 0);
        for second in 0..6000 {
            let unix_ms = 1_795_269_600_000 + second * 1000;
            if let Some(now_hz) = rate.turn("db-01", unix_ms) {
                assert_ne!(now_hz, hz);
                (hz, changes) = (now_hz, changes + 1);
            }
            let is_in = config.cohort.has("db-01", unix_ms);
            assert_eq!(hz, if is_in { 99 } else { 19 });
            assert_eq!(rate.is_in(), is_in);
        }
        // 50 of 100 periods in the mean; fewer than 20 have a probability of less than 1e-9.
        assert!(changes > 20, "{changes}");
    }
}
