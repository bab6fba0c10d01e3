//! How far a percentage can be trusted, and so with how many digits it is
//! shown.
//!
//! The *band* is the 95 % confidence band of a share: were the same program
//! sampled again, nineteen of twenty bands would hold its true share. It is
//! Wilson's score interval, and `±` is the larger distance from the share to
//! its two ends. The textbook's normal interval says ±0 for a share of 0 or of
//! all, which is the opposite of what little evidence means; Wilson's says
//! "0 of 10: up to 28 %". Beyond some fifty samples on either side the two
//! agree to a tenth of a point.
//!
//! It is a lower bound: ticks of one busy thread are not independent.

/// The 97.5 % point of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// The `±` of `count` in `samples`, in percentage points. No samples say
/// nothing: 100.
pub fn band_points(count: u64, samples: u64) -> f64 {
    if samples == 0 {
        return 100.0;
    }
    let n = samples as f64;
    let share = count.min(samples) as f64 / n;
    let z2 = Z * Z;
    // (p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n)
    let center = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z / (1.0 + z2 / n) * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    100.0 * (half + (center - share).abs())
}

/// Digits after the point that a percentage of `samples` deserves: none under
/// 1,000 samples, one under 100,000, then two.
pub fn percent_digits(samples: u64) -> usize {
    match samples {
        0..1_000 => 0,
        1_000..100_000 => 1,
        _ => 2,
    }
}

/// `count` of `samples` in percent; 0 of none.
pub fn percent(count: u64, samples: u64) -> f64 {
    if samples == 0 {
        return 0.0;
    }
    count as f64 * 100.0 / samples as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval that the band stands for, in percent, cut at its ends.
    fn check(count: u64, samples: u64, table: (f64, f64)) {
        let share = percent(count, samples);
        let (below, above) = (share - table.0, table.1 - share);
        let expected = below.max(above);
        let band = band_points(count, samples);
        assert!(
            (band - expected).abs() < 0.006,
            "{count} of {samples}: {band} instead of {expected}"
        );
    }

    /// Wilson score intervals as printed in textbooks and by R's
    /// `prop.test(correct = FALSE)`.
    #[test]
    fn bands_agree_with_the_table() {
        check(0, 10, (0.0, 27.753));
        check(10, 10, (72.247, 100.0));
        check(1, 10, (1.788, 40.415));
        check(5, 10, (23.659, 76.341));
        check(15, 50, (19.103, 43.751));
        check(50, 100, (40.383, 59.617));
        check(81, 263, (25.526, 36.621));
        check(1, 29, (0.611, 17.176));
    }

    #[test]
    fn large_samples_agree_with_the_normal_band() {
        for (count, samples) in [(465, 3277), (1036, 3277), (5_000, 100_000)] {
            let p = count as f64 / samples as f64;
            let normal = 100.0 * Z * (p * (1.0 - p) / samples as f64).sqrt();
            let band = band_points(count, samples);
            assert!((band - normal).abs() < 0.06, "{band} {normal}");
        }
    }

    #[test]
    fn the_ends_are_handled() {
        assert_eq!(band_points(0, 0), 100.0);
        assert_eq!(percent(0, 0), 0.0);
        assert!(band_points(7, 3).is_finite(), "more than all counts as all");
        assert!(band_points(u64::MAX, u64::MAX) < 1e-9);
    }

    #[test]
    fn digits_follow_the_evidence() {
        let digits = [0, 999, 1_000, 99_999, 100_000].map(percent_digits);
        assert_eq!(digits, [0, 0, 1, 1, 2]);
    }
}
