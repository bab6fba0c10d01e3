//! The answer about the map of time.

use crate::code::Library;
use crate::desk::{Answer, Answerable, Ask, Key};
use profile::diff::{Apart, apart};
use profile::query::{HeatBy, HeatMap, HeatRows};
use profile::{Cancel, FunctionId, Query, RateChange, TimeRange};
use std::sync::Arc;

/// Which map is wanted. Two equal values ask for the same map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeWanted {
    /// What the rows stand for.
    pub by: HeatBy,
    /// Maximum number of rows.
    pub rows: usize,
    /// The function whose samples are also counted separately.
    pub function: Option<FunctionId>,
    /// A stretch of time that is compared with the rest, in nanoseconds. The end is excluded.
    pub stretch: Option<(u64, u64)>,
}

/// A map of all time that is kept, and what was asked besides it.
#[derive(Debug)]
pub struct TimeAnswer {
    pub key: Key<TimeWanted>,
    /// What each row stands for.
    pub rows: HeatRows,
    /// Samples by second and row.
    pub all: HeatMap,
    /// The samples of the requested function by second and row, and its name.
    pub own: Option<(HeatMap, Arc<str>)>,
    /// What differs between the stretch and the rest. `None` if no stretch was asked for.
    pub apart: Option<Vec<Apart>>,
    /// The changes of the sampling rate, with their times.
    pub rate_changes: Vec<RateChange>,
    /// The wall clock in milliseconds when the clock of the samples is 0.
    pub epoch_unix_ms: i64,
}

impl TimeAnswer {
    /// Counts the map. Returns `None` if it was cancelled. The window of the query is ignored: the
    /// map shows all time, so that other parts of it can be marked.
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
                    // A `TimeRange` excludes its start and includes its end.
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
