//! What an engine is started with, and what it can be told while it runs.

use crate::probes::expression::Values;
use crate::probes::{ProbeLimits, ProbeOrder, Reach};
use crate::snapshot::Span;
use probe::Happening;
use probe::memory::room::Room;
use profile::{Filter, Limits};
use std::sync::Arc;
use std::time::Duration;

/// What the engine is to do.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What may be kept.
    pub limits: Limits,
    /// When snapshots are made.
    pub schedule: Schedule,
    /// How much memory the control group of this process may take.
    pub room: Room,
    /// What is sampled, in words.
    pub scope: Arc<str>,
    /// The only CPUs that are; empty: all.
    pub cpus: Vec<u32>,
    /// Samples per second of a busy CPU.
    pub rate_hz: u32,
    /// What reports count.
    pub counted: Counted,
    /// Which rows they have.
    pub rows: Rows,
    /// What reports keep of the samples. All are sampled, and all are in the view.
    pub filter: Filter,
    /// The processes that were named, if any were.
    pub pids: Vec<u32>,
    /// Where probes of calls go.
    pub reach: Reach,
    /// Functions that are probed from the beginning to the end of the run.
    pub probes: FirstProbes,
    /// Whether servers may be asked for debug files.
    pub consent: Consent,
    /// When debug information is read for lines of source text and inlined functions.
    pub lines: LineReading,
    /// What proftop may cost, in percent of one CPU; `None` for no limit.
    pub budget_percent: Option<f64>,
}

/// Which rows a report has: each costs a look at all samples of its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rows {
    /// All of them, with their trends.
    #[default]
    WithTrends,
    /// All of them, for reports that draw no trends.
    WithoutTrends,
    /// None: it tells its window only. A recording is made of the view.
    Absent,
}

/// When debug information is read for lines of source text and inlined functions, which takes
/// more time and memory than everything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineReading {
    /// As soon as a frame has its name.
    #[default]
    WithNames,
    /// When [`Command::ReadLines`] asks for them.
    WhenAsked,
}

/// Functions that are probed from the beginning to the end of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FirstProbes {
    /// As somebody typed them.
    pub functions: Vec<Arc<str>>,
    /// What is read at each call.
    pub values: Values,
    /// When one of them is taken away.
    pub limits: ProbeLimits,
}

/// Bytes of a name that the kernel keeps of a longer one.
const COMM_LEN: usize = 15;

impl Settings {
    /// Keeps the words of the scope true where they name one process, which has become
    /// another program or calls itself otherwise now.
    pub fn follow_name(&mut self, pid: u32, name: &str) {
        let number = format!("[{pid}]");
        let rest = self.scope.find(&number).filter(|_| self.pids == [pid]);
        // The kernel cuts a name; the scope may have it whole.
        if let Some(at) = rest
            && !(self.scope[..at].starts_with(name) && name.len() == COMM_LEN)
        {
            self.scope = format!("{name}{}", &self.scope[at..]).into();
        }
    }
}

/// What is counted. Waits are followed only where they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Counted {
    /// Time on CPUs.
    #[default]
    OnCpu,
    /// Time that threads waited, or were in the queue for a CPU.
    OffCpu,
    /// Both.
    Wall,
    /// Time that threads waited, by who ended that.
    KeptWaiting,
    /// Something besides time.
    Happening(Happening),
}

impl Counted {
    /// Whether waits have to be followed.
    pub fn has_waits(&self) -> bool {
        matches!(self, Self::OffCpu | Self::Wall | Self::KeptWaiting)
    }

    /// What is counted besides time, if that is.
    pub fn happening(&self) -> Option<&Happening> {
        match self {
            Self::Happening(happening) => Some(happening),
            Self::OnCpu | Self::OffCpu | Self::Wall | Self::KeptWaiting => None,
        }
    }

    /// The place of its metric among those of a snapshot: behind time on CPUs come those of
    /// waits, or what is counted besides time.
    pub fn number(&self) -> usize {
        match self {
            Self::OnCpu => 0,
            Self::OffCpu | Self::Happening(_) => 1,
            Self::Wall => 2,
            Self::KeptWaiting => 3,
        }
    }
}

/// Whether debug files may be fetched from the servers that `DEBUGINFOD_URLS` names: they
/// learn which builds run here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consent {
    /// Ask before the first one.
    Ask,
    /// Who names servers wants them to be asked.
    #[default]
    Given,
    /// Ask no server.
    Refused,
}

/// When snapshots are made, and of which time.
#[derive(Debug, Clone)]
pub enum Schedule {
    /// Every `refresh`, of the last `window`.
    Live {
        /// The time that each covers, up to now.
        window: Span,
        /// The time from one to the next.
        refresh: Duration,
    },
    /// One for each `delay`, of just that time, up to `count` of them.
    Reports {
        /// The time that each covers, and to the next.
        delay: Duration,
        /// How many; `None` for no end.
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
    /// A recording's names may come later than their samples.
    Last,
}

/// What the engine can be told while it runs.
#[derive(Debug)]
pub enum Command {
    /// Let reports cover this time from now on.
    SetWindow(Span),
    /// Take this number of samples per second of a busy CPU from now on.
    SetRate(u32),
    /// Count waits as well from now on, in a run that does not yet.
    CountWaits,
    /// Fetch debug files from now on, or do not.
    Fetch(bool),
    /// Read the lines of all frames that have none yet, where that was not done with names.
    ReadLines,
    /// The started command has ended: in these words, at this time on the clock
    /// of the samples.
    TargetEnded {
        /// Who ended, when and how.
        words: String,
        /// When.
        at_ns: u64,
    },
    /// Lines that it printed.
    Output(Vec<String>),
    /// Place a probe of calls, or do something with those there are.
    Probe(ProbeOrder),
    /// End now: report what has come so far, without waiting for names.
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
