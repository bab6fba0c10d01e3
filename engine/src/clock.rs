//! Decides when the next snapshot is due, and which time it covers.
//!
//! A screen gets a snapshot at each refresh, of the window that ends now. Reports cover the time of
//! the run piece by piece: each begins where the one before ended.
//!
//! ```text
//! samples complete until ──────────────────────────────►│
//! reports:   │── delay ──│── delay ──│── delay … (not yet)
//!            start       end: due when samples are complete until here,
//!                        and names have come or were waited for
//! ```

use crate::settings::{AwaitNames, Schedule};
use crate::snapshot::Span;
use std::time::{Duration, Instant};

/// Resolution of the times of samples.
pub const STEP_NS: u64 = 10_000_000;

/// How often the screen is refreshed in the first seconds, while names are still coming in.
const EARLY_REFRESH: Duration = Duration::from_millis(200);
/// How much sooner a snapshot of a screen may come, if that is a twentieth of the time between two or
/// less: on an idle machine samples come once a second, and a snapshot just before them would show
/// old ones.
const SOONER: Duration = Duration::from_millis(50);
/// Duration of the first seconds.
pub const EARLY: Duration = Duration::from_secs(3);

/// How long a report waits for the names of its frames, but no longer than half of the time that it
/// covers: reports should be on time, and the next one will have the names that this one lacks.
const NAMES_WAIT: Duration = Duration::from_millis(200);
/// How long the last report waits for names, as no other follows. A report of ten seconds is ready
/// after eleven.
const NAMES_WAIT_LAST: Duration = Duration::from_secs(1);
/// A run shorter than this has hardly begun to read files when it is over: its last report waits
/// for names until this time after the beginning of the run.
const NAMES_TIME_MIN: Duration = Duration::from_secs(5);
/// How long a report waits for names if the user ended the run, and is waiting.
const NAMES_WAIT_ENDED: Duration = Duration::from_millis(200);

/// A snapshot that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// The end of the time that it covers, on the clock of the samples.
    pub end_ns: u64,
    /// Length of the time that it covers.
    pub window: Duration,
}

/// The stages of a screen at the beginning of a run. Each is shown as soon as it is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    Nothing,
    Samples,
    Names,
}

/// Decides when snapshots are due.
#[derive(Debug)]
pub struct SnapshotClock {
    schedule: Schedule,
    started: Instant,
    /// When the last snapshot was published; `None` makes the next one due at once.
    published: Option<Instant>,
    /// Where the next report begins; `None` before the first one.
    report_start_ns: Option<u64>,
    /// Number of reports that were made.
    reports: u64,
    /// When the time of the next report was over.
    report_over: Option<Instant>,
    /// The stage that the last snapshot of a screen had reached.
    shown: Progress,
}

/// The state of the run, as far as the clock needs it.
#[derive(Debug, Clone, Copy)]
pub struct ClockInput {
    /// Samples up to this time have arrived.
    pub complete_until_ns: u64,
    /// Where the history begins, on the clock of the samples.
    pub begin_ns: u64,
    /// Number of frames that wait for a name.
    pub names_outstanding: usize,
    /// Whether there are any samples.
    pub has_samples: bool,
    /// Whether there are any names.
    pub has_names: bool,
    /// Whether no more samples will come.
    pub ended: bool,
    /// Whether the report is made at once with what is known, because the user ended the run and is
    /// waiting.
    pub is_hurried: bool,
}

impl SnapshotClock {
    /// Starts with no snapshot made: the first one of a screen is due at once.
    pub fn new(schedule: Schedule) -> Self {
        Self {
            schedule,
            started: Instant::now(),
            published: None,
            report_start_ns: None,
            reports: 0,
            report_over: None,
            shown: Progress::Nothing,
        }
    }

    /// Changes the window of a screen, which is shown at once. Reports keep theirs.
    pub fn set_window(&mut self, span: Span) {
        if let Schedule::Live { window, .. } = &mut self.schedule {
            *window = span;
            self.published = None;
        }
    }

    /// Makes the next snapshot of a screen due at once. Has no effect on reports.
    pub fn hurry(&mut self) {
        self.published = None;
    }

    /// The current window.
    pub fn window(&self) -> Span {
        match self.schedule {
            Schedule::Live { window, .. } => window,
            Schedule::Reports { delay, .. } => Span::Seconds(delay.as_secs_f64().ceil() as u32),
        }
    }

