//! What sets a part of a selection *apart* from the rest of it.

use super::{SAMPLES_MIN, chance};
use crate::{FunctionId, Selection};
use std::collections::HashMap;
use std::sync::Arc;

/// A function that takes another share of the part than of the rest.
#[derive(Debug, Clone, PartialEq)]
pub struct Apart {
    pub name: Arc<str>,
    pub module: Arc<str>,
    /// Its share of self samples in the part less that in the rest, in points.
    pub points: f64,
}

/// The functions by how much they differ, most first, of those that surely do:
/// less than one in twenty of such lists is expected to have one by chance.
/// `part` has to be of the samples of `whole`.
pub fn apart(part: &Selection, whole: &Selection) -> Vec<Apart> {
    let rest = whole.samples().saturating_sub(part.samples());
    if part.samples() == 0 || rest == 0 {
        return Vec::new();
    }
    let own = |selection: &Selection| -> HashMap<FunctionId, u64> {
        let rows = selection.functions().into_iter();
        rows.map(|row| (row.id, row.self_samples)).collect()
    };
    let (inside, all) = (own(part), own(whole));
    let tests = all.values().filter(|samples| **samples >= SAMPLES_MIN);
    let limit = super::FALSE_RATE / tests.count().max(1) as f64;
    let mut found: Vec<Apart> = all
        .into_iter()
        .filter_map(|(id, samples)| {
            let here = inside.get(&id).copied().unwrap_or(0);
            let there = samples.saturating_sub(here);
            let is_sure =
                samples >= SAMPLES_MIN && chance(there, rest, here, part.samples()) <= limit;
            is_sure.then(|| {
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
    found.sort_by(|a, b| {
        let by_points = b.points.abs().total_cmp(&a.points.abs());
        by_points.then_with(|| a.name.cmp(&b.name))
    });
    found
}
