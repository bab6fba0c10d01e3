//! The *spread* of a function's samples: by how much more they vary from part to part of the
//! window than independent samples would.
//!
//! Samples of a program are not independent of each other. While it collects garbage for a second,
//! or another program has the CPU for three, each sample is like the one before and tells little
//! more. A test that takes all of them for independent finds differences between two runs of one
//! program. So the window is divided into parts, the method of *batch means* (Schmeiser, "Batch
//! size effects", 1982), and by how much more the parts vary than those of independent samples
//! would, so much less each sample counts, as in surveys that ask whole households (Rao and
//! Scott, 1984):
//!
//! 1. For each part, the square of what it has more or less than expected: their sum, over
//!    what that would be of independent samples.
//! 2. If a part is like the one before, what disturbs lasts longer than a part, and the whole
//!    varies more than the parts tell: by (1 + r) / (1 - r), where r is the correlation of
//!    neighbouring parts.
//! 3. One function has few such numbers. So each is a mean of its own and that of all functions
//!    together, which counts as much as [`PRIOR`] parts.
//!
//! The result is never less than one: a clock that ticks evenly may draw a busy program more
//! evenly than chance would, and the next run not.
//!
//! What changes more slowly than the window is long, no part of it can tell.

use crate::query::Parts;
use crate::{FunctionId, Selection};

/// How many parts a window is divided into: more would hardly be known better, and have fewer
/// samples each.
pub(super) const PARTS: usize = 20;

/// Of a shorter part too few samples could be told from chance: at 99 Hz it has five.
const PART_NS_MIN: u64 = 50_000_000;

/// How much the spread of all functions counts, in parts.
const PRIOR: f64 = 10.0;

/// The highest correlation of neighbours that is reckoned with: it is not known well from so few
/// parts, and near one the factor would be anything.
const CORRELATION_MAX: f64 = 0.8;

/// How much more samples vary than independent ones: 1 if they do not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    /// By what the variance is larger.
    pub(super) factor: f64,
    /// How well that is known: the degrees of freedom. Infinite if nothing was estimated.
    pub(super) known: f64,
}

impl Spread {
    /// Independent samples.
    pub(super) const NONE: Self = Self {
        factor: 1.0,
        known: f64::INFINITY,
    };
}

/// Of shares, and of amounts of time: what disturbs all functions alike leaves shares alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spreads {
    pub(super) shares: Spread,
    pub(super) time: Spread,
}

impl Spreads {
    pub(super) const NONE: Self = Self {
        shares: Spread::NONE,
        time: Spread::NONE,
    };
}

/// Sums of squares of one function or of several.
#[derive(Debug, Clone, Copy, Default)]
struct Squares {
    found: f64,
    /// Of independent samples.
    expected: f64,
    /// Of each part with the next one.
    neighbours: f64,
    /// Parts, less one for each mean.
    freedom: f64,
}

impl Squares {
    fn add(&mut self, other: &Self) {
        self.found += other.found;
        self.expected += other.expected;
        self.neighbours += other.neighbours;
        self.freedom = self.freedom.max(other.freedom);
    }

    /// Adds a side. `residuals` are what each part has more than expected, `variance` is what the
    /// mean of their squares would be of independent samples.
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
        // Residuals of n numbers without any correlation have one of -1 / n.
        self.neighbours / self.found + 1.0 / PARTS as f64
    }

    /// The spread of a function, drawn towards that of all.
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
            // Parts that are like each other tell less.
            known: (self.freedom / longer).max(1.0),
        }
    }
}

/// The parts of both sides.
pub(super) struct BothParts {
    sides: [Option<(Parts, f64)>; 2],
}

/// What is known of a function, or of all.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Measured {
    shares: Squares,
    time: Squares,
}

impl Measured {
    pub(super) fn add(&mut self, other: &Self) {
        self.shares.add(&other.shares);
        self.time.add(&other.time);
    }

    /// The spreads of what was measured, drawn towards those of all.
    pub(super) fn spreads(&self, all: &Self) -> Spreads {
        Spreads {
            shares: self.shares.spread(&all.shares),
            time: self.time.spread(&all.time),
        }
    }
}

impl BothParts {
    pub(super) fn of(a: &Selection, b: &Selection) -> Self {
        let parts = |side: &Selection| {
            let parts = side.parts(PARTS, PART_NS_MIN)?;
            Some((parts, side.evidence()))
        };
        Self {
            sides: [parts(a), parts(b)],
        }
    }

    /// Measures a function, by its number on each side.
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
            // The variance of the samples of one part, if they were independent.
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
