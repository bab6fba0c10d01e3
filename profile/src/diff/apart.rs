//! Finds what sets a *part* of a selection apart from the rest of it.

use super::SAMPLES_MIN;
use super::chance::{Counted, is_enough, of_shares};
use super::spread::Spread;
use crate::few;
use crate::{FunctionId, Selection};
use std::collections::HashMap;
use std::sync::Arc;

/// A function whose share of the part differs from its share of the rest.
#[derive(Debug, Clone, PartialEq)]
pub struct Apart {
    /// Its name, or `module+0xoffset` while it has none.
    pub name: Arc<str>,
    /// The short name of its module.
    pub module: Arc<str>,
    /// Its share of self samples in the part minus its share in the rest, in percentage points.
    pub points: f64,
}

/// Decides whether anything that is counted in a part and in the rest has a significantly different
/// share in the part. Over all functions together, less than one in twenty parts is expected to
/// have a function called so by chance.
#[derive(Debug, Clone, Copy)]
pub struct PartTest {
    part: u64,
    rest: u64,
    /// Statistical weight of one sample of the part, and of one of the rest.
    evidence: (f64, f64),
    limit: f64,
}

impl PartTest {
    /// Prepares the test. `part` has to consist [of samples](Selection::part) of `whole`.
    pub fn new(part: &Selection, whole: &Selection) -> Self {
        Self::of(part, whole, &own_samples(whole))
    }

    /// Prepares the test; `all` holds the self samples of each function of the whole. The
    /// significance limit is divided by the number of functions that have enough samples to be
    /// tested (Bonferroni).
    fn of(part: &Selection, whole: &Selection, all: &HashMap<FunctionId, u64>) -> Self {
        let evidence = (part.evidence(), whole.evidence());
        let is_tested = |samples: &&u64| **samples as f64 * evidence.1 >= SAMPLES_MIN;
        let tests = all.values().filter(is_tested);
        Self {
            part: part.samples(),
            rest: whole.samples().saturating_sub(part.samples()),
            evidence,
            limit: super::FALSE_RATE / tests.count().max(1) as f64,
        }
    }

    /// Whether `here` samples of the part against `there` samples of the rest are a significant
    /// difference.
    pub fn is_sure(&self, here: u64, there: u64) -> bool {
        let counted = |samples: u64, of_all: u64, evidence: f64| Counted {
            samples: samples as f64 * evidence,
            of_all: of_all as f64 * evidence,
        };
        let there = counted(there, self.rest, self.evidence.1);
        let here = counted(here, self.part, self.evidence.0);
        is_enough(there, here) && of_shares(there, here, Spread::NONE) <= self.limit
    }
}

fn own_samples(selection: &Selection) -> HashMap<FunctionId, u64> {
    let rows = selection.functions().into_iter();
    rows.map(|row| (row.id, row.self_samples)).collect()
}

/// Returns the functions whose share differs significantly, largest difference first. Less than one
/// in twenty of such lists is expected to contain a function by chance. `part` has to be [of the
/// samples](Selection::part) of `whole`.
pub fn apart(part: &Selection, whole: &Selection) -> Vec<Apart> {
    let rest = whole.samples().saturating_sub(part.samples());
    if part.samples() == 0 || rest == 0 {
        return Vec::new();
    }
    let (inside, all) = (own_samples(part), own_samples(whole));
    let test = PartTest::of(part, whole, &all);
    let mut found: Vec<Apart> = all
        .into_iter()
        .filter_map(|(id, samples)| {
            let here = inside.get(&id).copied().unwrap_or(0);
            let there = samples.saturating_sub(here);
            test.is_sure(here, there).then(|| {
                let function = whole.view().function(id);
                let share = crate::percent(here, part.samples());
                Apart {
                    name: function.name,
                    module: function.module,
                    points: share - crate::percent(there, rest),
                }
            })
        })
        .collect();
    few::sort_by(&mut found, |a, b| {
        let by_points = b.points.abs().total_cmp(&a.points.abs());
        by_points.then_with(|| a.name.cmp(&b.name))
    });
    found
}
