//! The samples of a function's callers and callees in the baseline. A function has another id
//! there, so functions are matched by name and module.

use crate::desk::Ask;
use crate::words::names;
use profile::diff::{Sides, same_function};
use profile::few;
use profile::query::{FunctionPage, Neighbour, NeighbourKind};
use profile::{Cancel, Function, FunctionId, Selection, View};
use std::collections::HashMap;
use std::sync::Arc;

/// How many samples each caller and callee had in the baseline.
#[derive(Debug)]
pub struct Before {
    pub sides: Sides,
    pub callers: Neighbours,
    pub callees: Neighbours,
}

/// The samples of all callers, or of all callees, in the baseline.
#[derive(Debug, Default)]
pub struct Neighbours {
    samples: HashMap<NeighbourKind, u64>,
    /// Callers or callees that exist only in the baseline, most samples first.
    pub gone: Vec<(String, u64)>,
}

/// Identifies a caller or callee on both sides of the comparison.
#[derive(PartialEq, Eq, Hash)]
enum Known {
    /// Name and module of a function.
    Function(Arc<str>, Arc<str>),
    /// A neighbour that is not a function.
    Other(NeighbourKind),
}

impl Before {
    /// Returns `None` if there is no baseline, or if it was cancelled.
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
    /// Returns the samples of a caller or callee in the baseline; 0 if it is new.
    pub fn of(&self, kind: NeighbourKind) -> u64 {
        self.samples.get(&kind).copied().unwrap_or(0)
    }

    /// Matches the neighbours in the baseline with the present ones:
    /// 1. The samples in the baseline are summed by name and module, because two functions may have
    ///    both in common.
    /// 2. Each present neighbour takes the sum of its name and module; the first of several takes
    ///    all of it.
    /// 3. Names that no present neighbour has taken are gone.
    fn new(before: &[Neighbour], then: &View, now: &[Neighbour], today: &View) -> Self {
        let mut was: HashMap<Known, u64> = HashMap::new();
        for neighbour in before {
            *was.entry(known(neighbour.kind, then)).or_default() += neighbour.samples;
        }
        let samples = now
            .iter()
            .filter_map(|neighbour| {
                let samples = was.remove(&known(neighbour.kind, today))?;
                Some((neighbour.kind, samples))
            })
            .collect();
        let mut gone: Vec<(String, u64)> = was
            .into_iter()
            .map(|(known, samples)| (known.words(), samples))
            .collect();
        few::sort_by(&mut gone, |a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        Neighbours { samples, gone }
    }
}

impl Known {
    /// Returns the name for the sentence about what is gone.
    fn words(&self) -> String {
        match self {
            Known::Function(name, _) => name.to_string(),
            Known::Other(NeighbourKind::Own) => "(self)".into(),
            Known::Other(NeighbourKind::Stopped(ending)) => names::stopped(*ending),
            Known::Other(_) => "(not called)".into(),
        }
    }
}

/// Returns what identifies a caller or callee in two profiles: name and module, because its id
/// differs.
fn known(kind: NeighbourKind, view: &View) -> Known {
    match kind {
        NeighbourKind::Function(id) => {
            let function = view.function(id);
            Known::Function(function.name, function.module)
        }
        other => Known::Other(other),
    }
}
