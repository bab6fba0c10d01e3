//! A *notice*: what an action has to say to the user. Its sentence is made when it is shown, by
//! `words::notice`.

use std::sync::Arc;

/// The keys that answer [`Notice::MayFetch`]: consent is kept, so that no view has another use for
/// them.
pub const FETCH: char = 'F';
pub const NEVER: char = 'X';

/// What a key has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// This many rows match, with this many samples together. The selected one is match
    /// number `position` of them.
    Found {
        pattern: String,
        rows: usize,
        samples: u64,
        position: Option<usize>,
    },
    /// An order cannot be carried out: why, as a sentence without its full stop.
    Refused(String),
    /// Only this part is counted from now on.
    Only(Arc<str>),
    /// The window, the filter or the unit is another one now.
    WindowSet,
    FilterSet,
    UnitSet,
    MetricSet,
    /// A step back was taken, which undid this.
    Undone(String),
    /// The samples that are shown stay, or the newest are shown again.
    Frozen(bool),
    NoFind,
    /// There is nowhere to go back to, or forward.
    NoBack,
    /// The keys have nowhere else to go to.
    NoPane,
    NoForward,
    NothingSelected,
    /// The window begins here.
    Marked,
    /// A window cannot begin now, because no new samples come in.
    NoNow,
    /// Whether debug files may be fetched, for this file first.
    MayFetch {
        file: Arc<str>,
        servers: Arc<str>,
    },
    /// Whether they are fetched from now on.
    Fetches(bool),
    /// No servers are named that they could be fetched from.
    NoServers,
    /// The source does not say when a sample was taken.
    NoTime,
    /// No frame lacks a name.
    NoCause,
    /// Only this part of the machine is sampled: there is nothing else to go back to.
    OnlySampled(Arc<str>),
    /// The baseline was set.
    Baseline {
        samples: u64,
        /// Whether there was one before, which a step back brings again.
        is_another: bool,
    },
    /// Nothing but this counts already.
    OnlyThis(Arc<str>),
    /// A baseline without samples compares with nothing.
    NothingToCompare,
    NoBaseline,
    NotInDifference,
    /// Waits are counted in a moment, and are then shown: on a frozen screen when it goes on.
    WaitsAsked {
        is_frozen: bool,
    },
    /// Waits are counted and shown from now on.
    WaitsCounted,
    /// Why there is no other metric to switch to.
    OneMetric(String),
    /// The marked time is the window.
    TimeUsed,
    /// How many steps it went down to the function where the hot path ends.
    HotPath(u32),
    /// A key that does nothing in this view.
    WorksElsewhere {
        key: String,
        /// What it does.
        what: &'static str,
        views: String,
        /// Views in which it does something else. Empty if there are none.
        also: String,
    },
    /// No action has this key.
    NoSuchKey,
    /// The action needs a row that has samples, and the selected one has none any more.
    RowGone,
    /// Runs of frames are shown one by one, or each as one.
    Runs(bool),
    /// The found function was on no row, and its place is being opened.
    FoundBelow(Arc<str>),
    /// Which of the frames of a function that can be seen is selected.
    SameName {
        position: usize,
        count: usize,
    },
    Copied(String),
    Mouse(bool),
    NoOutput,
    NoKill,
    /// Samples are taken at this rate: from now on, or as before.
    Rate {
        hz: u32,
        is_new: bool,
    },
    /// Why there is nothing to change about how samples are taken.
    NoSampling(String),
    /// How many bytes were written so far, of about how many, if that is known.
    Writing {
        bytes: u64,
        about: Option<u64>,
    },
    Written {
        path: String,
        bytes: u64,
    },
    /// A file could not be written. If it ended a series, `stopped` is how many files of it
    /// were written before.
    NotWritten {
        why: String,
        stopped: Option<u32>,
    },
    /// The series of files has ended, with this many written.
    NoMoreFiles(u32),
    NothingToWrite,
    /// Something in it was left out.
    Configuration(String),
    /// A panic was caught: a sentence without its full stop.
    Fault(String),
    /// There is no source text to edit.
    NoSource,
    NotEdited(String),
    /// What is called is known, but no sample was in it.
    Unsampled(String),
    NothingCalled,
    /// Which of the lines with many samples is selected, and of how many. None: no line has
    /// samples.
    HotLine(Option<(usize, usize)>),
    /// How instructions are written from now on.
    Syntax(&'static str),
    /// There are no probes to do something with.
    NoProbes,
    /// The probe lives another 60 seconds.
    ProbeRenewed,
    /// A probe reads other values, and forgets what it has counted.
    ProbeAnew,
    /// The selected probe was removed; true: all were.
    ProbeTaken(bool),
    /// It is placed, and the frozen screen does not show it.
    ProbeUnseen,
}

impl Notice {
    /// Whether the header shows the same, so that it need not be said in the detail line.
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

    /// Whether it only confirms what the user has just done, so that it need not stay until
    /// the next key.
    pub fn is_passing(&self) -> bool {
        self.is_in_header()
            || matches!(
                self,
                Notice::Undone(_) | Notice::Copied(_) | Notice::Mouse(_) | Notice::Runs(_)
            )
    }

    /// Whether it tells of a step that can be undone.
    pub fn is_a_step(&self) -> bool {
        matches!(
            self,
            Notice::Only(_) | Notice::WindowSet | Notice::FilterSet | Notice::Marked
        )
    }
}
