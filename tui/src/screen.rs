//! The *screen's own state*: what is selected, sorted, searched and open. It
//! belongs to the person at the keys, not to the profile, and it outlives every
//! snapshot.

/// What is asked of the profile when a knob was turned.
pub mod asking;
/// What stands beside the open view.
pub mod beside;
/// Source text and instructions of one function.
pub mod code;
/// Which row is selected, and on which line of the screen it stays.
pub mod cursor;
/// The functions against a baseline.
pub mod difference;
/// A text search over the rows of a view.
pub mod find;
/// The flame graph.
pub mod flame;
/// The functions as a table.
pub mod functions;
/// Where each region of the screen lies.
pub mod geometry;
/// What is missing, and why, as a list.
pub mod health;
/// The pages of the help.
pub mod help;
/// Where the screen has been.
pub mod history;
/// What is counted, and in which unit.
pub mod knobs;
/// A line of text while it is typed.
pub mod line_edit;
/// Where the selection is to go.
pub mod motion;
/// The page of one function.
pub mod page;
/// Everything by its name.
pub mod palette;
/// The processes as a table.
pub mod processes;
/// What views ask beyond the snapshot, and the answers.
pub mod question;
/// How samples are taken.
pub mod sampling;
/// The last seconds.
pub mod seconds;
/// The one-line states: frozen, exited, lost.
pub mod state;
/// A list that is sorted, searched and selected from.
pub mod table;
/// Where each view is on the tab line.
pub mod tabs;
/// The threads as a table.
pub mod threads;
/// When samples were taken.
pub mod time;
/// The call tree.
pub mod tree;
/// To a file.
pub mod write;

use engine::snapshot::Snapshot;
use profile::{FunctionRow, ProcessRow, ThreadRow};
use std::sync::Arc;

/// The views there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum View {
    #[default]
    Functions,
    Tree,
    Flame,
    /// Of one function; it has no tab.
    Page,
    Processes,
    Threads,
    Time,
    /// Of one function.
    Code,
    Health,
}

impl View {
    pub const ALL: [View; 8] = [
        View::Functions,
        View::Tree,
        View::Flame,
        View::Processes,
        View::Threads,
        View::Time,
        View::Code,
        View::Health,
    ];

    /// As in the tab line.
    pub fn short_name(self) -> &'static str {
        match self {
            View::Functions | View::Page => "Func",
            View::Tree => "Tree",
            View::Flame => "Flame",
            View::Processes => "Proc",
            View::Threads => "Thread",
            View::Time => "Time",
            View::Code => "Code",
            View::Health => "Health",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            View::Functions => "Functions",
            View::Tree => "Call tree",
            View::Flame => "Flame graph",
            View::Page => "Function",
            View::Processes => "Processes",
            View::Threads => "Threads",
            View::Time => "Time",
            View::Code => "Code",
            View::Health => "Health",
        }
    }

    /// Its name for the command line and the configuration.
    pub fn word(self) -> &'static str {
        match self {
            View::Tree => "tree",
            View::Flame => "flame",
            View::Functions => "functions",
            View::Page => "function",
            View::Processes => "processes",
            View::Threads => "threads",
            View::Time => "time",
            View::Code => "code",
            View::Health => "health",
        }
    }

    /// Why there is nothing to see in it, with this source of samples.
    pub fn lacking(self, snapshot: &Snapshot) -> Option<&'static str> {
        let lacks = snapshot.recording.as_ref()?.lacks;
        match self {
            View::Time if lacks.time => Some("this file does not say when samples were taken"),
            View::Threads if lacks.people => Some("this file has no numbers of threads"),
            _ => None,
        }
    }

    pub fn next(self) -> View {
        Self::ALL[(self.position() + 1) % Self::ALL.len()]
    }

    pub fn previous(self) -> View {
        Self::ALL[(self.position() + Self::ALL.len() - 1) % Self::ALL.len()]
    }

    fn position(self) -> usize {
        let tab = self.tab();
        Self::ALL.iter().position(|view| *view == tab).unwrap_or(0)
    }

    /// The view whose tab is open.
    pub fn tab(self) -> View {
        match self {
            View::Page => View::Functions,
            view => view,
        }
    }
}