    /// Whether all requested reports have been made.
    pub fn is_finished(&self) -> bool {
        matches!(self.schedule, Schedule::Reports { count: Some(count), .. } if self.reports >= count)
    }

    /// Whether the next report is the last one.
    fn is_last(&self) -> bool {
        matches!(self.schedule, Schedule::Reports { count: Some(count), .. } if self.reports + 1 >= count)
    }

    /// Returns the snapshot that is due now; `None` if none is.
    pub fn due(&mut self, state: &ClockInput) -> Option<Due> {
        match self.schedule {
            Schedule::Live { window, refresh } => self.live_due(state, window, refresh),
            Schedule::Reports { delay, names, .. } => self.report_due(state, delay, names),
        }
    }

    /// Returns the snapshot of a screen, if the last one is as old as the refresh interval, which
    /// is shorter in the first seconds.
    fn live_due(&mut self, state: &ClockInput, span: Span, refresh: Duration) -> Option<Due> {
        let refresh = self.refresh(refresh);
        let progress = match (state.has_samples, state.has_names) {
            (_, true) => Progress::Names,
            (true, false) => Progress::Samples,
            (false, false) => Progress::Nothing,
        };
        let is_fresh =
            |published: Instant| published.elapsed() + SOONER.min(refresh / 20) < refresh;
        if progress <= self.shown && self.published.is_some_and(is_fresh) {
            return None;
        }
        self.shown = self.shown.max(progress);
        self.published = Some(Instant::now());
        let window = match span {
            Span::Seconds(seconds) => Duration::from_secs(u64::from(seconds)),
            Span::All => Duration::MAX,
        };
        Some(Due {
            end_ns: state.complete_until_ns,
            window,
        })
    }

    /// Returns the next report when it is due. Reports follow each other without a gap. One is made
    /// when all of its samples have arrived and have names, or have waited long enough for them.
    fn report_due(
        &mut self,
        state: &ClockInput,
        delay: Duration,
        names: AwaitNames,
    ) -> Option<Due> {
        if self.is_finished() || state.complete_until_ns == 0 {
            return None;
        }
        let (start, end) = self.next_report(state, delay);
        self.report_start_ns = Some(start);
        // Samples may still come, or there is no time to report.
        if state.complete_until_ns < end && !state.ended || end <= start {
            return None;
        }
        let over = *self.report_over.get_or_insert_with(Instant::now);
        let is_last = self.is_last() || state.ended && state.complete_until_ns <= end;
        let wait = match names {
            _ if state.is_hurried => NAMES_WAIT_ENDED,
            _ if is_last => {
                let ran = Duration::from_nanos(end.saturating_sub(state.begin_ns));
                NAMES_TIME_MIN.saturating_sub(ran).max(NAMES_WAIT_LAST)
            }
            AwaitNames::Each => NAMES_WAIT.min(delay / 2),
            AwaitNames::Last => Duration::ZERO,
        };
        if state.names_outstanding > 0 && over.elapsed() < wait {
            return None;
        }
        self.report_over = None;
        self.report_start_ns = Some(end);
        self.reports += 1;
        // The store counts whole steps up to this time, excluding the one that begins at the end.
        Some(Due {
            end_ns: end - 1,
            window: Duration::from_nanos(end - start),
        })
    }

    /// Returns where the next report begins and ends, in whole steps, like the times of samples:
    /// otherwise a sample could be in two reports or in none.
    fn next_report(&self, state: &ClockInput, delay: Duration) -> (u64, u64) {
        let begin = state.begin_ns / STEP_NS * STEP_NS;
        let start = self.report_start_ns.unwrap_or(begin);
        let full = start + (delay.as_nanos() as u64).max(STEP_NS) / STEP_NS * STEP_NS;
        if state.ended && state.complete_until_ns < full {
            let end = state.complete_until_ns.next_multiple_of(STEP_NS);
            (start, end)
        } else {
            (start, full)
        }
    }

    /// Whether all samples of the next report, which waits for names, have arrived since
    /// [`SnapshotClock::due`] was last called. Always false for a screen.
    pub fn has_just_ended(&self, state: &ClockInput) -> bool {
        match self.schedule {
            Schedule::Live { .. } => false,
            Schedule::Reports { delay, names, .. } => {
                let (_, end) = self.next_report(state, delay);
                let is_last = self.is_last() || state.ended;
                let waits = names == AwaitNames::Each || is_last;
                let is_complete = state.complete_until_ns >= end || state.ended;
                waits && is_complete && self.report_over.is_none() && !self.is_finished()
            }
        }
    }

