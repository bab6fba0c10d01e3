//! What the callers and callees of a function had in the baseline. They are the
//! same by name and module, as functions are that have another number there.

use crate::desk::Ask;
use profile::diff::{Sides, same_function};
use profile::query::{FunctionPage, Neighbour, NeighbourKind};
use profile::{Cancel, Function, FunctionId, Selection, View};
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug)]
pub struct Before {
    pub sides: Sides,
    pub callers: Neighbours,
    pub callees: Neighbours,
}

/// One side of a page as it was.
#[derive(Debug, Default)]
pub struct Neighbours {
    samples: HashMap<NeighbourKind, u64>,
    /// What only the baseline has, most samples first.
    pub gone: Vec<(String, u64)>,
}

/// What tells a neighbour on either side.
#[derive(PartialEq, Eq, Hash)]
enum Known {
    Function(Arc<str>, Arc<str>),
    Other(NeighbourKind),
}

impl Before {
    /// `None` if there is no baseline, or if it was cancelled.
    pub fn new(
        ask: &Ask<FunctionId>,
        function: &Function,
        page: Option<&FunctionPage>,
        now: &Selection,
        cancel: &Cancel,
    ) -> Option<Self> {
        let selection = ask.baseline()?.select(&ask.view, cancel)?;
        let was = match same_function(&selection, function) {
            Some(id) => selection.page(id, cancel).ok()?,
            None => None,
        };
        let side = |of: fn(&FunctionPage) -> &[Neighbour]| {
            let now = page.map_or(&[][..], of);
            let before = was.as_ref().map_or(&[][..], of);
            Neighbours::new(before, selection.view(), now, &ask.view)
        };
        Some(Before {
            sides: Sides::of(&selection, now),
            callers: side(|page| &page.callers),
            callees: side(|page| &page.callees),
        })
    }
}

impl Neighbours {
    /// 0 for what is new.
    pub fn of(&self, kind: NeighbourKind) -> u64 {
        self.samples.get(&kind).copied().unwrap_or(0)
    }

    fn new(before: &[Neighbour], then: &View, now: &[Neighbour], today: &View) -> Self {
        let mut was: HashMap<Known, u64> = HashMap::new();
        for neighbour in before {
            *was.entry(known(neighbour.kind, then)).or_default() += neighbour.samples;
        }
        let samples = now.iter().filter_map(|neighbour| {
            let samples = was.remove(&known(neighbour.kind, today))?;
            Some((neighbour.kind, samples))
        });
        let samples = samples.collect();
        let mut gone: Vec<(String, u64)> = was
            .into_iter()
            .map(|(known, samples)| (known.words(), samples))
            .collect();
        gone.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        Neighbours { samples, gone }
    }
}

impl Known {
    fn words(&self) -> String {
        match self {
            Known::Function(name, _) => name.to_string(),
            Known::Other(NeighbourKind::Own) => "(self)".into(),
            Known::Other(NeighbourKind::Stopped(ending)) => {
                format!("[stopped: {}]", ending.label())
            }
            Known::Other(_) => "(not called)".into(),
        }
    }
}

fn known(kind: NeighbourKind, view: &View) -> Known {
    match kind {
        NeighbourKind::Function(id) => {
            let function = view.function(id);
            Known::Function(function.name, function.module)
        }
        other => Known::Other(other),
    }
}
