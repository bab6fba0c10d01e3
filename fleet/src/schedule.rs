//! Which windows of a host are sent: all of them, those of a part of the time, or those of a part of
//! the hosts. Each host decides alone, by a hash of its name and the time, so that nothing has to
//! coordinate many hosts. A window that is sent stands for those that are not: its *weight* is one
//! divided by the probability of being sent, so that sums over time and hosts stay right.

use profile::Cohort;
use profile::cohort::draw;
use serde::Serialize;

/// Which windows are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub enum Schedule {
    /// All windows.
    #[default]
    Always,
    /// In each period the windows that begin within `on_ms`, at another place of each period.
    Duty { on_ms: i64, period_ms: i64 },
    /// In each period all windows of this share of the hosts, and none of the others.
    Cohort { share: f64, period_ms: i64 },
}

/// How many samples one sample stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weight(pub f32);

impl Default for Weight {
    fn default() -> Self {
        Self(1.0)
    }
}

impl Weight {
    /// Multiplies a value, rounded to the next whole number.
    pub fn times(self, value: u64) -> u64 {
        if self.0 == 1.0 {
            return value;
        }
        (value as f64 * f64::from(self.0)).round() as u64
    }
}

impl Schedule {
    /// The probability that a window is sent.
    pub fn probability(&self) -> f64 {
        match *self {
            Schedule::Always => 1.0,
            Schedule::Duty { on_ms, period_ms } => on_ms as f64 / period_ms as f64,
            Schedule::Cohort { share, .. } => share,
        }
    }

    /// How many windows there are for each one that a host sends, while it is one of those that
    /// send.
    pub fn windows_for_one(&self) -> f64 {
        match *self {
            Schedule::Duty { .. } => 1.0 / self.probability(),
            Schedule::Always | Schedule::Cohort { .. } => 1.0,
        }
    }

    /// The weight of the samples that are sent.
    pub fn weight(&self) -> Weight {
        Weight((1.0 / self.probability()) as f32)
    }

    /// Whether a window is sent. The answer is the same each time.
    pub fn takes(&self, host: &str, begin_ms: i64) -> bool {
        match *self {
            Schedule::Always => true,
            Schedule::Duty { on_ms, period_ms } => {
                // A place at the end of the period goes on at its beginning, so that each moment
                // has the same probability.
                let drawn = draw(host, begin_ms.div_euclid(period_ms));
                let from_ms = (drawn * period_ms as f64) as i64;
                (begin_ms - from_ms).rem_euclid(period_ms) < on_ms
            }
            Schedule::Cohort { share, period_ms } => {
                Cohort { share, period_ms }.has(host, begin_ms)
            }
        }
    }

    /// Describes the schedule in a sentence.
    pub fn sentence(&self) -> String {
        let part = match *self {
            Schedule::Always => return "all windows are sent".into(),
            Schedule::Duty { on_ms, period_ms } => format!(
                "windows of {} s in each {} s are sent",
                on_ms / 1000,
                period_ms / 1000
            ),
            Schedule::Cohort { share, period_ms } => format!(
                "a host sends its windows in {:.2} % of the periods of {} s",
                share * 100.0,
                period_ms / 1000
            ),
        };
        format!("{part}: each sample counts {:.2} times", self.weight().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;
    const HOUR: i64 = 60 * MINUTE;

    fn taken(schedule: Schedule, hosts: i64, minutes: i64) -> i64 {
        let mut taken = 0;
        for host in 0..hosts {
            let name = format!("host-{host}");
            let begin = |minute: i64| 1_795_269_600_123 + minute * MINUTE;
            let minutes = (0..minutes).filter(|it| schedule.takes(&name, begin(*it)));
            taken += minutes.count() as i64;
        }
        taken
    }

    #[test]
    fn the_part_that_is_sent_times_its_weight_is_everything() {
        let cohort = Schedule::Cohort {
            share: 0.05,
            period_ms: HOUR,
        };
        // Windows that are longer than the time that is sent, and as long as it.
        let duty = |on_ms| Schedule::Duty {
            on_ms,
            period_ms: 10 * MINUTE,
        };
        assert_eq!(taken(Schedule::Always, 3, 7), 21);
        for (schedule, hosts, minutes, draws) in [
            (cohort, 4000, 120, 8000.0),
            (duty(MINUTE), 200, 600, 12_000.0),
            (duty(MINUTE / 4), 200, 600, 12_000.0),
        ] {
            let all = (hosts * minutes) as f64;
            let estimate = taken(schedule, hosts, minutes) as f64 * f64::from(schedule.weight().0);
            // Four standard deviations of as many independent draws.
            let probability = schedule.probability();
            let band = 4.0 * ((1.0 - probability) / probability / draws).sqrt();
            assert!(
                (estimate / all - 1.0).abs() < band,
                "{schedule:?}: {estimate} of {all}"
            );
        }
    }

    #[test]
    fn a_cohort_is_other_hosts_each_hour_and_whole_hours_of_them() {
        let cohort = Schedule::Cohort {
            share: 0.5,
            period_ms: HOUR,
        };
        let hour = 1_795_269_600_000_i64.div_euclid(HOUR) * HOUR;
        let mut changes = 0;
        for host in ["db-01", "db-02", "db-03", "db-04"] {
            for at in 0..24 {
                let begin = hour + at * HOUR;
                let first = cohort.takes(host, begin);
                assert_eq!(cohort.takes(host, begin + HOUR - 1), first);
                changes += usize::from(cohort.takes(host, begin + HOUR) != first);
            }
        }
        // 48 of 96 in the mean; fewer than 20 have a probability of less than 1e-8.
        assert!(changes > 20, "{changes}");
    }

    #[test]
    fn a_weight_is_exact_for_whole_numbers() {
        let cohort = Schedule::Cohort {
            share: 0.05,
            period_ms: HOUR,
        };
        assert_eq!(cohort.weight().times(3), 60);
        assert_eq!(Weight::default().times(u64::MAX), u64::MAX);
    }

    #[test]
    fn windows_of_a_duty_come_seldom_and_those_of_a_cohort_one_after_the_other() {
        let (on_ms, period_ms) = (60_000, 600_000);
        let duty = Schedule::Duty { on_ms, period_ms };
        assert_eq!(duty.windows_for_one(), 10.0);
        let share = 0.05;
        let cohort = Schedule::Cohort { share, period_ms };
        assert_eq!(cohort.windows_for_one(), 1.0);
    }
}
