//! A *query* counts the samples of a window; each kind of row has its module.
//!
//! - [`tally`]: one pass over the samples: by stack, by thread, by ending
//! - [`functions`]: one pass over the stacks that occurred: self, total, names
//! - [`threads`]: processes and threads, each with its top function
//! - [`trend`]: the last ten seconds, second by second
//!
//! Samples are looked at twice and each stack once, however many samples share
//! it, which is what makes a million samples a matter of tens of milliseconds.

mod functions;
mod tally;
mod threads;
mod trend;

use crate::store::{Stamps, Store};
use crate::{Report, Window};
use std::time::Duration;
use tally::Tally;
use trend::Trends;

pub(crate) fn report(store: &Store, window: Duration, now_ns: u64) -> Report {
    let stamps = Stamps::new(window, now_ns);
    let tally = Tally::collect(store, stamps);
    let counts = functions::count(store, &tally);
    let trends = Trends::collect(store, now_ns);
    let mut completeness = tally.completeness();
    counts.complete(store, &mut completeness);
    let functions = functions::rows(store, &counts, &trends);
    let people = threads::rows(store, stamps, &tally, &functions, &trends);
    Report {
        generation: 0,
        window: covered(store, window, now_ns),
        samples: tally.samples,
        samples_kept: store.history.samples(),
        kept_seconds: store.kept_seconds(),
        completeness,
        functions: functions.rows,
        owners: store.names.owners().clone(),
        processes: people.processes,
        threads: people.threads,
    }
}

/// The part of the window that history covers.
fn covered(store: &Store, window: Duration, now_ns: u64) -> Window {
    let window_ns = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
    let begin_ns = store.begin_ns().unwrap_or(now_ns);
    Window {
        start_ns: now_ns.saturating_sub(window_ns).max(begin_ns).min(now_ns),
        end_ns: now_ns,
    }
}