/// The state of every view. Switching views forgets nothing.
#[derive(Debug, Default)]
pub struct Views {
    pub functions: table::Table<FunctionRow>,
    pub difference: difference::Difference,
    /// Beside the functions.
    pub beside: page::Page,
    pub tree: tree::Tree,
    /// The other way round, beside it.
    pub other_tree: tree::Tree,
    pub flame: flame::Flame,
    /// Of a stretch of time, below its map.
    pub stretch_flame: flame::Flame,
    /// Beside what differs.
    pub difference_flame: flame::Flame,
    pub page: page::Page,
    /// Below the functions.
    pub seconds: seconds::Seconds,
    pub time: time::Time,
    pub code: code::Code,
    /// Its instructions, beside the source text.
    pub other_code: code::Code,
    pub processes: table::Table<ProcessRow>,
    /// Those of the selected process, beside the processes.
    pub own_threads: table::Table<ThreadRow>,
    pub threads: table::Table<ThreadRow>,
    pub health: health::Health,
}

/// What the keys go to.
#[derive(Debug, Default)]
pub enum Mode {
    #[default]
    Browse,
    /// The find line is open.
    Find(find::Prompt),
    /// What to write, and where to.
    Write(write::WriteDialog),
    /// How samples are taken.
    Sampling(sampling::SamplingDialog),
    /// The filter is being edited.
    Filter(FilterPrompt),
    /// What to do is being chosen by its name.
    Palette(palette::Palette),
    /// The help is open, scrolled down by so many lines.
    Help { scroll: usize },
    /// The started command's output is open, scrolled up by so many lines.
    Output { scroll: usize },
}

/// The filter while it is typed.
#[derive(Debug, Default)]
pub struct FilterPrompt {
    pub line: line_edit::LineEdit,
    pub error: Option<profile::filter::FilterError>,
}

/// What the detail line shows.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The selected row.
    #[default]
    Row,
    /// The selected row's number as a sentence.
    Explain,
    /// What the last key did.
    Notice(Notice),
}

/// What a key has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// So many rows match, with so many samples in all; the selected one is
    /// number `position` of them.
    Found {
        pattern: String,
        rows: usize,
        samples: u64,
        position: Option<usize>,
    },
    NoFind,
    /// There is nowhere to go back to, or forward.
    NoBack,
    /// The keys have nowhere else to go to.
    NoPane,
    NoForward,
    NothingSelected,
    /// The window begins here.
    Marked,
    /// No samples come in that a window could begin with.
    NoNow,
    /// The source does not say when a sample was taken.
    NoTime,
    /// Nothing but that part of the machine.
    OnlySampled(Arc<str>),
    /// So many samples are what is compared with.
    Baseline(u64),
    NoBaseline,
    NotInDifference,
    /// Why nothing else is counted.
    OneMetric(String),
    /// The marked time is the window.
    TimeUsed,
    /// So many steps down to the function where it ends.
    HotPath(u32),
    /// Which of the frames of a function that can be seen is selected.
    /// A function that was on no row is being opened.
    FoundBelow(Arc<str>),
    SameName {
        position: usize,
        count: usize,
    },
    Copied(String),
    Mouse(bool),
    NoOutput,
    NoKill,
    /// Samples are taken at that rate, from now on or as they were.
    Rate {
        hz: u32,
        is_new: bool,
    },
    /// Why there is nothing to change about how samples are taken.
    NoSampling(String),
    /// So many bytes are there, of about so many, if that is known.
    Writing {
        bytes: u64,
        about: Option<u64>,
    },
    Written {
        path: String,
        bytes: u64,
    },
    /// And that so many files before it are all, where more were to follow.
    NotWritten {
        why: String,
        stopped: Option<u32>,
    },
    /// So many were written, one after the other.
    NoMoreFiles(u32),
    NothingToWrite,
    /// Something in it was left out.
    Configuration(String),
    /// There is no source text to edit.
    NoSource,
    NotEdited(String),
    /// What is called is known, but no sample was in it.
    Unsampled(String),
    NothingCalled,
    /// Which of the lines with many samples is selected; nothing: none has.
    HotLine(Option<(usize, usize)>),
    /// How instructions are written from now on.
    Syntax(&'static str),
}
