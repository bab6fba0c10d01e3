//! A *state* is what a user has to know about the whole screen before reading it: that it is
//! frozen, that the target has ended, that something is missing. The screen shows the most
//! important state in one line.

use crate::app::App;
use crate::knobs::CountedAlone;
use crate::words::held::{self, Deadlock};
use engine::snapshot::{MachineState, Snapshot, TargetState};
use profile::Ending;
use std::sync::Arc;
use std::time::Duration;

/// The state in the line above the view.
#[derive(Debug, Clone, PartialEq)]
pub enum StateLine {
    /// Sampling failed, for this reason.
    Failed(String),
    /// The target has ended.
    Exited {
        /// The name of the target, and how it ended.
        words: String,
        /// The time of its end, on the clock of the samples.
        at_ns: u64,
    },
    /// The screen has been frozen for this long, while this many samples came in.
    Frozen {
        ago: Duration,
        newer: u64,
    },
    /// The terminal took this long to read a frame.
    Behind(Duration),
    /// No row matches the pattern of the search.
    NoMatch {
        pattern: String,
        rows: usize,
    },
    /// Threads wait for each other.
    Deadlock(Deadlock),
    Idle,
    /// The processes that the scope is narrowed to have ended.
    Ended(Arc<str>),
    /// A signal or a debugger has stopped the target.
    Stopped,
    /// The filter drops all of these samples.
    KeepsNothing {
        offered: u64,
    },
    /// Samples were lost.
    Lost {
        lost: u64,
        taken: u64,
    },
    /// This many stacks ended early, most of them for this cause.
    Cut {
        cut: u64,
        stacks: u64,
        cause: Ending,
    },
    /// The recording is incomplete. The text says how that is known.
    Broken(String),
    /// The first of these machines sends no more samples, for this reason, and neither do this many
    /// others.
    Gone {
        machine: Arc<str>,
        why: Arc<str>,
        others: usize,
    },
    /// The samples come from a file.
    File {
        reading: bool,
        /// What the file does not contain, as a sentence.
        lacks: Option<&'static str>,
        /// When it was recorded, in seconds since 1970, and how long ago that is.
        taken: Option<(u64, Duration)>,
    },
}

/// A busy target has samples within the first second. If there are none after this time, it is
/// idle.
const IDLE_AFTER: Duration = Duration::from_secs(2);

/// With fewer stacks than this, the share of cut stacks is not meaningful and is not shown.
const STACKS_MIN: u64 = 100;

/// The share of cut stacks, in percent, from which on the line is shown.
const CUT_SHOWN_FROM: u64 = 2;
/// The share below which the line disappears. It is lower, so that the line does not flicker.
const CUT_HIDDEN_BELOW: u64 = 1;

impl StateLine {
    /// Returns the most important state: the first one that holds, in the order of this function.
    /// Returns `None` if there is none.
    pub fn of(app: &App) -> Option<StateLine> {
        let snapshot = &app.shown;
        of_target(&snapshot.run.target)
            .or_else(|| of_freeze(app))
            .or_else(|| app.terminal.behind.map(StateLine::Behind))
            .or_else(|| ended(app))
            .or_else(|| snapshot.run.is_stopped.then_some(StateLine::Stopped))
            .or_else(|| no_match(app))
            .or_else(|| deadlock(snapshot))
            .or_else(|| broken(snapshot))
            .or_else(|| gone(snapshot))
            .or_else(|| keeps_nothing(app))
            .or_else(|| is_idle(snapshot).then_some(StateLine::Idle))
            .or_else(|| lost(snapshot))
            .or_else(|| app.lines.cut_shown.then(|| cut(snapshot)).flatten())
            .or_else(|| file(snapshot))
    }
}

/// Whether the state line says that stacks are cut: their share is above a limit, which is lower if
/// the line already says so (`shown`).
pub fn shows_cut(snapshot: &Snapshot, shown: bool) -> bool {
    let completeness = &snapshot.report.completeness;
    let stacks = completeness.user_stacks;
    let cut = stacks.saturating_sub(completeness.whole);
    let limit = if shown {
        CUT_HIDDEN_BELOW
    } else {
        CUT_SHOWN_FROM
    };
    stacks >= STACKS_MIN && cut * 100 >= stacks * limit
}

/// Returns the state for threads that wait for each other. Recordings have none.
fn deadlock(snapshot: &Snapshot) -> Option<StateLine> {
    let waited = snapshot.waited.as_deref()?;
    held::deadlocks(waited)
        .into_iter()
        .next()
        .map(StateLine::Deadlock)
}

