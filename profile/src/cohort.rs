//! *Cohorts*: which hosts of many do something that would cost too much on all of them at the same
//! time. Each host decides alone, by a hash of its name and the time, so that nothing has to
//! coordinate them: the agent, which then samples at a higher rate, and the shipper, which then
//! sends, decide the same.

use crate::fnv1a;

/// A part of all hosts, which are other hosts in each period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cohort {
    /// The part of all hosts, from 0 to 1.
    pub share: f64,
    /// Length of a period in ms, more than 0. Periods are counted from 1970.
    pub period_ms: i64,
}

impl Cohort {
    /// Whether a host is in the cohort of the period that has this moment, in ms since 1970. A host
    /// that is in a cohort is also in all larger ones with the same periods.
    pub fn has(&self, host: &str, unix_ms: i64) -> bool {
        draw(host, unix_ms.div_euclid(self.period_ms)) < self.share
    }
}

/// Draws a number from 0 to below 1 for a host and the number of a period: the same on every
/// machine and in every version.
pub fn draw(host: &str, period: i64) -> f64 {
    // Names that differ in one letter have similar hashes, which `mix` spreads.
    let name = fnv1a(host.as_bytes());
    let drawn = mix(mix(name) ^ period.cast_unsigned());
    // As many bits as a number of this type has.
    (drawn >> 11) as f64 / (1_u64 << 53) as f64
}

/// Spreads a number over all bits: SplitMix64 of Steele, Lea and Flood.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_never_changes() {
        // Computed by another implementation. Agents and shippers of several versions have to agree.
        for (host, period, drawn) in [
            ("db-01", 0, 0.574_273_363_208_874_7),
            ("db-01", 1, 0.513_971_446_983_926_9),
            ("db-02", 498_686, 0.704_272_689_680_612_6),
            ("", -1, 0.968_182_368_879_983_7),
        ] {
            assert!(
                (draw(host, period) - drawn).abs() < 1e-15,
                "{host} {period}"
            );
        }
    }

    #[test]
    fn each_host_has_the_same_probability_in_each_period() {
        let hosts: Vec<String> = (0..1000).map(|it| format!("host-{it}.example")).collect();
        let periods = 498_000..498_100;
        let all = 1000.0 * 100.0;
        for share in [0.01, 0.5] {
            let cohort = Cohort {
                share,
                period_ms: 3_600_000,
            };
            let has = |host: &str, period: i64| cohort.has(host, period * 3_600_000 + 1);
            let mut count = 0;
            let mut both = 0;
            for host in &hosts {
                for period in periods.clone() {
                    let is_in = has(host, period);
                    count += i32::from(is_in);
                    both += i32::from(is_in && has(host, period + 1));
                }
            }
            // Five standard deviations of independent draws; for pairs, neighbours share a draw.
            let band = |share: f64| 5.0 * (share * (1.0 - share) / all).sqrt();
            let found = f64::from(count) / all;
            assert!((found - share).abs() < band(share), "{share}: {found}");
            let pairs = f64::from(both) / all;
            let expected = share * share;
            assert!(
                (pairs - expected).abs() < 2.0 * band(expected),
                "{share}: {pairs}"
            );
        }
    }

    #[test]
    fn a_cohort_lasts_for_its_period_and_a_larger_one_contains_it() {
        let hour_ms = 3_600_000;
        let of = |share| Cohort {
            share,
            period_ms: hour_ms,
        };
        for host in ["a", "b", "c", "d"] {
            for hour in -2..50 {
                let is_in = of(0.3).has(host, hour * hour_ms);
                assert_eq!(of(0.3).has(host, hour * hour_ms + hour_ms - 1), is_in);
                assert!(!is_in || of(0.4).has(host, hour * hour_ms));
            }
            assert!(of(1.0).has(host, 0) && !of(0.0).has(host, 0));
        }
    }
}
