//! The *status* of the whole app in words: where its numbers come from, what they are shares of,
//! the state, and notices. The screen draws it, the plain dialog prints it.

/// The machine, and how it is sampled.
pub mod place;
/// What is counted: the window, the filter, the unit.
pub mod query;
/// The state that stands above every view, such as that there are no samples.
pub mod state;
/// What numbers are shares of, and how complete the samples are.
pub mod trust;

use crate::app::App;
use crate::notice::Notice;
use crate::words;
use crate::words::fit::Segment;
use engine::snapshot::Snapshot;
use std::time::Duration;

/// Returns the sentence of a notice, with the keys that are useful then.
pub fn notice(app: &App, notice: &Notice) -> String {
    words::notice::sentence(notice, &app.context(), app.find(), app.terminal.is_remote)
}

/// Returns what numbers are shares of and what is counted, as one line, for front ends that have no
/// screen.
pub fn base(app: &App) -> String {
    let join = |segments: Vec<Segment>| {
        let texts = segments.iter().map(Segment::text);
        let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        texts.join(", ")
    };
    format!(
        "{}; {}",
        join(trust::segments(app)),
        join(query::segments(app).0)
    )
}

/// Whether a number was not measured yet: it is 0 in the first second of the run.
fn is_unmeasured(snapshot: &Snapshot, number: f64) -> bool {
    number == 0.0 && snapshot.run.elapsed < Duration::from_secs(1)
}
