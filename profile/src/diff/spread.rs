//! The *spread* of a function's samples: how much more they vary between parts of the window than
//! independent samples would.
//!
//! Samples of a program are not independent of each other. While a program collects garbage for a
//! second, or another program has the CPU for three, each sample is like the one before and adds
//! little evidence. A test that treats all of them as independent finds differences between two
//! runs of one program. So the window is divided into parts (the method of *batch means*;
//! Schmeiser, "Batch size effects", 1982). The more the parts vary compared with independent
//! samples, the less each sample counts, as in surveys that interview whole households (Rao and
//! Scott, 1984):
//!
//! 1. Variance: the sum over all parts of the squared deviation from the expected number of
//!    samples, divided by the value this sum has for independent samples.
//! 2. Correlation: if a part is like the one before, the disturbance lasts longer than a part, and
//!    the whole varies more than the parts show, by (1 + r) / (1 - r), where r is the correlation
//!    of neighbouring parts.
//! 3. Shrinkage: one function has few such numbers. So each result is a mean of the function's own
//!    value and the value of all functions together, which counts as much as [`PRIOR`] parts.
//!
//! The result is never less than one: an evenly ticking clock may sample a busy program more evenly
//! than chance would, but the next run may not repeat that.
//!
//! A change slower than the window cannot be seen by comparing parts of the window.

use crate::query::Parts;
use crate::{FunctionId, Selection};

/// Number of parts that a window is divided into. More parts would have fewer samples each and
/// hardly improve the estimate.
pub(super) const PARTS: usize = 20;

/// Shortest part. Shorter ones have too few samples to tell variation from chance: at 99 Hz this
/// length has five.
const PART_NS_MIN: u64 = 50_000_000;

/// Weight of the spread of all functions, in parts.
const PRIOR: f64 = 10.0;

/// Upper limit for the correlation of neighbours: it is poorly known from so few parts, and near 1
/// the factor (1 + r) / (1 - r) would explode.
const CORRELATION_MAX: f64 = 0.8;

/// How much more samples vary than independent ones; a factor of 1 means not at all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    /// Factor by which the variance is larger.
    pub(super) factor: f64,
    /// Degrees of freedom of that estimate; infinite if nothing was estimated.
    pub(super) known: f64,
}

impl Spread {
    /// The spread of independent samples.
    pub(super) const NONE: Self = Self {
        factor: 1.0,
        known: f64::INFINITY,
    };
}

/// Two spreads of one thing: of its share, and of its amount of time. A disturbance of all
/// functions alike changes their times but not their shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spreads {
    /// Spread of the share of all samples.
    pub(super) shares: Spread,
    /// Spread of the amount of time.
    pub(super) time: Spread,
}

impl Spreads {
    /// The spreads of independent samples.
    pub(super) const NONE: Self = Self {
        shares: Spread::NONE,
        time: Spread::NONE,
    };
}

/// Sums of squared deviations of one function or of several.
#[derive(Debug, Clone, Copy, Default)]
struct Squares {
    found: f64,
    /// Value that the sum of squares would have for independent samples.
    expected: f64,
    /// Sum of products of neighbouring residuals (lag-1 autocovariance).
    neighbours: f64,
    /// Number of parts minus one for each estimated mean.
    freedom: f64,
}

impl Squares {
    fn add(&mut self, other: &Self) {
        self.found += other.found;
        self.expected += other.expected;
        self.neighbours += other.neighbours;
        self.freedom = self.freedom.max(other.freedom);
    }

    /// Adds one side. `residuals` are the differences of each part from its expectation, `variance`
    /// is the expected mean of their squares for independent samples.
    fn add_side(&mut self, residuals: &[f64], variance: f64) {
        let freedom = residuals.len() as f64 - 1.0;
        self.found += residuals.iter().map(|r| r * r).sum::<f64>();
        self.neighbours += residuals
            .windows(2)
            .map(|pair| pair[0] * pair[1])
            .sum::<f64>();
        self.expected += variance * freedom;
        self.freedom += freedom;
    }

    fn of_parts(&self) -> f64 {
        if self.expected > 0.0 {
            self.found / self.expected
        } else {
            1.0
        }
    }

    fn correlation(&self) -> f64 {
        if self.found <= 0.0 {
            return 0.0;
        }
        // The residuals of n uncorrelated numbers have a correlation of -1 / n.
        self.neighbours / self.found + 1.0 / PARTS as f64
    }

    /// The spread of a function, shrunk towards the spread of all functions.
    fn spread(&self, all: &Self) -> Spread {
        if self.freedom <= 0.0 {
            return Spread::NONE;
        }
        let toward =
            |own: f64, all: f64| (own * self.freedom + all * PRIOR) / (self.freedom + PRIOR);
        let correlation = toward(self.correlation(), all.correlation()).clamp(0.0, CORRELATION_MAX);
        let longer = (1.0 + correlation) / (1.0 - correlation);
        let factor = toward(self.of_parts(), all.of_parts()) * longer;
        if factor <= 1.0 {
            return Spread::NONE;
        }
        Spread {
            factor,
            // Correlated parts carry less information.
            known: (self.freedom / longer).max(1.0),
        }
    }
}

/// The parts of both sides of a comparison.
pub(super) struct BothParts {
    sides: [Option<(Parts, f64)>; 2],
}

/// The sums measured for one function, or for all functions.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Measured {
    shares: Squares,
    time: Squares,
}

impl Measured {
    /// Adds the sums of another function.
    pub(super) fn add(&mut self, other: &Self) {
        self.shares.add(&other.shares);
        self.time.add(&other.time);
    }

    /// The spreads of the measured function, shrunk towards the spreads of all functions.
    pub(super) fn spreads(&self, all: &Self) -> Spreads {
        Spreads {
            shares: self.shares.spread(&all.shares),
            time: self.time.spread(&all.time),
        }
    }
}

impl BothParts {
    /// Divides the windows of both selections into parts.
    pub(super) fn of(a: &Selection, b: &Selection) -> Self {
        let parts = |side: &Selection| {
            let parts = side.parts(PARTS, PART_NS_MIN)?;
            Some((parts, side.evidence()))
        };
        Self {
            sides: [parts(a), parts(b)],
        }
    }

    /// Measures a function, given its number on each side (`None` if a side does not have it).
    pub(super) fn measure(&self, ids: [Option<FunctionId>; 2]) -> Measured {
        let mut measured = Measured::default();
        for (side, id) in self.sides.iter().zip(ids) {
            let Some((parts, evidence)) = side else {
                continue;
            };
            let Some(own) = id.and_then(|id| parts.of(id)) else {
                continue;
            };
            let of_all: f64 = parts.all.iter().map(|n| *n as f64).sum();
            let of_own: f64 = own.iter().map(|n| *n as f64).sum();
            let share = of_own / of_all;
            let mean = of_own / own.len() as f64;
            let residuals = |expected: &dyn Fn(f64) -> f64| -> Vec<f64> {
                own.iter()
                    .zip(&parts.all)
                    .map(|(own, all)| (*own as f64 - expected(*all as f64)) * evidence)
                    .collect()
            };
            // The variance that the samples of one part would have if they were independent.
            let variance = mean * evidence;
            measured.time.add_side(&residuals(&|_| mean), variance);
            let by_share = residuals(&|all| all * share);
            measured
                .shares
                .add_side(&by_share, variance * (1.0 - share));
        }
        measured
    }
}