    /// Returns the time until the next snapshot of a screen is due. Reports are due when their samples
    /// have arrived, at any time.
    pub fn time_to_next(&self) -> Duration {
        match (&self.schedule, self.published) {
            (Schedule::Live { refresh, .. }, Some(published)) => {
                self.refresh(*refresh).saturating_sub(published.elapsed())
            }
            (Schedule::Live { .. }, None) => Duration::ZERO,
            (Schedule::Reports { .. }, _) => Duration::MAX,
        }
    }

    /// Returns the time between two snapshots of a screen, which is shorter in the first seconds.
    fn refresh(&self, refresh: Duration) -> Duration {
        let is_early = self.started.elapsed() < EARLY;
        if is_early {
            refresh.min(EARLY_REFRESH)
        } else {
            refresh
        }
    }

    /// Whether everything up to that time was reported.
    pub fn is_caught_up(&self, complete_until_ns: u64) -> bool {
        complete_until_ns == 0
            || self
                .report_start_ns
                .is_some_and(|start_ns| start_ns >= complete_until_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn state(complete_until_ns: u64) -> ClockInput {
        ClockInput {
            complete_until_ns,
            begin_ns: 5 * SECOND + 3,
            names_outstanding: 0,
            has_samples: true,
            has_names: true,
            ended: false,
            is_hurried: false,
        }
    }

    /// Simulates that the report's time was over `by` earlier.
    fn age(clock: &mut SnapshotClock, by: Duration) {
        let over = clock.report_over.expect("a report waits");
        clock.report_over = over.checked_sub(by);
    }

    fn reports(count: Option<u64>) -> SnapshotClock {
        SnapshotClock::new(Schedule::Reports {
            delay: Duration::from_secs(1),
            count,
            names: AwaitNames::Each,
        })
    }

    #[test]
    fn a_recording_waits_for_names_only_at_its_end() {
        let mut clock = SnapshotClock::new(Schedule::Reports {
            delay: Duration::from_secs(1),
            count: Some(2),
            names: AwaitNames::Last,
        });
        let state = ClockInput {
            names_outstanding: 7,
            ..state(9 * SECOND)
        };
        assert!(clock.due(&state).is_some());
        assert!(clock.due(&state).is_none(), "the last of two");
        let named = ClockInput {
            names_outstanding: 0,
            ..state
        };
        assert!(clock.due(&named).is_some());
    }

    #[test]
    fn a_screen_shows_the_first_samples_and_names_as_soon_as_they_are_there() {
        let mut clock = SnapshotClock::new(Schedule::Live {
            window: Span::Seconds(10),
            refresh: Duration::from_secs(3600),
        });
        // Nothing is due because of its age.
        clock.started -= EARLY;
        let mut is_due = |has_samples, has_names| {
            let input = ClockInput {
                has_samples,
                has_names,
                ..state(9 * SECOND)
            };
            clock.due(&input).is_some()
        };
        assert!(is_due(false, false), "an empty screen");
        assert!(!is_due(false, false));
        assert!(is_due(true, false));
        assert!(!is_due(true, false));
        assert!(is_due(true, true));
        assert!(
            !is_due(true, true),
            "later names come with the next refresh"
        );
    }

    #[test]
    fn a_screen_need_not_wait_for_the_last_part_of_its_time() {
        let refresh = Duration::from_secs(100);
        let mut clock = SnapshotClock::new(Schedule::Live {
            window: Span::Seconds(10),
            refresh,
        });
        clock.started -= EARLY;
        assert_eq!(clock.time_to_next(), Duration::ZERO, "the first one");
        assert!(clock.due(&state(9 * SECOND)).is_some());
        let to_next = clock.time_to_next();
        assert!(!to_next.is_zero() && to_next <= refresh, "{to_next:?}");
        for (sooner, is_due) in [(Duration::from_secs(1), false), (SOONER, true)] {
            clock.published = Instant::now().checked_sub(refresh - sooner);
            assert_eq!(
                clock.due(&state(9 * SECOND)).is_some(),
                is_due,
                "{sooner:?}"
            );
        }
    }

    #[test]
    fn a_report_is_due_when_its_samples_come_and_not_at_a_time() {
        assert_eq!(reports(None).time_to_next(), Duration::MAX);
    }

    #[test]
    fn reports_follow_each_other_without_a_gap() {
        let mut clock = reports(None);
        assert_eq!(clock.due(&state(5 * SECOND + 900)), None);
        let first = clock.due(&state(6 * SECOND + 5)).unwrap();
        let second = clock.due(&state(7 * SECOND + 5)).unwrap();
        assert_eq!(first.end_ns, 6 * SECOND - 1);
        assert_eq!(
            second.end_ns - second.window.as_nanos() as u64,
            first.end_ns
        );
    }

    #[test]
    fn so_many_reports_and_no_more() {
        let mut clock = reports(Some(1));
        assert!(clock.due(&state(9 * SECOND)).is_some());
        assert!(clock.is_finished());
        assert_eq!(clock.due(&state(20 * SECOND)), None);
    }

    #[test]
    fn the_last_report_may_be_short() {
        let mut clock = reports(None);
        let end = ClockInput {
            ended: true,
            ..state(5 * SECOND + 50_000_000)
        };
        let due = clock.due(&end).unwrap();
        assert_eq!(due.window, Duration::from_millis(50));
        assert!(clock.is_caught_up(end.complete_until_ns));
        assert_eq!(clock.due(&end), None);
    }

    #[test]
    fn a_report_waits_a_moment_for_names() {
        let mut clock = reports(None);
        let waiting = ClockInput {
            names_outstanding: 3,
            ..state(6 * SECOND)
        };
        assert_eq!(clock.due(&waiting), None);
        age(&mut clock, NAMES_WAIT);
        assert!(clock.due(&waiting).is_some(), "it is on time");
        assert!(clock.due(&state(7 * SECOND)).is_some());
    }

    #[test]
    fn names_are_needed_once_when_all_samples_of_a_report_are_there() {
        let mut clock = reports(None);
        for (complete_until_ns, is_over) in [
            (5 * SECOND + 900, false),
            (6 * SECOND, true),
            (6 * SECOND + 1, false),
            (7 * SECOND, true),
        ] {
            let state = ClockInput {
                names_outstanding: 3,
                ..state(complete_until_ns)
            };
            assert_eq!(clock.has_just_ended(&state), is_over, "{complete_until_ns}");
            assert_eq!(clock.due(&state), None);
            if complete_until_ns == 6 * SECOND + 1 {
                age(&mut clock, NAMES_WAIT);
                assert!(clock.due(&state).is_some());
            }
        }
        // A recording has its names later.
        let recorded = SnapshotClock::new(Schedule::Reports {
            delay: Duration::from_secs(1),
            count: None,
            names: AwaitNames::Last,
        });
        assert!(!recorded.has_just_ended(&state(6 * SECOND)));
    }

    #[test]
    fn the_last_report_waits_longer_unless_somebody_ends_the_run() {
        let mut clock = reports(Some(1));
        let waiting = ClockInput {
            names_outstanding: 3,
            ..state(6 * SECOND)
        };
        assert_eq!(clock.due(&waiting), None);
        age(&mut clock, NAMES_WAIT.max(NAMES_WAIT_ENDED));
        assert_eq!(clock.due(&waiting), None);
        // It ran for a second.
        age(&mut clock, NAMES_TIME_MIN - Duration::from_secs(2));
        assert_eq!(clock.due(&waiting), None);
        let hurried = ClockInput {
            is_hurried: true,
            ..waiting
        };
        assert!(clock.due(&hurried).is_some());
    }

    #[test]
    fn the_last_report_of_a_long_run_is_on_time() {
        let mut clock = SnapshotClock::new(Schedule::Reports {
            delay: Duration::from_secs(10),
            count: Some(1),
            names: AwaitNames::Last,
        });
        let waiting = ClockInput {
            names_outstanding: 3,
            ..state(15 * SECOND)
        };
        assert_eq!(clock.due(&waiting), None);
        age(&mut clock, NAMES_WAIT);
        assert!(clock.due(&waiting).is_none());
        age(&mut clock, NAMES_WAIT_LAST);
        assert!(clock.due(&waiting).is_some());
    }

    #[test]
    fn a_new_window_is_shown_at_once() {
        let window = Span::Seconds(10);
        let refresh = Duration::from_secs(1);
        let mut clock = SnapshotClock::new(Schedule::Live { window, refresh });
        assert!(clock.due(&state(6 * SECOND)).is_some());
        assert_eq!(clock.due(&state(6 * SECOND)), None);
        clock.set_window(Span::Seconds(60));
        assert_eq!(
            clock.due(&state(6 * SECOND)).unwrap().window,
            Duration::from_secs(60)
        );
    }
}
