//! The *beat*: when the sampler reads its source although nothing has happened, so that each report
//! comes in time. Between beats it only looks whether anything is there.

use crate::clock::{EARLY, STEP_NS};
use crate::settings::Schedule;
use probe::{DRAIN, SETTLED_NS};
use std::time::Duration;

/// The longest time between two beats: the sampler does some of its work once a second.
const LONGEST_NS: u64 = 1_000_000_000;

/// How long after the end of a report's time its samples are read: by then all are complete, even if
/// the wait ends a moment early.
const LATE_NS: u64 = SETTLED_NS + 1_000_000;

/// The beats of a run.
#[derive(Debug, Clone, Copy)]
pub struct Beat {
    /// Where the first report begins, on the clock of the samples.
    begin_ns: u64,
    /// A part of the time of a report.
    every_ns: u64,
}

impl Beat {
    /// The beats of a run that began at this time, on the clock of the samples.
    pub fn new(schedule: &Schedule, begin_ns: u64) -> Self {
        let report = match schedule {
            Schedule::Live { refresh, .. } => refresh,
            Schedule::Reports { delay, .. } => delay,
        };
        let report_ns = u64::try_from(report.as_nanos()).unwrap_or(u64::MAX);
        let report_ns = (report_ns / STEP_NS * STEP_NS).max(STEP_NS);
        Self {
            begin_ns: begin_ns / STEP_NS * STEP_NS,
            every_ns: report_ns / report_ns.div_ceil(LONGEST_NS),
        }
    }

    /// Returns how long the sampler may wait from now on. In the first seconds much is seen for the
    /// first time, and a screen is refreshed more often.
    pub fn wait(&self, now_ns: u64) -> Duration {
        let passed_ns = now_ns.saturating_sub(self.begin_ns);
        if Duration::from_nanos(passed_ns) < EARLY {
            return DRAIN;
        }
        let since_ns = passed_ns.saturating_sub(LATE_NS) % self.every_ns;
        Duration::from_nanos(self.every_ns - since_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::AwaitNames;

    const BEGIN_NS: u64 = 70_003_000_000;

    fn waits(delay: Duration, after_ms: [u64; 3]) -> [u64; 3] {
        let schedule = Schedule::Reports {
            delay,
            count: None,
            names: AwaitNames::Each,
        };
        let beat = Beat::new(&schedule, BEGIN_NS);
        after_ms.map(|after| {
            let wait = beat.wait(70_000_000_000 + after * 1_000_000);
            wait.as_millis() as u64
        })
    }

    #[test]
    fn a_source_is_read_just_after_a_report_has_ended() {
        // Samples of the report until 5,000 are complete at 5,002.
        let second = Duration::from_secs(1);
        assert_eq!(waits(second, [4_500, 5_002, 5_003]), [503, 1, 1000]);
        // Ten reads for a report of ten seconds.
        assert_eq!(waits(10 * second, [4_500, 5_003, 9_999]), [503, 1000, 4]);
        // Two reads for one of 1.5 seconds, which ends at 4,500 and 6,000.
        assert_eq!(
            waits(second * 3 / 2, [4_503, 5_003, 5_303]),
            [750, 250, 700]
        );
        assert_eq!(waits(second / 5, [4_500, 4_603, 4_703]), [103, 200, 100]);
        assert_eq!(waits(Duration::ZERO, [4_500, 4_503, 4_503]), [3, 10, 10]);
    }

    #[test]
    fn it_is_read_often_in_the_first_seconds() {
        let drain = DRAIN.as_millis() as u64;
        let waits = waits(Duration::from_secs(1), [0, 2_999, 3_003]);
        assert_eq!(waits, [drain, drain, 1000]);
    }
}
