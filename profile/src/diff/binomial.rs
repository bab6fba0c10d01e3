//! How likely a number of successes is, exactly: for the few samples of a short time, where
//! the normal approximation is wrong.

/// Largest number of trials that is computed exactly; above it the normal approximation holds.
const TRIALS_MAX: f64 = 1e6;

/// The two-sided p-value of `hits` successes in `trials`, each with the probability `p`: twice the
/// smaller tail. Weighted samples can be fractional; they are rounded.
pub fn chance(hits: f64, trials: f64, p: f64) -> f64 {
    let (hits, trials) = (hits.round(), trials.round().min(TRIALS_MAX));
    let is_more = hits > trials * p;
    // The tail is summed from the observed number away from the expected one.
    let tail = if is_more {
        tail(hits, trials, p)
    } else {
        tail(trials - hits, trials, 1.0 - p)
    };
    (2.0 * tail).min(1.0)
}

/// The probability of at least `hits` successes in `trials`, where `hits` is above the expected
/// number.
fn tail(hits: f64, trials: f64, p: f64) -> f64 {
    if hits <= 0.0 || p >= 1.0 {
        return 1.0;
    }
    if hits > trials || p <= 0.0 {
        return 0.0;
    }
    // The logarithm of C(trials, hits) p^hits (1 - p)^(trials - hits).
    let few = hits.min(trials - hits) as u64;
    let choices: f64 = (1..=few)
        .map(|i| ((trials - few as f64 + i as f64) / i as f64).ln())
        .sum();
    let mut term = (choices + hits * p.ln() + (trials - hits) * (-p).ln_1p()).exp();
    let mut sum = 0.0;
    let mut at = hits;
    // The terms fall: behind what is expected each is smaller than the one before.
    while at <= trials && term > sum * 1e-12 {
        sum += term;
        term *= (trials - at) / (at + 1.0) * p / (1.0 - p);
        at += 1.0;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_are_as_in_tables() {
        let near = |found: f64, expected: f64| {
            assert!(
                (found - expected).abs() < 1e-6 * expected,
                "{found} {expected}"
            );
        };
        // 10 of 10 by a fair coin, and 8 of 10.
        near(chance(10.0, 10.0, 0.5), 2.0 / 1024.0);
        near(chance(8.0, 10.0, 0.5), 2.0 * 56.0 / 1024.0);
        near(chance(2.0, 10.0, 0.5), 2.0 * 56.0 / 1024.0);
        // One of 12 where one in 751 is expected.
        near(
            chance(1.0, 12.0, 4.0 / 3004.0),
            2.0 * (1.0 - (1.0_f64 - 4.0 / 3004.0).powi(12)),
        );
        near(chance(0.0, 3.0, 0.1), 1.0);
        assert_eq!(chance(5.0, 10.0, 0.5), 1.0);
    }

    #[test]
    fn extremes_are_numbers() {
        for (hits, trials, p) in [
            (0.0, 0.0, 0.5),
            (1.0, 1.0, 0.0),
            (0.0, 5.0, 1.0),
            (5e5, 1e6, 1e-9),
            (1e7, 1e7, 0.5),
        ] {
            let chance = chance(hits, trials, p);
            assert!(
                (0.0..=1.0).contains(&chance),
                "{hits} {trials} {p}: {chance}"
            );
        }
    }
}
