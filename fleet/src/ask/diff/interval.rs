//! Computes how reliable a change of a share is, with hosts as the sampling units.
//!
//! A share is a ratio of two sums over hosts, `Σx / Σy`. Its variance is that of `x - share * y`,
//! which is how much more or less of the function each host has than the average (the delta method;
//! Cochran, *Sampling Techniques*, section 6.3). It is computed from sums of squares and products
//! that the SQL returns. If a host is on both sides, its values on both are correlated, and their
//! covariance is subtracted.

use crate::rows::Row;
use profile::diff::student_chance;

/// The probability that the true value is outside of an interval.
const OUTSIDE: f64 = 0.05;

/// The sums of both sides, as `[A, B]`.
#[derive(Debug, Clone, Copy)]
pub struct Sides {
    /// Number of hosts.
    pub hosts: [u64; 2],
    /// Number of hosts that are on both sides.
    pub hosts_both: u64,
    /// Totals in seconds, or numbers of events.
    pub all: [f64; 2],
    all_squares: [f64; 2],
    all_product: f64,
    /// Numbers of samples.
    pub samples: [f64; 2],
    recorded_ms: [f64; 2],
    /// Number of samples that are on both sides.
    pub shared: f64,
    period_ns: f64,
}

impl Sides {
    pub fn of(row: Row) -> Self {
        let both = |a: &str, b: &str| [row.number(a), row.number(b)];
        Self {
            hosts: [row.whole("hosts_a"), row.whole("hosts_b")],
            hosts_both: row.whole("hosts_both"),
            all: both("all_a", "all_b"),
            all_squares: both("all_aa", "all_bb"),
            all_product: row.number("all_ab"),
            samples: both("samples_a", "samples_b"),
            recorded_ms: both("recorded_ms_a", "recorded_ms_b"),
            shared: row.number("shared"),
            period_ns: row.number("longest_period"),
        }
    }

    /// Whether amounts are seconds.
    pub fn is_time(&self) -> bool {
        self.period_ns > 0.0
    }

    /// Whether values count samples.
    pub fn has_samples(&self) -> bool {
        self.period_ns > 1.0
    }

    /// Returns the duration of the windows of hosts with samples of a side, in hours.
    pub fn hours(&self, side: usize) -> f64 {
        self.recorded_ms[side] / 3_600_000.0
    }

    /// Converts an amount to an amount per hour of a host; 0 without any.
    pub fn per_hour(&self, amount: f64, side: usize) -> f64 {
        let hours = self.hours(side);
        if hours > 0.0 { amount / hours } else { 0.0 }
    }
}

/// The sums of a function over hosts, as `[A, B]`.
#[derive(Debug, Clone, Copy)]
pub struct Moments {
    sum: [f64; 2],
    squares: [f64; 2],
    product: f64,
    /// Its amount times the total amount of the host, on the same side.
    with_all: [f64; 2],
    /// Its amount on this side times the total amount of the host on the other side.
    with_other: [f64; 2],
}

impl Moments {
    /// Reads the sums of `self` or `total` time from a row.
    pub fn of(row: Row, what: &str) -> Self {
        let number = |column: &str| row.number(&format!("{what}_{column}"));
        Self {
            sum: [number("a"), number("b")],
            squares: [number("aa"), number("bb")],
            product: number("ab"),
            with_all: [number("a_all_a"), number("b_all_b")],
            with_other: [number("a_all_b"), number("b_all_a")],
        }
    }
}

/// The shares of a function on both sides, and the significance of their difference.
#[derive(Debug, Clone, Copy)]
pub struct Change {
    /// The share on side A.
    pub a: f64,
    /// The share on side B.
    pub b: f64,
    /// Half of the 95 % confidence interval of the difference; `None` if a side has only one host.
    pub half: Option<f64>,
    /// The probability of a difference at least this large if there is none.
    pub chance: Option<f64>,
    /// `chance`, corrected for the number of functions that are compared together (Holm).
    pub corrected: Option<f64>,
}

impl Change {
    /// Returns the difference of the shares, B minus A.
    pub fn delta(&self) -> f64 {
        self.b - self.a
    }

    /// Whether the interval includes zero, so that no change is visible; None without an interval.
    pub fn covers_zero(&self) -> Option<bool> {
        self.chance.map(|it| it >= OUTSIDE)
    }

    /// Returns the mark of its significance, `0`, `*` or `**`: see docs/fleet.md. None without an
    /// interval.
    pub fn mark(&self) -> Option<&'static str> {
        let covers_zero = self.covers_zero()?;
        if self.corrected.is_some_and(|it| it < OUTSIDE) {
            Some("**")
        } else if covers_zero {
            Some("0")
        } else {
            Some("*")
        }
    }
}

