//! The *shape* of a stack: its functions, innermost first, including inlined ones, after the filter
//! has removed and folded some of them.
//!
//! Each clause is evaluated once for every function, so a stack costs one table look-up for each of
//! its steps. Clauses apply in the order in which they are written: functions that an earlier
//! clause hid do not exist for a later one.

use super::Scope;
use super::internals::Internals;
use super::plumbing::Plumbing;
use super::state::StateTest;
use crate::filter::{Action, Clause, Filter, FrameTest, SampleTest};
use crate::function::short_module;
use crate::intern::{HIDDEN, NO_STACK, StackId};
use crate::{FrameId, FrameKind, FunctionId, View};
use std::ops::Range;

/// A function on a stack, packed into a word; the highest bit is reserved for trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step(pub(super) u32);

const INLINED: u32 = 1 << 30;

impl Step {
    pub(super) fn function(self) -> FunctionId {
        FrameId(self.0 & !INLINED)
    }

    pub(super) fn is_inlined(self) -> bool {
        self.0 & INLINED != 0
    }
}

/// Builds shapes.
///
/// Used by a selection for the stacks that have samples in scope and window, and by trends for
/// those that have samples before the window.
#[derive(Debug)]
pub(super) struct Shaper<'a> {
    view: &'a View,
    /// The tests of the filter on the state of the thread.
    states: Vec<StateTest>,
    rules: Vec<Rule>,
    /// What is folded after all rules, as a rule may test these functions.
    internals: Option<Internals>,
    plumbing: Option<Plumbing>,
    /// The functions of which a stack must have at least one, by number; `None` if the scope does
    /// not require any.
    wanted: Option<Vec<bool>>,
}

/// A clause of the filter, evaluated for every function.
#[derive(Debug)]
enum Rule {
    /// Drops stacks that have such a function, or stacks that have none.
    Stacks {
        functions: Test,
        keep: bool,
    },
    /// Removes functions from stacks.
    Frames {
        functions: Test,
        hide: bool,
    },
    FoldRecursion,
}

/// Which functions match, by number, or whether a step matches by being inlined.
#[derive(Debug)]
enum Test {
    Functions(Vec<bool>),
    Inlined,
}

impl Test {
    #[inline]
    fn holds(&self, step: Step) -> bool {
        match self {
            Test::Functions(matching) => matching[step.function().0 as usize],
            Test::Inlined => step.is_inlined(),
        }
    }
}

impl<'a> Shaper<'a> {
    pub(super) fn new(view: &'a View, scope: &Scope, filter: &Filter) -> Self {
        let owners = view.tables.names.owners();
        let wanted = (!scope.functions.is_empty()).then(|| {
            let mut wanted = vec![false; owners.len()];
            for frame in &scope.functions {
                if let Some(wanted) = wanted.get_mut(view.function_of(*frame).0 as usize) {
                    *wanted = true;
                }
            }
            wanted
        });
        let rule = |clause: &Clause| {
            Some(match clause {
                Clause::Sample { .. } | Clause::ShowInternals => return None,
                Clause::FoldRecursion => Rule::FoldRecursion,
                Clause::Stack { action, test } => {
                    let functions = matching(view, test);
                    match action {
                        Action::Focus => Rule::Stacks {
                            functions,
                            keep: true,
                        },
                        Action::Exclude => Rule::Stacks {
                            functions,
                            keep: false,
                        },
                        Action::Hide => Rule::Frames {
                            functions,
                            hide: true,
                        },
                        Action::Only => Rule::Frames {
                            functions,
                            hide: false,
                        },
                    }
                }
            })
        };
        let state = |clause: &Clause| match clause {
            Clause::Sample {
                test: SampleTest::State(states),
                negated,
            } => Some(StateTest::new(view, *states, *negated)),
            _ => None,
        };
        Self {
            view,
            states: filter.clauses().iter().filter_map(state).collect(),
            rules: filter.clauses().iter().filter_map(rule).collect(),
            internals: Internals::new(view, filter),
            plumbing: Plumbing::new(view, filter),
            wanted,
        }
    }

    /// What is folded of interpreters, and of waits; `None` if nothing is.
    pub(super) fn into_folded(self) -> (Option<Internals>, Option<Plumbing>) {
        (self.internals, self.plumbing)
    }

