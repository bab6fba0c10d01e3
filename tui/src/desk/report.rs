//! *Asks* the profile for what the engine's own report does not answer. The answer is a snapshot
//! like those of the engine, made on another thread, so that every view can draw it in the same
//! way.

use super::{Answer, Answerable, Lane};
use crate::code::Library;
use crate::knobs::Knobs;
use engine::probes::recorded;
use engine::snapshot::{BaselineLacks, People, Snapshot, TargetState, Waited};
use profile::diff::Diff;
use profile::{Cancel, Metric};
use std::sync::Arc;

/// The question for a snapshot that counts the window, filter and metric of the knobs.
#[derive(Debug, Clone)]
pub struct ReportQuestion {
    pub key: ReportKey,
    base: Arc<Snapshot>,
    knobs: Knobs,
}

/// Identifies a question and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportKey {
    /// How often knobs had been turned at the time of the question.
    pub turn: u64,
    /// The number of the engine's snapshot from which the answer is made.
    pub generation: u64,
}

/// The answer. The app shows its snapshot in place of the engine's own.
#[derive(Debug)]
pub struct ReportAnswer {
    pub key: ReportKey,
    pub snapshot: Arc<Snapshot>,
}

impl PartialEq for ReportQuestion {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for ReportQuestion {}

impl ReportQuestion {
    /// Creates the question. Returns `None` if the snapshot has no samples that can be counted
    /// again.
    pub fn new(base: &Arc<Snapshot>, knobs: &Knobs, turn: u64) -> Option<Self> {
        base.view.as_ref()?;
        Some(ReportQuestion {
            key: ReportKey {
                turn,
                generation: base.generation,
            },
            base: Arc::clone(base),
            knobs: knobs.clone(),
        })
    }

    /// Answers the question. Returns `None` if it was cancelled.
    pub fn answer(self, cancel: &Cancel) -> Option<ReportAnswer> {
        let ReportQuestion { key, base, knobs } = self;
        let query = knobs.query(base.report.window.end_ns);
        let view = base.counted_in(knobs.metric)?;
        let selection = view.select(&query, cancel).ok()?;
        let mut report = selection.report();
        // Everything that is not counted again stays as the engine published it: the host, the
        // state of the target, notes.
        let mut snapshot = (*base).clone();
        snapshot.view = Some(view.clone());
        if let Some(recording) = &snapshot.source.recording {
            recording.correct(snapshot.run.target == TargetState::Recorded, &mut report);
        }
        if !view.states().is_empty() {
            let mut waited = Waited::told(&mut report, view, &query);
            let kept_waiting = Metric::kept_waiting().name;
            let metered = base
                .metrics
                .iter()
                .find(|metered| *metered.name == *kept_waiting);
            if let Some(kept_waiting) = metered.and_then(|metered| metered.view.as_ref()) {
                waited.learn_ends(kept_waiting, &query);
            }
            snapshot.waited = Some(Arc::new(waited));
        } else if let Some(waited) = &snapshot.waited {
            waited.add_to(&mut report, view, &query);
        }
        // Lost samples do not belong to a process or function, so that only the window narrows
        // them.
        if let Some(losses) = &snapshot.run.losses {
            let window = report.window;
            snapshot.health.lost = losses.between(window.start_ns, window.end_ns);
        }
        let baseline = knobs.difference();
        snapshot.comparison.baseline = baseline.map(|baseline| Arc::new(baseline.beside(&query)));
        // The comparison in the engine's snapshot belongs to other samples.
        (snapshot.comparison.functions, snapshot.comparison.people) = (None, None);
        snapshot.comparison.lacks = None;
        if let Some(baseline) = &snapshot.comparison.baseline {
            let before = baseline.select(selection.view(), cancel)?;
            let mut diff = Diff::new(&before, &selection);
            diff.compare_time();
            snapshot.comparison.functions = Some(Arc::new(diff));
            let people = People::new(baseline, &before, &selection);
            snapshot.comparison.people = Some(Arc::new(people));
            let lacks = BaselineLacks::new(baseline, &before, &snapshot);
            snapshot.comparison.lacks = Some(Arc::new(lacks));
        }
        snapshot.offered = selection.offered();
        if snapshot.source.recording.is_some() {
            // Live probes count on, independent of the window.
            snapshot.probes = Arc::new(recorded(view, query.window));
        }
        snapshot.report = Arc::new(report);
        snapshot.asked.query = query;
        snapshot.asked.turn = key.turn;
        Some(ReportAnswer {
            key,
            snapshot: Arc::new(snapshot),
        })
    }
}

impl Answerable for ReportQuestion {
    fn answer(&self, _: &mut dyn Library, cancel: &Cancel) -> Option<Answer> {
        Some(Answer::new(self.clone().answer(cancel)?))
    }

    fn lane(&self) -> Lane {
        Lane::Report
    }
}