/// Computes the change of a function.
pub fn change(of: &Moments, sides: &Sides) -> Change {
    let share = |side: usize| {
        if sides.all[side] > 0.0 {
            of.sum[side] / sides.all[side]
        } else {
            0.0
        }
    };
    let shares = [share(0), share(1)];
    let (half, chance) = match error(of, sides, shares) {
        Some((deviation, freedom)) => {
            let delta = (shares[1] - shares[0]).abs();
            let chance = match (delta > 0.0, deviation > 0.0) {
                (false, _) => 1.0,
                (true, false) => 0.0,
                (true, true) => student_chance(delta / deviation, freedom),
            };
            (Some(deviation * quantile(freedom)), Some(chance))
        }
        None => (None, None),
    };
    Change {
        a: shares[0],
        b: shares[1],
        half,
        chance,
        corrected: None,
    }
}

/// Returns the standard deviation of the difference, and its degrees of freedom; `None` if a side
/// has only one host.
fn error(of: &Moments, sides: &Sides, shares: [f64; 2]) -> Option<(f64, f64)> {
    if sides.hosts.iter().any(|it| *it < 2) || sides.all.iter().any(|it| *it <= 0.0) {
        return None;
    }
    let freedom = [0, 1].map(|side| sides.hosts[side] as f64 - 1.0);
    let few = [0, 1].map(|side| sides.hosts[side] as f64 / freedom[side]);
    let variance = [0, 1].map(|side| {
        let (share, all) = (shares[side], sides.all[side]);
        let squares = of.squares[side] - 2.0 * share * of.with_all[side]
            + share * share * sides.all_squares[side];
        let of_hosts = few[side] * squares.max(0.0) / (all * all);
        // With few samples all hosts may have the same number by chance. The variance is at least
        // that of independent samples of that number.
        let of_samples = if sides.has_samples() && sides.samples[side] > 0.0 {
            share * (1.0 - share).max(0.0) / sides.samples[side]
        } else {
            0.0
        };
        of_hosts.max(of_samples)
    });
    let product = of.product - shares[1] * of.with_other[0] - shares[0] * of.with_other[1]
        + shares[0] * shares[1] * sides.all_product;
    let covariance = (few[0] * few[1]).sqrt() * product / (sides.all[0] * sides.all[1]);
    let sum = variance[0] + variance[1];
    if sides.hosts_both > 0 {
        // The covariance is limited so that at least a tenth of the variance remains.
        let left = (sum - 2.0 * covariance).max(sum * 0.1);
        return Some((left.sqrt(), freedom[0].min(freedom[1])));
    }
    // Degrees of freedom by Welch and Satterthwaite.
    let parts = [0, 1].map(|side| variance[side] * variance[side] / freedom[side]);
    let welch = if parts[0] + parts[1] > 0.0 {
        sum * sum / (parts[0] + parts[1])
    } else {
        freedom[0].min(freedom[1])
    };
    Some((sum.sqrt(), welch))
}

/// Returns half of an interval in standard deviations.
fn quantile(freedom: f64) -> f64 {
    const STEPS_MAX: u32 = 20;
    const ENOUGH: f64 = 1e-9;
    let above = |at: f64| student_chance(at, freedom) - OUTSIDE;
    // The secant method. The chance is a convex function, and both first points are below the
    // quantile of the normal distribution, 1.960, which is the least of all: so each secant is zero
    // at or before the quantile, and the steps come nearer to it from below.
    let (mut last, mut at) = (1.9, 1.95);
    let mut above_last = above(last);
    for _ in 0..STEPS_MAX {
        let above_at = above(at);
        let step = above_at * (at - last) / (above_last - above_at);
        if !step.is_finite() {
            break;
        }
        (last, above_last) = (at, above_at);
        at += step;
        if step.abs() < ENOUGH {
            break;
        }
    }
    at
}

/// Corrects probabilities for their number, by Holm's method: whatever their dependence, in at most
/// 5 of 100 comparisons any of them is below 5 % by mistake.
pub fn correct(mut changes: Vec<&mut Change>) {
    changes.retain(|it| it.chance.is_some());
    changes.sort_by(|x, y| x.chance.unwrap_or(1.0).total_cmp(&y.chance.unwrap_or(1.0)));
    let mut greatest = 0.0_f64;
    let count = changes.len();
    for (at, change) in changes.into_iter().enumerate() {
        let chance = change.chance.unwrap_or(1.0) * (count - at) as f64;
        greatest = greatest.max(chance).min(1.0);
        change.corrected = Some(greatest);
    }
}

#[cfg(test)]
mod tests;
