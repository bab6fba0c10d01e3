//! The settings of an engine, and the commands that it accepts while it runs.

use crate::probes::expression::Values;
use crate::probes::{ProbeLimits, ProbeOrder, Reach};
use crate::snapshot::Span;
use probe::Happening;
use probe::memory::room::Room;
use profile::{Filter, Limits};
use std::sync::Arc;
use std::time::Duration;

/// The settings of an engine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Limits of the history.
    pub limits: Limits,
    /// When snapshots are made.
    pub schedule: Schedule,
    /// The memory limit of this process's control group.
    pub room: Room,
    /// What is sampled, in words.
    pub scope: Arc<str>,
    /// The sampled CPUs; empty: all.
    pub cpus: Vec<u32>,
    /// Samples per second of a busy CPU.
    pub rate_hz: u32,
    /// What reports count.
    pub counted: Counted,
    /// Which rows reports have.
    pub rows: Rows,
    /// The filter of reports. All samples are taken, and all are in the view.
    pub filter: Filter,
    /// The pids that the user specified; empty if none.
    pub pids: Vec<u32>,
    /// Where probes of calls go.
    pub reach: Reach,
    /// Functions that are probed from the beginning to the end of the run.
    pub probes: FirstProbes,
    /// Whether debug files may be requested from servers.
    pub consent: Consent,
    /// When debug information is read for source lines and inlined functions.
    pub lines: LineReading,
    /// Budget for the cost of proftop, in percent of one CPU; `None` for no limit.
    pub budget_percent: Option<f64>,
}

/// Which rows a report has: each kind costs a pass over all samples of its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rows {
    /// All of them, with their trends.
    #[default]
    WithTrends,
    /// All rows, for reports that show no trends.
    WithoutTrends,
    /// No rows, only the window. Used by recordings, which are made from the view.
    Absent,
}

/// When debug information is read for source lines and inlined functions, which takes more time and
/// memory than everything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineReading {
    /// As soon as a frame has its name.
    #[default]
    WithNames,
    /// When [`Command::ReadLines`] is received.
    WhenAsked,
}

/// Functions that are probed from the beginning to the end of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FirstProbes {
    /// The functions as the user typed them.
    pub functions: Vec<Arc<str>>,
    /// The values that are read at each call.
    pub values: Values,
    /// Limits at which one of them is removed.
    pub limits: ProbeLimits,
}

/// Number of bytes of a name that the kernel keeps.
const COMM_LEN: usize = 15;

impl Settings {
    /// Updates the scope's description if it names one process, which has been renamed or has
    /// become another program.
    pub fn follow_name(&mut self, pid: u32, name: &str) {
        let number = format!("[{pid}]");
        let rest = self.scope.find(&number).filter(|_| self.pids == [pid]);
        // The kernel cuts a name; the scope may have the whole name.
        if let Some(at) = rest
            && !(self.scope[..at].starts_with(name) && name.len() == COMM_LEN)
        {
            self.scope = format!("{name}{}", &self.scope[at..]).into();
        }
    }
}

/// What is counted. Waits are followed only if they are counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Counted {
    /// Time on CPUs.
    #[default]
    OnCpu,
    /// Time that threads waited, or were in the queue for a CPU.
    OffCpu,
    /// Both: the time of running and of waiting threads.
    Wall,
    /// Time that threads waited, charged to the threads that ended the waits.
    KeptWaiting,
    /// An event other than time.
    Happening(Happening),
}

impl Counted {
    /// Whether waits have to be followed.
    pub fn has_waits(&self) -> bool {
        matches!(self, Self::OffCpu | Self::Wall | Self::KeptWaiting)
    }

    /// The event that is counted besides time, if there is one.
    pub fn happening(&self) -> Option<&Happening> {
        match self {
            Self::Happening(happening) => Some(happening),
            Self::OnCpu | Self::OffCpu | Self::Wall | Self::KeptWaiting => None,
        }
    }

    /// Index of its metric among those of a snapshot: after time on CPUs come those of waits, or
    /// the event.
    pub fn number(&self) -> usize {
        match self {
            Self::OnCpu => 0,
            Self::OffCpu | Self::Happening(_) => 1,
            Self::Wall => 2,
            Self::KeptWaiting => 3,
        }
    }
}

/// Whether debug files may be fetched from the servers in `DEBUGINFOD_URLS`, which learn by that
/// which builds run here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consent {
    /// Ask the user before the first request.
    Ask,
    /// The user has configured servers in order to use them.
    #[default]
    Given,
    /// Use no server.
    Refused,
}

/// When snapshots are made, and which time they cover.
#[derive(Debug, Clone)]
pub enum Schedule {
    /// Every `refresh`, of the last `window`.
    Live {
        /// The time that each covers, up to now.
        window: Span,
        /// Time between two snapshots.
        refresh: Duration,
    },
    /// One for each `delay`, covering exactly that time, up to `count` of them.
    Reports {
        /// The time that each covers, which is also the distance to the next.
        delay: Duration,
        /// Number of reports; `None` for no end.
        count: Option<u64>,
        /// Which of them wait for names.
        names: AwaitNames,
    },
}

/// Which reports wait a moment for the names of their frames. The last one waits longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AwaitNames {
    /// All of them.
    Each,
    /// Only the last one. In a recording, names may come later than their samples.
    Last,
}

/// Commands to a running engine.
#[derive(Debug)]
pub enum Command {
    /// Make reports cover this time from now on.
    SetWindow(Span),
    /// Take this number of samples per second of a busy CPU from now on.
    SetRate(u32),
    /// Count waits as well from now on, in a run that does not count them yet.
    CountWaits,
    /// Whether to fetch debug files from now on.
    Fetch(bool),
    /// Read the lines of all frames that have none yet, if lines are not read with names.
    ReadLines,
    /// The started command has ended, at this time on the clock of the samples.
    TargetEnded {
        /// A sentence: which process ended, and how.
        words: String,
        /// When.
        at_ns: u64,
    },
    /// Lines that the command printed.
    Output(Vec<String>),
    /// An order about probes.
    Probe(ProbeOrder),
    /// End now: report everything so far, without waiting for names.
    Finish,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scope_is_called_as_its_process_is() {
        let settings = |scope: &str, pids: &[u32]| Settings {
            limits: Limits::default(),
            schedule: Schedule::Reports {
                delay: Duration::from_secs(1),
                count: None,
                names: AwaitNames::Last,
            },
            room: Room::default(),
            scope: scope.into(),
            cpus: Vec::new(),
            rate_hz: 99,
            counted: Counted::OnCpu,
            rows: Rows::default(),
            filter: Filter::default(),
            pids: pids.to_vec(),
            reach: Reach::default(),
            probes: FirstProbes::default(),
            consent: Consent::default(),
            lines: LineReading::default(),
            budget_percent: None,
        };
        let of = |pids: &[u32], pid| {
            let mut settings = settings("sh[7], cpu 0", pids);
            settings.follow_name(pid, "node");
            settings.scope
        };
        let called = |scope: &str, name: &str| {
            let mut settings = settings(scope, &[7]);
            settings.follow_name(7, name);
            settings.scope
        };
        assert_eq!(&*of(&[7], 7), "node[7], cpu 0");
        assert_eq!(&*of(&[7], 8), "sh[7], cpu 0", "another process");
        assert_eq!(&*of(&[7, 8], 7), "sh[7], cpu 0", "one of several");
        assert_eq!(
            &*called("a-program-of-a-long-name[7]", "a-program-of-a-"),
            "a-program-of-a-long-name[7]"
        );
    }
}
