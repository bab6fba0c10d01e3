//! What is found for the map of time.

use crate::code::Library;
use crate::desk::{Answer, Answerable, Ask, Key};
use profile::diff::{Apart, apart};
use profile::query::{HeatBy, HeatMap, HeatRows};
use profile::{Cancel, FunctionId, Query, RateChange, TimeRange};
use std::sync::Arc;

/// Says which map is wanted: two equal values ask for the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeWanted {
    /// What the rows are, and how many there may be.
    pub by: HeatBy,
    pub rows: usize,
    /// Whose samples are counted a second time, by themselves.
    pub function: Option<FunctionId>,
    /// A stretch of time to be compared with the rest, in nanoseconds; its second end is not
    /// part of it.
    pub stretch: Option<(u64, u64)>,
}

/// A map of all time that is kept, and what was asked beside it.
#[derive(Debug)]
pub struct TimeAnswer {
    pub key: Key<TimeWanted>,
    pub rows: HeatRows,
    /// Samples by second and row.
    pub all: HeatMap,
    /// The samples of the function that was asked for, by second and row, and its name.
    pub own: Option<(HeatMap, Arc<str>)>,
    /// What is different in the stretch, compared with the rest; None if no stretch was asked
    /// for.
    pub apart: Option<Vec<Apart>>,
    /// What the rate was changed to, and when.
    pub rate_changes: Vec<RateChange>,
    /// The wall clock, in milliseconds, where that of the samples is 0.
    pub epoch_unix_ms: i64,
}

impl TimeAnswer {
    /// Counts the map; None if it was cancelled. The window of the query is ignored: the map
    /// shows all time, so that other parts of it can be marked.
    pub fn new(ask: Ask<TimeWanted>, cancel: &Cancel) -> Option<Self> {
        let query = Query {
            window: TimeRange::ALL,
            ..ask.query().clone()
        };
        let TimeWanted {
            by,
            rows,
            function,
            stretch,
        } = ask.key.what;
        let selection = ask.view.select(&query, cancel).ok()?;
        let rows = selection.heat_rows(by, rows);
        let own = function.map(|id| {
            let name = ask.view.function(ask.view.function_of(id)).name;
            (selection.heat(&rows, Some(id)), name)
        });
        let apart = match stretch {
            Some((start_ns, end_ns)) => {
                let query = Query {
                    // A range begins after its start and ends with its end.
                    window: TimeRange::between(
                        start_ns.saturating_sub(1),
                        end_ns.saturating_sub(1),
                    ),
                    ..query
                };
                Some(apart(&selection.part(&query, cancel).ok()?, &selection))
            }
            None => None,
        };
        Some(TimeAnswer {
            apart,
            all: selection.heat(&rows, None),
            rows,
            own,
            rate_changes: ask.view.info().rates.changes.clone(),
            epoch_unix_ms: ask.view.info().epoch_unix_ms,
            key: ask.key,
        })
    }
}

impl Answerable for Ask<TimeWanted> {
    fn answer(&self, _: &mut dyn Library, cancel: &Cancel) -> Option<Answer> {
        Some(Answer::new(TimeAnswer::new(self.clone(), cancel)?))
    }
}
