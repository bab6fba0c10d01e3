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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The detail line, to what did not fit into it, and back.
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
    /// Runs of frames with one child each: as one, or one by one.
    Runs,
    /// From a function to its page.
    Page,
    /// From a page to the one of the selected row; from code to what it calls.
    Follow,
    /// From a function to its source text and instructions.
    Code,
    /// Source text, instructions, or both.
    Layout,
    /// What stands beside the view, on, off.
    Pane,
    /// The keys to what stands beside the view, or back.
    OtherPane,
    /// What is between the root of a tree and its functions.
    Group,
    /// Processes below those that started them.
    Family,
    /// How instructions are written.
    Syntax,
    HotNext,
    HotPrevious,
    /// The source text in an editor.
    Edit,
    /// From a function to its place in the tree.
    Callers,
    CopyStack,
    Fold(FoldAction),
    /// The modules in which frames have no names, and what to type for them.
    OpenCause,
    HotPath,
    Left,
    Right,
    /// Make the selected frame as wide as the screen.
    Zoom,
    SameName,
    MarkTime,
    /// The marked time as the window.
    UseTime,
    Freeze,
    ShorterWindow,
    LongerWindow,
    /// The window begins now.
    Mark,
    /// Opens the line with the filter.
    EditFilter,
    /// Everything by its name.
    Palette,
    /// What is shown is compared with from now on.
    Baseline,
    Difference,
    Unit,
    Metric,
    Write,
    Sampling,
    Filter(FilterAction),
    /// To the selected process or thread.
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
    /// The selected probe lives longer, or again.
    Renew,
    /// Take the selected probe away, or all.
    Unprobe,
    UnprobeAll,
    /// Read a value at each call of the selected probe.
    Value,
    /// Other tops kill here.
    Kill,
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
    /// Whether something of this scope works in the view.
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

/// What a key does to the filter, with what is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterAction {
    Focus,
    Exclude,
    Hide,
    /// The whole module of the function.
    FoldModule,
    FoldRecursion,
    Kernel,
    User,
}

/// What a key does to what is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldAction {
    Open,
    Close,
    Toggle,
    OpenAll,
    CloseAll,
}
