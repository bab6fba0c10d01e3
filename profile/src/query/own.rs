//! Which function a wait is charged to where one alone is named: the innermost of the
//! program's own. Else every thread that waits would be in one of the ten frames that say
//! for what.

use super::selection::{Selection, ShapeAt};
use super::shape::{Step, matches};
use crate::filter::foreign;
use crate::wait::WAITING_MODULE;
use crate::{FunctionId, View};
use std::collections::HashMap;

impl View {
    /// Whether a function is of a program's own code: not of its libraries, not of the runtime of
    /// its language, not of the kernel. It is told by where its file lies and what its name begins
    /// with.
    pub(super) fn is_own_code(&self, id: FunctionId) -> bool {
        id.0 >= crate::intern::RESERVED && !foreign().iter().any(|test| matches(self, test, id))
    }

    /// Whether a frame says what was waited for.
    pub(super) fn is_wait(&self, id: FunctionId) -> bool {
        let frame = self.frame(id).filter(|_| id.0 >= crate::intern::RESERVED);
        let modules = &self.tables.modules;
        frame.is_some_and(|frame| *modules.get(frame.module).name == *WAITING_MODULE)
    }
}

/// Answers for the stacks of one selection; a function is looked at once.
struct OwnCode<'a> {
    view: &'a View,
    known: HashMap<FunctionId, bool>,
}

impl OwnCode<'_> {
    fn is_own(&mut self, id: FunctionId) -> bool {
        let view = self.view;
        *self.known.entry(id).or_insert_with(|| view.is_own_code(id))
    }

    /// A function of a program, be it of a library.
    fn is_of_user(&self, id: FunctionId) -> bool {
        let frame = self.view.frame(id);
        id.0 >= crate::intern::RESERVED
            && frame.is_some_and(|frame| frame.kind != crate::FrameKind::Kernel)
    }
}

/// Which function each stack is charged to where one alone is named.
pub(super) struct Named {
    /// By stack: the function, or the number of a pair where waits are counted; 0 for stacks that
    /// do not count.
    pub(super) of_stack: Vec<u32>,
    /// Where waits are counted: a function, and what stands on top of its stack, which says what it
    /// waited for.
    pub(super) pairs: Vec<(FunctionId, FunctionId)>,
}

impl Named {
    /// The function of a value of `of_stack`.
    #[inline]
    pub(super) fn function(&self, value: u32) -> FunctionId {
        self.pairs
            .get(value as usize)
            .map_or(crate::FrameId(value), |(function, _)| *function)
    }
}

/// Finds the functions that are named for the samples of each stack. Of what ran that is the
/// leaf.
pub(super) fn named_leaves(selection: &Selection) -> Named {
    let leaves = selection.leaves();
    if !selection.view().info().metric.is_waiting() {
        return Named {
            of_stack: leaves,
            pairs: Vec::new(),
        };
    }
    let mut own = OwnCode {
        view: selection.view(),
        known: HashMap::new(),
    };
    let mut named = |at: &ShapeAt, leaf: crate::FrameId| {
        if !at.is_kept() || !own.view.is_wait(leaf) {
            return leaf;
        }
        let functions = selection
            .shape(*at)
            .iter()
            .map(|step| Step(*step).function());
        let found = functions.clone().find(|id| own.is_own(*id));
        let mut functions = functions;
        found
            .or_else(|| functions.find(|id| own.is_of_user(*id)))
            .unwrap_or(leaf)
    };
    // Pair 0 is that of stacks that do not count.
    let mut pairs = vec![(crate::FrameId(0), crate::FrameId(0))];
    let mut numbers = HashMap::from([(pairs[0], 0)]);
    let stacks = selection.shape_of.iter().zip(leaves);
    let of_stack = stacks
        .map(|(at, leaf)| {
            let leaf = crate::FrameId(leaf);
            let pair = (named(at, leaf), leaf);
            *numbers.entry(pair).or_insert_with(|| {
                pairs.push(pair);
                pairs.len() as u32 - 1
            })
        })
        .collect();
    Named { of_stack, pairs }
}
