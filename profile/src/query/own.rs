//! Which function a wait is charged to in views that name a single function: the innermost one of
//! the program's own code. Otherwise every waiting thread would be shown in one of the ten frames
//! that say what it waits for.

use super::selection::{Selection, ShapeAt};
use super::shape::{Step, matches};
use crate::filter::foreign;
use crate::wait::WAITING_MODULE;
use crate::{FunctionId, View};
use std::collections::HashMap;

impl View {
    /// Whether a function is a program's own code: not of its libraries, not of the runtime of its
    /// language, not of the kernel. The decision depends on the path of its file and the beginning
    /// of its name.
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

/// Decides for the stacks of one selection; the result of each function is cached.
struct OwnCode<'a> {
    view: &'a View,
    known: HashMap<FunctionId, bool>,
}

impl OwnCode<'_> {
    fn is_own(&mut self, id: FunctionId) -> bool {
        let view = self.view;
        *self.known.entry(id).or_insert_with(|| view.is_own_code(id))
    }

    /// Whether a function is of a program or library, and not of the kernel.
    fn is_of_user(&self, id: FunctionId) -> bool {
        let frame = self.view.frame(id);
        id.0 >= crate::intern::RESERVED
            && frame.is_some_and(|frame| frame.kind != crate::FrameKind::Kernel)
    }
}

/// The function that each stack is charged to in views that name a single one.
pub(super) struct Named {
    /// For each stack the function or, where waits are counted, the number of a pair; 0 for stacks
    /// that do not count.
    pub(super) of_stack: Vec<u32>,
    /// Where waits are counted: the function, and the frame on top of its stack, which says what it
    /// waited for.
    pub(super) pairs: Vec<(FunctionId, FunctionId)>,
}

impl Named {
    /// Returns the function that a value of `of_stack` stands for.
    #[inline]
    pub(super) fn function(&self, value: u32) -> FunctionId {
        self.pairs
            .get(value as usize)
            .map_or(crate::FrameId(value), |(function, _)| *function)
    }
}

/// Finds the function to name for the samples of each stack. For samples of running threads it is
/// the innermost one.
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
    // Pair 0 is for stacks that do not count.
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