    /// Appends a stack's shape to `arena`. Returns `false`, and appends nothing, if the filter
    /// drops the stack.
    pub(super) fn append(&self, stack: StackId, arena: &mut Vec<u32>) -> bool {
        let tables = &*self.view.tables;
        // Tests the stack as it was sampled, before anything is hidden.
        let is_in_state = |test: &StateTest| test.holds(tables.stacks.frames(stack));
        if !self.states.iter().all(is_in_state) {
            return false;
        }
        let owners = tables.names.owners();
        let start = arena.len();
        for frame in tables.stacks.frames(stack) {
            // Inlined functions are steps of the stack, though they have no frame of their own.
            for link in tables.sources.inlined_in(frame) {
                arena.push(link.function.0 | INLINED);
            }
            arena.push(owners[frame.0 as usize].0);
        }
        let kept = self.wanted.as_ref().is_none_or(|wanted| {
            let mut steps = arena[start..].iter().map(|step| Step(*step));
            steps.any(|step| wanted[step.function().0 as usize])
        });
        let kept = kept && self.rules.iter().all(|rule| rule.apply(arena, start));
        if kept && let Some(internals) = &self.internals {
            let mut functions = arena[start..].iter().map(|step| Step(*step).function());
            if internals.fold_in(&mut functions) {
                retain(arena, start, |step| !internals.is_own(step.function()));
            }
        }
        if kept && let Some(plumbing) = &self.plumbing {
            let steps = arena[start..].iter().map(|step| Step(*step));
            let Range { start: from, end } = plumbing.folded(steps.map(Step::function));
            arena.drain(start + from..start + end);
        }
        if !kept {
            arena.truncate(start);
        // The samples count, so they need a function: a row that says that everything is hidden.
        } else if arena.len() == start {
            arena.push(HIDDEN.0);
        }
        kept
    }
}

impl Rule {
    /// Applies all rules to the stack at the end of the arena; returns whether the stack is kept.
    fn apply(&self, arena: &mut Vec<u32>, start: usize) -> bool {
        match self {
            Rule::Stacks { functions, keep } => {
                let mut steps = arena[start..].iter();
                steps.any(|step| functions.holds(Step(*step))) == *keep
            }
            Rule::Frames { functions, hide } => {
                retain(arena, start, |step| functions.holds(step) != *hide);
                true
            }
            Rule::FoldRecursion => {
                fold_recursion(arena, start);
                true
            }
        }
    }
}

/// Keeps the steps from `start` on for which `keep` returns true, in their order and in place.
fn retain(arena: &mut Vec<u32>, start: usize, keep: impl Fn(Step) -> bool) {
    let mut to = start;
    for from in start..arena.len() {
        if keep(Step(arena[from])) {
            arena[to] = arena[from];
            to += 1;
        }
    }
    arena.truncate(to);
}

/// Folds recursion, direct or indirect, to one step: a→b→a→c becomes a→c.
fn fold_recursion(arena: &mut Vec<u32>, start: usize) {
    let mut folded: Vec<u32> = Vec::with_capacity(arena.len() - start);
    let mut seen: std::collections::HashMap<u32, usize> = std::collections::HashMap::new();
    // From the root on: when a function occurs again, everything since its first occurrence is
    // removed.
    for step in arena[start..].iter().rev() {
        let function = Step(*step).function().0;
        if let Some(at) = seen.get(&function) {
            for gone in folded.drain(at + 1..) {
                seen.remove(&Step(gone).function().0);
            }
        } else {
            seen.insert(function, folded.len());
            folded.push(*step);
        }
    }
    arena.truncate(start);
    arena.extend(folded.into_iter().rev());
}

/// Evaluates a test for every function.
fn matching(view: &View, test: &FrameTest) -> Test {
    if matches!(test, FrameTest::Inlined) {
        return Test::Inlined;
    }
    let owners = view.tables.names.owners();
    let functions = (0..).map(FrameId).zip(owners.iter());
    let holds = |(id, owner): (FrameId, &FunctionId)| id == *owner && matches(view, test, id);
    Test::Functions(functions.map(holds).collect())
}

/// Whether a test holds for a function; a test for inlining cannot be decided for a function alone.
pub(super) fn matches(view: &View, test: &FrameTest, id: FunctionId) -> bool {
    let tables = &*view.tables;
    let Some(frame) = view.frame(id) else {
        return false;
    };
    match test {
        FrameTest::Name(text) => match tables.names.name(id) {
            Some(name) => text.matches(name),
            None if id == NO_STACK => false,
            None => {
                let module = tables.modules.get(frame.module);
                text.matches(&format!("{}+{:#x}", module.name, frame.address))
            }
        },
        FrameTest::Module(text) => {
            let module = tables.modules.get(frame.module);
            // Users write the name that they see.
            let names = [&*module.name, &*module.path, short_module(&module.name)];
            id.0 >= crate::intern::RESERVED && names.iter().any(|name| text.matches(name))
        }
        FrameTest::File(text) => {
            let link = tables.sources.chain(id).last();
            let file = link.and_then(|link| tables.sources.file(*link));
            file.is_some_and(|file| text.matches_path(file))
        }
        FrameTest::Kernel => id.0 >= crate::intern::RESERVED && frame.kind == FrameKind::Kernel,
        FrameTest::User => id.0 >= crate::intern::RESERVED && frame.kind != FrameKind::Kernel,
        FrameTest::Jit => frame.kind == FrameKind::Jit,
        FrameTest::Python => frame.kind == FrameKind::Python,
        FrameTest::Inlined => false,
    }
}
