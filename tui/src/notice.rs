//! A *notice*: the message of an action to the user. `words::notice` makes its sentence when it is
//! shown.

use std::sync::Arc;

/// The keys that answer [`Notice::MayFetch`]. They are reserved, so that no view uses them for
/// anything else.
pub const FETCH: char = 'F';
pub const NEVER: char = 'X';

/// The message of a key or an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// This many rows match, with this many samples together. The selected row is match number
    /// `position`.
    Found {
        pattern: String,
        rows: usize,
        samples: u64,
        position: Option<usize>,
    },
    /// An order cannot be carried out. The reason is a sentence without its full stop.
    Refused(String),
    /// Only this part is counted from now on.
    Only(Arc<str>),
    /// The window was changed; below, the filter, the unit and the metric.
    WindowSet,
    FilterSet,
    UnitSet,
    MetricSet,
    /// A step back has undone this.
    Undone(String),
    /// The screen is frozen, or shows the newest samples again.
    Frozen(bool),
    /// There is no pattern whose matches could be selected.
    NoFind,
    /// The history has no earlier place.
    NoBack,
    /// There is no second view that could get the keys.
    NoPane,
    /// The history has no later place.
    NoForward,
    /// No row is selected to which the action applies.
    NothingSelected,
    /// The action is about several machines, and only one is counted.
    OneMachine,
    /// The window begins at this moment.
    Marked,
    /// The window cannot begin at this moment, because no new samples arrive.
    NoNow,
    /// Asks whether debug files may be fetched, first for this file.
    MayFetch {
        file: Arc<str>,
        servers: Arc<str>,
    },
    /// Whether debug files are fetched from now on.
    Fetches(bool),
    /// No servers for debug files are configured.
    NoServers,
    /// The source does not say when a sample was taken.
    NoTime,
    /// No frame lacks a name.
    NoCause,
    /// The run samples only this part of the machine, so there is nothing wider to go back to.
    OnlySampled(Arc<str>),
    /// The baseline was set.
    Baseline {
        samples: u64,
        /// Whether it replaces an earlier baseline, which a step back restores.
        is_another: bool,
    },
    /// Only this part is counted already.
    OnlyThis(Arc<str>),
    /// A baseline without samples cannot be compared.
    NothingToCompare,
    /// There is no baseline yet to compare with.
    NoBaseline,
    /// The action does not work in the comparison with the baseline.
    NotInDifference,
    /// Waits will be counted in a moment, and then shown; on a frozen screen, after it continues.
    WaitsAsked {
        is_frozen: bool,
    },
    /// Waits are counted and shown from now on.
    WaitsCounted,
    /// Why there is no other metric.
    OneMetric(String),
    /// The marked time has become the window.
    TimeUsed,
    /// Number of steps down to the function where the hot path ends.
    HotPath(u32),
    /// A key that does nothing in this view.
    WorksElsewhere {
        key: String,
        /// What it does in other views.
        what: &'static str,
        views: String,
        /// Views in which the key does something else. Empty if there are none.
        also: String,
    },
    /// The key has no action.
    NoSuchKey,
    /// The action needs a row with samples, but the selected one no longer has any.
    RowGone,
    /// Whether chains of frames are shown frame by frame, or each as one row.
    Runs(bool),
    /// The found function was on no row, and its place is being opened.
    FoundBelow(Arc<str>),
    /// The position of the selected one among the visible frames of a function.
    SameName {
        position: usize,
        count: usize,
    },
    /// This name was sent to the clipboard of the terminal.
    Copied(String),
    /// Whether clicks now come to proftop; if not, the terminal selects text with the mouse.
    Mouse(bool),
    /// There is no output of a command to show.
    NoOutput,
    /// proftop kills no processes.
    NoKill,
    /// The sampling rate, which is new or unchanged.
    Rate {
        hz: u32,
        is_new: bool,
    },
    /// Why the way of sampling cannot be changed.
    NoSampling(String),
    /// Number of bytes that are written so far, and about how many there will be, if known.
    Writing {
        bytes: u64,
        about: Option<u64>,
    },
    Written {
        path: String,
        bytes: u64,
    },
    /// A file could not be written. If it ended a series, `stopped` is the number of files that
    /// were written before.
    NotWritten {
        why: String,
        stopped: Option<u32>,
    },
    /// The series of files has ended, after this many.
    NoMoreFiles(u32),
    /// There are no samples yet that could be written.
    NothingToWrite,
    /// A part of the configuration was ignored.
    Configuration(String),
    /// A panic was caught: a sentence without its full stop.
    Fault(String),
    /// There is no source text to edit.
    NoSource,
    /// The editor could not be run, for this reason.
    NotEdited(String),
    /// The callee is known, but no sample was in it.
    Unsampled(String),
    /// The selected row of code calls nothing.
    NothingCalled,
    /// Which of the lines with many samples is selected, and how many there are. None if no line
    /// has samples.
    /// samples.
    HotLine(Option<(usize, usize)>),
    /// The new syntax of instructions.
    Syntax(&'static str),
    /// There are no probes for this action.
    NoProbes,
    /// The probe lives another 60 seconds.
    ProbeRenewed,
    /// A probe reads another value, and its counts begin anew.
    ProbeAnew,
    /// The selected probe was removed, or all of them if true.
    ProbeTaken(bool),
    /// The probe is placed, but the frozen screen does not show it.
    ProbeUnseen,
}

impl Notice {
    /// Whether the header shows it as well, so that it need not be in the detail line.
    pub fn is_in_header(&self) -> bool {
        matches!(
            self,
            Notice::Only(_)
                | Notice::WindowSet
                | Notice::FilterSet
                | Notice::UnitSet
                | Notice::MetricSet
                | Notice::Frozen(_)
        )
    }

    /// Whether it only confirms what the user has just done, so that it need not stay until the
    /// next key.
    pub fn is_passing(&self) -> bool {
        self.is_in_header()
            || matches!(
                self,
                Notice::Undone(_) | Notice::Copied(_) | Notice::Mouse(_) | Notice::Runs(_)
            )
    }

    /// Whether it is about a step that can be undone.
    pub fn is_a_step(&self) -> bool {
        matches!(
            self,
            Notice::Only(_) | Notice::WindowSet | Notice::FilterSet | Notice::Marked
        )
    }
}
