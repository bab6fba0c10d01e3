//! The answer about the page of a function.

use super::before::Before;
use crate::code::Library;
use crate::desk::seconds::last_seconds;
use crate::desk::{Answer, Answerable, Ask, Key};
use profile::query::{FunctionPage, NeighbourKind};
use profile::{Cancel, Function, FunctionId, View};
use std::collections::HashMap;

/// How many seconds the time line goes back, independent of the window.
pub const SECONDS: usize = 60;

/// What a page shows: a function's samples, callers, callees, heaviest stack and last seconds.
#[derive(Debug)]
pub struct PageAnswer {
    pub key: Key<FunctionId>,
    pub view: View,
    pub function: Function,
    /// Number of all samples, with and without the function.
    pub samples: u64,
    /// `None` if no sample contains the function.
    pub page: Option<FunctionPage>,
    /// The callers and callees in the baseline, if there is one.
    pub before: Option<Before>,
    /// Callers, callees and the functions of the heaviest stack, by their ids.
    pub functions: HashMap<FunctionId, Function>,
    /// Number of samples that contain the function, second by second, up to the end of the window.
    pub seconds: Vec<u64>,
}

impl PageAnswer {
    /// Answers the question. Returns `None` if it was cancelled.
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
