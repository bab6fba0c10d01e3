//! How likely a difference between two sides is by *chance* alone, for shares and for rates.

use super::spread::Spread;
use super::{SAMPLES_MIN, binomial, student};

/// A count within the samples of one side. All samples have the same statistical weight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    /// Samples of the function, or of whatever is tested.
    pub(super) samples: f64,
    /// All samples of the side.
    pub(super) of_all: f64,
}

/// The normal approximation is used if at least this many samples are expected on the side with the
/// smaller expectation.
const EXPECTED_MIN: f64 = 5.0;

/// Whether there are enough samples to test.
pub(super) fn is_enough(a: Counted, b: Counted) -> bool {
    a.samples + b.samples >= SAMPLES_MIN
}

/// The two-sided p-value of the pooled two-proportion z-test. Where one side is so short that
/// hardly a sample is expected there, the normal approximation would call a single sample
/// significant; there the split of the samples between the sides is tested as [binomial]. `spread`
/// reduces the weight of each sample.
pub(super) fn of_shares(a: Counted, b: Counted, spread: Spread) -> f64 {
    if a.of_all <= 0.0 || b.of_all <= 0.0 || !is_enough(a, b) {
        return 1.0;
    }
    let independent = |samples: f64| samples / spread.factor;
    let (a_all, b_all) = (independent(a.of_all), independent(b.of_all));
    let (a, b) = (independent(a.samples), independent(b.samples));
    let expected = (a + b) * a_all.min(b_all) / (a_all + b_all);
    if expected < EXPECTED_MIN {
        return binomial::chance(a, a + b, a_all / (a_all + b_all));
    }
    let pooled = (a + b) / (a_all + b_all);
    let variance = pooled * (1.0 - pooled) * (1.0 / a_all + 1.0 / b_all);
    if variance <= 0.0 {
        return 1.0;
    }
    let z = (b / b_all - a / a_all) / variance.sqrt();
    student::chance(z, spread.known)
}

/// The two-sided p-value for two rates being the same. Each rate is a number of samples and the
/// number of ticks in which they were taken. Given the total of both sides, the samples of one side
/// are binomially distributed (Przyborowski and Wilenski 1940); the normal approximation is used
/// where it holds. `spread` reduces the weight of each sample.
pub(super) fn of_rates((a, a_ticks): (f64, f64), (b, b_ticks): (f64, f64), spread: Spread) -> f64 {
    if a + b < SAMPLES_MIN || a_ticks <= 0.0 || b_ticks <= 0.0 {
        return 1.0;
    }
    let (a, b) = (a / spread.factor, b / spread.factor);
    let both = a + b;
    let share = b_ticks / (a_ticks + b_ticks);
    if both * share.min(1.0 - share) < EXPECTED_MIN {
        return binomial::chance(b, both, share);
    }
    let z = (b - both * share) / (both * share * (1.0 - share)).sqrt();
    student::chance(z, spread.known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_those_of_the_tables() {
        // 30 of 100 against 50 of 100: z = 2.8868.
        let of = |samples: f64, of_all: f64| Counted { samples, of_all };
        let p = of_shares(of(30.0, 100.0), of(50.0, 100.0), Spread::NONE);
        assert!((p - 0.003_892).abs() < 1e-5, "{p}");
        let too_few = of_shares(of(0.0, 100.0), of(5.0, 100.0), Spread::NONE);
        assert_eq!(too_few, 1.0, "too few to tell");
        assert_eq!(of_shares(of(0.0, 0.0), of(50.0, 100.0), Spread::NONE), 1.0);
        // Four such samples carry the evidence of one: z is halved.
        let spread = Spread {
            factor: 4.0,
            known: f64::INFINITY,
        };
        let p = of_shares(of(120.0, 400.0), of(200.0, 400.0), spread);
        assert!((p - 0.003_892).abs() < 1e-5, "{p}");
    }

    #[test]
    fn rates_in_equal_windows_differ_where_shares_do_not() {
        // z = (539 - 486) / sqrt(972 / 4) = 3.40.
        let p = of_rates((433.0, 990.0), (539.0, 990.0), Spread::NONE);
        assert!((p - 0.000_674).abs() < 1e-5, "{p}");
        // The same count in a window of twice the length is half the rate.
        assert!(of_rates((500.0, 990.0), (500.0, 1_980.0), Spread::NONE) < 1e-6);
        assert_eq!(of_rates((100.0, 990.0), (100.0, 990.0), Spread::NONE), 1.0);
        assert_eq!(
            of_rates((4.0, 990.0), (5.0, 990.0), Spread::NONE),
            1.0,
            "too few"
        );
        assert_eq!(of_rates((40.0, 0.0), (50.0, 990.0), Spread::NONE), 1.0);
    }
}
