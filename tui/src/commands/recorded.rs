//! Makes the snapshot of a recording, for the screen and for reports.

use engine::probes;
use engine::snapshot::{Asked, Lacks, Recording, Run, Snapshot, Source, Span, TargetState, Waited};
use profile::{Health, Selection, View};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// While a recording grows, the pause between two counts is this many times as long as the last
/// count, so that counting takes at most a fifth of the time.
pub const COUNTING_PART: u32 = 4;

/// Returns the selected samples of a recording as a snapshot. More may follow if the recording is
/// still being read.
pub fn snapshot(
    view: &View,
    notes: &[String],
    recording: Recording,
    is_over: bool,
    selection: &Selection,
) -> Snapshot {
    let info = view.info();
    let mut report = selection.report();
    recording.correct(is_over, &mut report);
    let window = report.window;
    let is_followed = !view.states().is_empty();
    let waited = is_followed.then(|| Waited::told(&mut report, view, selection.query()));
    // The times of a format without times are made up, so no elapsed time is shown.
    let elapsed_ns = if recording.lacks.time && recording.taken.is_none() {
        0
    } else {
        window.end_ns.saturating_sub(window.start_ns)
    };
    Snapshot {
        report: Arc::new(report),
        asked: Asked {
            query: selection.query().clone(),
            turn: 0,
            window: Span::All,
        },
        offered: selection.offered(),
        probes: Arc::new(probes::recorded(view, selection.query().window)),
        view: Some(view.clone()),
        health: Health {
            // A recording has only the total number of lost samples.
            lost: info.lost,
            lost_run: info.lost,
            taken_run: selection.samples(),
            notes: notes.iter().chain(&info.notes).cloned().collect(),
            ..Health::default()
        },
        run: Run {
            scope: info.scope.as_str().into(),
            target: if is_over {
                TargetState::Recorded
            } else {
                TargetState::Running
            },
            elapsed: Duration::from_nanos(elapsed_ns),
            ..Run::default()
        },
        waited: waited.map(Arc::new),
        source: Source {
            host: Arc::new(info.host.clone()),
            rate_hz: info.rates.first_hz,
            recording: Some(recording),
            ..Source::default()
        },
        ..Snapshot::default()
    }
}

/// Returns what the header shows about a file. `path` is empty if there is no file.
pub fn recording(
    name: &str,
    path: &Path,
    view: &View,
    lacks: Lacks,
    broken: Option<&str>,
) -> Recording {
    Recording {
        name: name.into(),
        path: path.into(),
        broken: broken.map(Into::into),
        taken: taken(view, SystemTime::now()),
        lacks,
    }
}

/// Returns when a recording begins, in milliseconds since 1970, and how long ago that was. None for
/// files that do not say it, whose epoch is 0. Clocks of two machines differ, so a time in the
/// future counts as now.
fn taken(view: &View, now: SystemTime) -> Option<(u64, Duration)> {
    let begin_ms = view.begin_ns()? / 1_000_000;
    let epoch_ms = view.info().epoch_unix_ms;
    let taken_ms = begin_ms.checked_add_signed(epoch_ms)?;
    if epoch_ms <= 0 {
        return None;
    }
    let then = UNIX_EPOCH.checked_add(Duration::from_millis(taken_ms))?;
    Some((taken_ms, now.duration_since(then).unwrap_or_default()))
}
