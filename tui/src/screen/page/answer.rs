//! What is found for the page of a function.

use super::before::Before;
use crate::screen::question::{Ask, Key};
use profile::query::{FunctionPage, HeatRows, NeighbourKind};
use profile::{Cancel, Function, FunctionId, Query, TimeRange, View};
use std::collections::HashMap;
use std::time::Duration;

/// How far back the time line goes, whatever the window is.
pub const SECONDS: usize = 60;

#[derive(Debug)]
pub struct PageAnswer {
    pub key: Key<FunctionId>,
    pub view: View,
    pub function: Function,
    /// All samples, with or without the function.
    pub samples: u64,
    /// Nothing if no sample has the function.
    pub page: Option<FunctionPage>,
    /// What it was in the baseline, while what differs from it is shown.
    pub before: Option<Before>,
    /// Everything that the page names.
    pub functions: HashMap<FunctionId, Function>,
    /// Samples with the function, second by second, up to the window's end.
    pub seconds: Vec<u64>,
}

impl PageAnswer {
    /// Nothing if it was cancelled.
    pub fn new(ask: Ask<FunctionId>, cancel: &Cancel) -> Option<Self> {
        let id = ask.view.function_of(ask.key.what);
        let selection = ask.select(cancel)?;
        let page = selection.page(id, cancel).ok()?;
        let functions = page.as_ref().map_or_else(HashMap::new, |page| {
            let beside = page.callers.iter().chain(&page.callees);
            let beside = beside.filter_map(|neighbour| match neighbour.kind {
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
            seconds: seconds(&ask, id, end_ns, cancel)?,
            key: ask.key,
            view: ask.view,
        })
    }
}

fn seconds(
    ask: &Ask<FunctionId>,
    id: FunctionId,
    end_ns: u64,
    cancel: &Cancel,
) -> Option<Vec<u64>> {
    let query = Query {
        window: TimeRange::last(Duration::from_secs(SECONDS as u64), end_ns),
        ..ask.query().clone()
    };
    let selection = ask.view.select(&query, cancel).ok()?;
    let heat = selection.heat(&HeatRows::parts(1), Some(id));
    // Seconds without any sample at the end are no columns.
    let last = end_ns / 1_000_000_000;
    let first = (last + 1).saturating_sub(SECONDS as u64);
    let mut seconds = vec![0; SECONDS];
    for column in 0..heat.columns() {
        let second = heat.first_second + column as u64;
        if let Some(at) = second.checked_sub(first)
            && let Some(cell) = seconds.get_mut(at as usize)
        {
            *cell = heat.cell(column, 0);
        }
    }
    Some(seconds)
}
