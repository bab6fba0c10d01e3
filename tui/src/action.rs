//! An *action* is what a key asks for. One table says which keys ask for what,
//! what the key line and the help say about it, and where it works; nothing
//! else knows a key.

/// A key, and how it is written.
mod key;
/// Which keys ask for what: the table, and what a user makes of it.
mod keymap;

pub use key::Key;
pub use keymap::{Binding, Keymap, Rebound};

use crate::view_id::{Feature, ViewId};

/// Everything that a key can ask for. Some actions work in several views and do there what
/// suits them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Scroll the detail line back to its beginning.
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
    /// On a page, open the page of the selected row; in code, open the code of the called
    /// function.
    Follow,
    /// Open source text and instructions of the selected function.
    Code,
    /// Switch between source text, instructions, and both.
    Layout,
    /// Show or hide the second view beside the open one.
    Pane,
    /// Send keys to the second view, or to the open one again.
    OtherPane,
    /// Choose what a tree, the map of time, or processes and threads are grouped by.
    Group,
    /// Show processes as a tree, below those that started them.
    Family,
    /// Switch between AT&T and Intel syntax.
    Syntax,
    HotNext,
    HotPrevious,
    /// Open the source text in an editor.
    Edit,
    /// Show the callers of the selected function as a tree.
    Callers,
    CopyStack,
    Fold(FoldAction),
    /// Show in which modules frames have no names, and what to type to get them.
    OpenCause,
    HotPath,
    Left,
    Right,
    /// Make the selected frame as wide as the screen.
    Zoom,
    SameName,
    MarkTime,
    /// Make the marked time the window.
    UseTime,
    Freeze,
    ShorterWindow,
    LongerWindow,
    /// Let the window begin now.
    Mark,
    /// Opens the line with the filter.
    EditFilter,
    /// Open the palette, in which all actions are found by name.
    Palette,
    /// Keep what is shown as the baseline for comparisons.
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
    /// Let the selected probe live longer; place it again if it is gone.
    Renew,
    /// Remove the selected probe.
    Unprobe,
    UnprobeAll,
    /// Read a value at each call of the selected probe.
    Value,
    /// Explain that proftop kills nothing: other tops do on this key.
    Kill,
}

impl Action {
    /// Whether it does something with the selected row of a view. Motions are not asked for.
    pub fn is_of_row(self) -> bool {
        match self {
            Action::Page
            | Action::Callers
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
}

/// Where a binding works.
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
    /// Wherever there are names to find.
    Rows,
    /// Where the arrows to the sides move nothing: tables, pages, code.
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

/// How a key changes the filter. The first four are about the selected function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterAction {
    Focus,
    Exclude,
    /// The processes or threads that are marked, or else selected.
    ExcludeRows,
    Hide,
    /// The whole module of the function.
    FoldModule,
    FoldRecursion,
    /// Waits for work.
    Idle,
    Kernel,
    User,
    /// What an interpreter does itself, and how waits are made.
    Internals,
}

impl FilterAction {
    /// Whether it is about the selected row.
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
