//! What is found for the page of a function.

use super::before::Before;
use crate::code::Library;
use crate::desk::seconds::last_seconds;
use crate::desk::{Answer, Answerable, Ask, Key};
use profile::query::{FunctionPage, NeighbourKind};
use profile::{Cancel, Function, FunctionId, View};
use std::collections::HashMap;

/// How many seconds the time line goes back, whatever the window is.
pub const SECONDS: usize = 60;

/// What a page shows: a function's samples, callers, callees, heaviest stack and last seconds.
#[derive(Debug)]
pub struct PageAnswer {
    pub key: Key<FunctionId>,
    pub view: View,
    pub function: Function,
    /// All samples, with or without the function.
    pub samples: u64,
    /// `None` if no sample has the function.
    pub page: Option<FunctionPage>,
    /// What it was in the baseline, while what differs from it is shown.
    pub before: Option<Before>,
    /// Callers, callees and the functions of the heaviest stack, by their numbers.
    pub functions: HashMap<FunctionId, Function>,
    /// Samples with the function, second by second, up to the window's end.
    pub seconds: Vec<u64>,
}

impl PageAnswer {
    /// `None` if it was cancelled.
    pub fn new(ask: Ask<FunctionId>, cancel: &Cancel) -> Option<Self> {
        let id = ask.view.function_of(ask.key.what);
        let selection = ask.select(cancel)?;
        let page = selection.page(id, cancel).ok()?;
        let functions = page.as_ref().map_or_else(HashMap::new, |page| {
            let beside = page
                .callers
                .iter()
                .chain(&page.callees)
                .filter_map(|neighbour| match neighbour.kind {
                    NeighbourKind::Function(id) => Some(id),
                    NeighbourKind::Root | NeighbourKind::Stopped(_) | NeighbourKind::Own => None,
                });
            let all = beside.chain(page.heaviest.iter().copied());
            all.map(|id| (id, ask.view.function(id))).collect()
        });
        let end_ns = selection.window().end_ns;
        let function = ask.view.function(id);
        let before = Before::new(&ask, &function, page.as_ref(), &selection, cancel);
        if ask.baseline().is_some() && before.is_none() {
            return None;
        }
        Some(PageAnswer {
            function,
            before,
            samples: selection.samples(),
            page,
            functions,
            seconds: last_seconds(&ask, Some(id), end_ns, SECONDS, cancel)?.samples,
            key: ask.key,
            view: ask.view,
        })
    }
}

impl Answerable for Ask<FunctionId> {
    fn answer(&self, _: &mut dyn Library, cancel: &Cancel) -> Option<Answer> {
        Some(Answer::new(PageAnswer::new(self.clone(), cancel)?))
    }
}