fn of_target(target: &TargetState) -> Option<StateLine> {
    match target {
        TargetState::Failed(why) => Some(StateLine::Failed(why.clone())),
        TargetState::Exited { words, at_ns } => Some(StateLine::Exited {
            words: words.clone(),
            at_ns: *at_ns,
        }),
        TargetState::Starting | TargetState::Running | TargetState::Recorded => None,
    }
}

fn of_freeze(app: &App) -> Option<StateLine> {
    let frozen = app.feed.freezing.frozen.as_ref()?;
    let newest = frozen.waiting.as_ref().unwrap_or(&app.shown);
    Some(StateLine::Frozen {
        ago: app.now.saturating_sub(frozen.since),
        newer: newest
            .health
            .taken_run
            .saturating_sub(app.shown.health.taken_run),
    })
}

/// Returns the state for processes that have ended. In a recording nearly all have, so that it does
/// not apply there.
fn ended(app: &App) -> Option<StateLine> {
    let narrowed = app.knobs.scope.last()?;
    let view = app.shown.view.as_ref()?;
    if app.shown.run.target != TargetState::Running || app.shown.source.recording.is_some() {
        return None;
    }
    let have_ended = match &narrowed.part {
        CountedAlone::Processes(processes) => {
            processes.iter().all(|process| view.has_ended(*process))
        }
        CountedAlone::Threads(threads) => {
            threads.iter().all(|(process, _)| view.has_ended(*process))
        }
        CountedAlone::Families(_) | CountedAlone::Hosts(_) => false,
    };
    have_ended.then(|| StateLine::Ended(Arc::clone(&narrowed.words)))
}

fn no_match(app: &App) -> Option<StateLine> {
    let found = app.find()?;
    (found.rows == 0 && found.of > 0).then(|| StateLine::NoMatch {
        pattern: found.find.text.clone(),
        rows: found.of,
    })
}

fn keeps_nothing(app: &App) -> Option<StateLine> {
    let shown = &app.shown;
    let is_empty = shown.report.samples == 0 && !shown.asked.query.filter.is_empty();
    (is_empty && shown.offered > 0).then_some(StateLine::KeepsNothing {
        offered: shown.offered,
    })
}

fn is_idle(snapshot: &Snapshot) -> bool {
    snapshot.report.samples == 0
        && matches!(
            snapshot.run.target,
            TargetState::Running | TargetState::Recorded
        )
        && snapshot.run.elapsed >= IDLE_AFTER
        // Just after a mark was set there are no samples yet.
        && (snapshot.asked.turn == 0 || snapshot.report.window.seconds() >= IDLE_AFTER.as_secs_f64())
}

fn lost(snapshot: &Snapshot) -> Option<StateLine> {
    let lost = snapshot.health.lost;
    (lost > 0).then_some(StateLine::Lost {
        lost,
        taken: snapshot.report.samples,
    })
}

fn broken(snapshot: &Snapshot) -> Option<StateLine> {
    let broken = snapshot.source.recording.as_ref()?.broken.as_ref()?;
    Some(StateLine::Broken(broken.to_string()))
}

fn gone(snapshot: &Snapshot) -> Option<StateLine> {
    let machines = snapshot.source.machines.iter();
    let mut gone = machines.filter_map(|machine| match &machine.state {
        MachineState::Gone(why) => Some((machine, why)),
        MachineState::Connecting | MachineState::Sampling => None,
    });
    let (machine, why) = gone.next()?;
    Some(StateLine::Gone {
        machine: Arc::clone(&machine.name),
        why: Arc::clone(why),
        others: gone.count(),
    })
}

/// Returns the state of a file. Machines that are sampled now are not a file.
fn file(snapshot: &Snapshot) -> Option<StateLine> {
    if !snapshot.source.machines.is_empty() {
        return None;
    }
    let recording = snapshot.source.recording.as_ref()?;
    Some(StateLine::File {
        reading: snapshot.run.target == TargetState::Running,
        lacks: match (recording.lacks.people, recording.lacks.time) {
            (true, _) => Some("It has no times and no numbers of processes and threads"),
            (false, true) => Some("It does not say when a sample was taken"),
            (false, false) => None,
        },
        taken: recording.taken.map(|(ms, ago)| (ms / 1000, ago)),
    })
}

fn cut(snapshot: &Snapshot) -> Option<StateLine> {
    let completeness = &snapshot.report.completeness;
    let (cause, _) = completeness
        .endings
        .iter()
        .filter(|(ending, _)| ending.is_user_stack() && !ending.is_whole())
        .max_by_key(|(_, count)| *count)?;
    Some(StateLine::Cut {
        cut: completeness.user_stacks.saturating_sub(completeness.whole),
        stacks: completeness.user_stacks,
        cause: *cause,
    })
}
