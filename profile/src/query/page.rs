//! The *page of one function*: who calls it, and what it calls.
//!
//! Every sample counts once on each side, so both sides add up to the whole: the caller is taken at
//! the outermost occurrence on the stack, the callee at the innermost one. What happens between two
//! occurrences is recursion.

use super::selection::Selection;
use super::shape::Step;
use super::trend::Trends;
use super::{Cancel, Cancelled, functions};
use crate::{Ending, FrameId, FunctionId, FunctionRow, few};
use std::cmp::Reverse;
use std::collections::HashMap;

/// One function with its callers and callees.
#[derive(Debug, Clone)]
pub struct FunctionPage {
    /// The row of the function, counted from the samples that have it on their stack.
    pub function: FunctionRow,
    /// Its callers by samples, falling; they add up to the function's total.
    pub callers: Vec<Neighbour>,
    /// Its callees by samples, falling, including the function's own samples.
    pub callees: Vec<Neighbour>,
    /// The stack with most of its samples, root first, and those samples.
    pub heaviest: Vec<FunctionId>,
    /// Samples with exactly the stack in `heaviest`.
    pub heaviest_samples: u64,
}

/// A caller or a callee of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// Which one it is.
    pub kind: NeighbourKind,
    /// Samples in which it is the caller or callee.
    pub samples: u64,
}

/// What stands next to a function on a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NeighbourKind {
    /// Another function.
    Function(FunctionId),
    /// Not called at all: the thread begins there.
    Root,
    /// Called by a function that is missing, for this reason.
    Stopped(Ending),
    /// Calls nothing: the function itself.
    Own,
}

impl Selection {
    /// Computes the page of the function that `frame` belongs to; `None` if no selected sample has
    /// it.
    pub fn page(&self, frame: FrameId, cancel: &Cancel) -> Result<Option<FunctionPage>, Cancelled> {
        let function = self.view.function_of(frame);
        let mut callers: HashMap<NeighbourKind, u64> = HashMap::new();
        let mut callees: HashMap<NeighbourKind, u64> = HashMap::new();
        let mut stacks: HashMap<&[u32], u64> = HashMap::new();
        for (at, entry) in self.entries.iter().enumerate() {
            if at.is_multiple_of(super::selection::STEP) {
                cancel.check()?;
            }
            let shape = self.shape(entry.shape);
            let is_it = |step: &u32| Step(*step).function() == function;
            let Some(innermost) = shape.iter().position(is_it) else {
                continue;
            };
            let outermost = shape.iter().rposition(is_it).unwrap_or(innermost);
            let callee = innermost
                .checked_sub(1)
                .map(|at| Step(shape[at]).function())
                .map_or(NeighbourKind::Own, NeighbourKind::Function);
            let is_cut = entry.ending.is_user_stack() && !entry.ending.is_whole();
            let caller = match shape.get(outermost + 1) {
                Some(step) => NeighbourKind::Function(Step(*step).function()),
                None if is_cut => NeighbourKind::Stopped(entry.ending),
                None => NeighbourKind::Root,
            };
            *callers.entry(caller).or_default() += entry.samples;
            *callees.entry(callee).or_default() += entry.samples;
            *stacks.entry(shape).or_default() += entry.samples;
        }
        let rows = functions::rows(self, &Trends::collect(self)).rows;
        let Some(row) = rows.into_iter().find(|row| row.id == function) else {
            return Ok(None);
        };
        let by_samples = |(shape, samples): &(&[u32], u64)| (*samples, Reverse(shape.to_vec()));
        let heaviest = stacks.into_iter().max_by_key(by_samples);
        let (heaviest, heaviest_samples) = heaviest.unwrap_or_default();
        Ok(Some(FunctionPage {
            function: row,
            callers: sorted(callers),
            callees: sorted(callees),
            heaviest: heaviest
                .iter()
                .rev()
                .map(|step| Step(*step).function())
                .collect(),
            heaviest_samples,
        }))
    }
}

fn sorted(counts: HashMap<NeighbourKind, u64>) -> Vec<Neighbour> {
    let neighbour = |(kind, samples)| Neighbour { kind, samples };
    let mut rows: Vec<Neighbour> = counts.into_iter().map(neighbour).collect();
    few::sort_by_key(&mut rows, |row| (Reverse(row.samples), row.kind));
    rows
}
