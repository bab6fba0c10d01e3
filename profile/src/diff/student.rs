//! The two-sided probability of a deviation, in standard deviations that were themselves estimated:
//! Student's distribution, or the normal distribution where nothing was estimated.

use std::f64::consts::{PI, SQRT_2};

/// Returns the two-sided p-value of `z`: how likely a number of Student's distribution with `freedom`
/// degrees of freedom is at least as far from zero. With infinite `freedom` it is the normal distribution.
pub fn chance(z: f64, freedom: f64) -> f64 {
    if !freedom.is_finite() {
        return erfc(z.abs() / SQRT_2);
    }
    let x = freedom / (freedom + z * z);
    incomplete_beta(x, freedom / 2.0, 0.5).clamp(0.0, 1.0)
}

/// The regularized incomplete beta function, by its continued fraction (Numerical Recipes, section
/// 6.4). The fraction converges fast below the mean; above it the complement is computed.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p();
    if x < (a + 1.0) / (a + b + 2.0) {
        front.exp() * continued_fraction(x, a, b) / a
    } else {
        1.0 - front.exp() * continued_fraction(1.0 - x, b, a) / b
    }
}

/// Evaluates the continued fraction by Lentz's method.
fn continued_fraction(x: f64, a: f64, b: f64) -> f64 {
    const STEPS_MAX: u32 = 300;
    const ENOUGH: f64 = 1e-12;
    const TINY: f64 = 1e-300;
    let away_from_zero = |n: f64| if n.abs() < TINY { TINY } else { n };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..STEPS_MAX {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut last = 1.0;
        for numerator in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + numerator * d);
            c = away_from_zero(1.0 + numerator / c);
            last = c * d;
            fraction *= last;
        }
        if (last - 1.0).abs() < ENOUGH {
            break;
        }
    }
    fraction
}

/// The logarithm of the gamma function for positive arguments: Lanczos's approximation with g = 5
/// and six terms, to 2e-10.
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 6] = [
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.120_865_097_386_617_9e-2,
        -0.539_523_938_495_3e-5,
    ];
    let base = x + 5.5;
    let sum = (1..)
        .zip(TERMS)
        .fold(1.000_000_000_190_015, |sum, (at, term)| {
            sum + term / (x + f64::from(at))
        });
    (x + 0.5) * base.ln() - base + ((2.0 * PI).sqrt() * sum / x).ln()
}

/// The complementary error function, to a relative error of 1.2e-7: W. J. Cody's idea in the
/// Chebyshev form of Numerical Recipes, section 6.2.
fn erfc(x: f64) -> f64 {
    const C: [f64; 10] = [
        -1.26551223,
        1.00002368,
        0.37409196,
        0.09678418,
        -0.18628806,
        0.27886807,
        -1.13520398,
        1.48851587,
        -0.82215223,
        0.17087277,
    ];
    let t = 1.0 / (1.0 + 0.5 * x);
    let poly = C.iter().rev().fold(0.0, |sum, c| sum * t + c);
    (t * (poly - x * x).exp()).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_chances_are_those_of_the_table() {
        for (z, expected) in [(1.959_964, 0.05), (2.575_829, 0.01), (0.0, 1.0)] {
            let found = chance(z, f64::INFINITY);
            assert!((found - expected).abs() < 1e-6, "{z}: {found}");
        }
    }

    #[test]
    fn chances_of_few_degrees_of_freedom_are_those_of_the_table() {
        for (t, freedom, expected) in [
            (12.706, 1.0, 0.05),
            (2.776, 4.0, 0.05),
            (4.604, 4.0, 0.01),
            (2.024, 38.0, 0.05),
            (3.319, 38.0, 0.002),
            (1.984, 100.0, 0.05),
            (0.0, 5.0, 1.0),
        ] {
            for t in [t, -t] {
                let found = chance(t, freedom);
                let near = (found - expected).abs() < 2e-3 * expected;
                assert!(near, "{t} of {freedom}: {found}");
            }
        }
    }

    #[test]
    fn extremes_are_numbers_and_many_degrees_are_normal() {
        for (z, freedom) in [(1e9, 1.0), (50.0, 38.0), (1e-12, 3.0), (0.1, 1e9)] {
            let found = chance(z, freedom);
            assert!((0.0..=1.0).contains(&found), "{z} of {freedom}: {found}");
        }
        let (many, all) = (chance(2.5, 1e5), chance(2.5, f64::INFINITY));
        assert!((many - all).abs() < 1e-5, "{many} {all}");
    }
}
