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

    fn is_wait(&self, id: FunctionId) -> bool {
        let frame = self
            .view
            .frame(id)
            .filter(|_| id.0 >= crate::intern::RESERVED);
        let modules = &self.view.tables.modules;
        frame.is_some_and(|frame| *modules.get(frame.module).name == *WAITING_MODULE)
    }
}

/// By stack, the function that is named for its samples; 0 for stacks that do not count. Of
/// what ran that is the leaf.
pub(super) fn named_leaves(selection: &Selection) -> Vec<u32> {
    let leaves = selection.leaves();
    if !selection.view().info().metric.is_waiting() {
        return leaves;
    }
    let mut own = OwnCode {
        view: selection.view(),
        known: HashMap::new(),
    };
    let mut named = |at: &ShapeAt, leaf: u32| {
        let leaf = crate::FrameId(leaf);
        if !at.is_kept() || !own.is_wait(leaf) {
            return leaf.0;
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
            .0
    };
    let stacks = selection.shape_of.iter().zip(leaves);
    stacks.map(|(at, leaf)| named(at, leaf)).collect()
}
