//! An *action* is what a key does. One table has the keys of all actions, their words in the key
//! line and in the help, and the views in which they work. No other code knows any key.

/// Keys, and how they are written.
mod key;
/// The table of keys, and the user's changes to it.
mod keymap;

pub use key::Key;
pub use keymap::{Binding, Keymap, Rebound};

use crate::view_id::{Feature, ViewId};

/// Everything that a key can do. Some actions work in several views and do there what fits the
/// view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Scroll the detail line to the left.
    DetailLeft,
    DetailRight,
    Up,
    Down,
    PageUp,
    PageDown,
    HalfUp,
    HalfDown,
    Top,
    Bottom,
    View(ViewId),
    NextView,
    PreviousView,
    Find,
    FindNext,
    FindPrevious,
    SortLeft,
    SortRight,
    Invert,
    /// Draw a run of frames with one child each as one frame, or frame by frame.
    Runs,
    /// Open the page of the selected function.
    Page,
    /// On a page, open the page of the selected row. In code, open the code of the called function.
    Follow,
    /// Open source text and instructions of the selected function.
    Code,
    /// Switch between source text, instructions, and both.
    Layout,
    /// Show or hide the second view beside the open one.
    Pane,
    /// Move the keys to the second view, or back to the open one.
    OtherPane,
    /// Choose what a tree, the map of time, or processes and threads are grouped by.
    Group,
    /// Show processes as a tree, below the processes that started them.
    Family,
    /// Switch between AT&T and Intel syntax.
    Syntax,
    HotNext,
    HotPrevious,
    /// Open the source text in an editor.
    Edit,
    /// Show the callers of the selected function as a tree.
    Callers,
    /// Show on which machines the selected function runs, if there are several.
    Machines,
    CopyStack,
    Fold(FoldAction),
    /// Show the modules of frames without names, and what to type to get names.
    OpenCause,
    HotPath,
    Left,
    Right,
    /// Make the selected frame as wide as the screen.
    Zoom,
    SameName,
    MarkTime,
    /// Make the marked time the window of samples.
    UseTime,
    Freeze,
    ShorterWindow,
    LongerWindow,
    /// Let the window begin at this moment.
    Mark,
    /// Open the line in which the filter is edited.
    EditFilter,
    /// Open the palette, in which all actions are found by their names.
    Palette,
    /// Keep the counted samples as the baseline for comparisons.
    Baseline,
    Difference,
    Unit,
    Metric,
    Write,
    Sampling,
    Filter(FilterAction),
    /// Count only the selected process or thread, or the marked ones.
    Narrow,
    MarkRow,
    Forward,
    Explain,
    Copy,
    Output,
    Back,
    Help,
    Mouse,
    Redraw,
    Suspend,
    Quit,
    /// Count and time the calls of the selected function.
    Probe,
    /// Let the selected probe live longer, or place it again if it is gone.
    Renew,
    /// Remove the selected probe.
    Unprobe,
    UnprobeAll,
    /// Read a value at each call of the selected probe.
    Value,
    /// Explain that proftop kills no process, as other programs like top do on this key.
    Kill,
}

impl Action {
    /// Whether the action does something with the selected row of a view. Motions do not count.
    pub fn is_of_row(self) -> bool {
        match self {
            Action::Page
            | Action::Callers
            | Action::Machines
            | Action::Code
            | Action::Follow
            | Action::Fold(_)
            | Action::Narrow
            | Action::MarkRow
            | Action::FindNext
            | Action::FindPrevious
            | Action::Copy
            | Action::CopyStack
            | Action::Explain
            | Action::Probe
            | Action::SameName
            | Action::HotPath
            | Action::HotNext
            | Action::HotPrevious
            | Action::Left
            | Action::Right
            | Action::Zoom
            | Action::MarkTime
            | Action::UseTime
            | Action::Edit => true,
            Action::Filter(filter) => filter.is_of_row(),
            _ => false,
        }
    }

    /// Whether the action takes all that is shown, and not only a row of it.
    pub fn is_of_all_shown(self) -> bool {
        self == Action::Baseline
    }
}

/// The views in which a binding works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In the views that are tables.
    Tables,
    Functions,
    Tree,
    Flame,
    /// On the page of a function.
    Page,
    Time,
    Health,
    Probes,
    /// In the code of a function.
    Code,
    /// In the flame graph and the map of time.
    Maps,
    /// In the tree and the flame graph.
    Calls,
    /// In the table of processes.
    Processes,
    /// In the tables of processes and threads.
    People,
    /// Where a function can be selected.
    FunctionRows,
    /// In views that have names to find.
    Rows,
    /// In views where the left and right arrows move nothing: tables, pages, code.
    Lists,
    Everywhere,
}

impl Scope {
    /// Whether a binding of this scope works in the view.
    pub fn holds(self, view: ViewId) -> bool {
        match self {
            Scope::Everywhere => true,
            Scope::Lists => !view.has(Feature::Map) && view != ViewId::Tree,
            Scope::Rows => view.has(Feature::Names),
            Scope::Tables => view.has(Feature::Columns),
            Scope::Functions => view == ViewId::Functions,
            Scope::Processes => view == ViewId::Processes,
            Scope::People => view.has(Feature::People),
            Scope::FunctionRows => view.has(Feature::Functions),
            Scope::Tree => view == ViewId::Tree,
            Scope::Flame => view == ViewId::Flame,
            Scope::Page => view == ViewId::Page,
            Scope::Time => view == ViewId::Time,
            Scope::Health => view == ViewId::Health,
            Scope::Probes => view == ViewId::Probes,
            Scope::Code => view == ViewId::Code,
            Scope::Maps => view.has(Feature::Map),
            Scope::Calls => view.has(Feature::Calls),
        }
    }
}

/// How a key changes the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterAction {
    Focus,
    Exclude,
    /// Exclude the marked processes or threads, or else the selected one.
    ExcludeRows,
    Hide,
    /// Hide all functions of the module of the selected function.
    FoldModule,
    FoldRecursion,
    /// Exclude idle waits, which are waits for work, or count them again.
    Idle,
    Kernel,
    User,
    /// Show or hide what an interpreter does itself, and the functions with which waits are made.
    Internals,
}

impl FilterAction {
    /// Whether it uses the selected row.
    pub fn is_of_row(self) -> bool {
        match self {
            FilterAction::Focus
            | FilterAction::Exclude
            | FilterAction::ExcludeRows
            | FilterAction::Hide
            | FilterAction::FoldModule => true,
            FilterAction::FoldRecursion
            | FilterAction::Idle
            | FilterAction::Kernel
            | FilterAction::User
            | FilterAction::Internals => false,
        }
    }
}

/// What a key opens or closes in the call tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldAction {
    Open,
    Close,
    Toggle,
    OpenAll,
    CloseAll,
}
