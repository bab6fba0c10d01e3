//! An *action* is what a key asks for. One table says which keys ask for what,
//! what the key line and the help say about it, and where it works; nothing
//! else knows a key.

use crate::app::FilterAction;
use crate::screen::View;
use crate::screen::tree::FoldAction;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Up,
    Down,
    PageUp,
    PageDown,
    HalfUp,
    HalfDown,
    Top,
    Bottom,
    View(View),
    NextView,
    PreviousView,
    Find,
    FindNext,
    FindPrevious,
    SortLeft,
    SortRight,
    Invert,
    /// From a function to its page.
    Page,
    /// From a page to the one of the selected row.
    Follow,
    /// From a function to its place in the tree.
    Callers,
    CopyStack,
    Fold(FoldAction),
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
    /// What is shown is compared with from now on.
    Baseline,
    Difference,
    Unit,
    Write,
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
    /// Other tops kill here.
    Kill,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Ctrl(char),
    Code(KeyCode),
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
    /// In the flame graph and the map of time.
    Maps,
    /// In the tree and the flame graph.
    Calls,
    /// In the tables of processes and threads.
    People,
    /// Where a function can be selected.
    Code,
    /// Wherever there are names to find.
    Rows,
    Everywhere,
}

#[derive(Debug)]
pub struct Binding {
    pub action: Action,
    pub keys: &'static [Key],
    pub scope: Scope,
    /// For the key line; empty: not there.
    pub hint: &'static str,
    /// For the help; empty: not there, or with its neighbour.
    pub help: &'static str,
}

/// In the order of the key line and of the help.
pub const BINDINGS: &[Binding] = &[
    here(
        Scope::Functions,
        Action::Page,
        &[Key::Code(KeyCode::Enter)],
        "callers",
        "its callers and callees",
    ),
    here(
        Scope::Functions,
        Action::Callers,
        &[Key::Char('t')],
        "",
        "its callers, as a tree",
    ),
    here(
        Scope::Page,
        Action::Follow,
        &[Key::Code(KeyCode::Enter)],
        "its page",
        "the page of this one",
    ),
    here(
        Scope::Page,
        Action::Callers,
        &[Key::Char('t')],
        "tree",
        "the callers as a tree",
    ),
    here(
        Scope::Page,
        Action::CopyStack,
        &[Key::Char('Y')],
        "copy stack",
        "copy the heaviest stack",
    ),
    here(
        Scope::Tree,
        Action::Fold(FoldAction::Open),
        &[Key::Code(KeyCode::Right), Key::Char('l'), Key::Char('+')],
        "open",
        "open; open: down",
    ),
    here(
        Scope::Tree,
        Action::Fold(FoldAction::Close),
        &[Key::Code(KeyCode::Left), Key::Char('h'), Key::Char('-')],
        "close",
        "close; closed: row above",
    ),
    here(
        Scope::Tree,
        Action::Fold(FoldAction::Toggle),
        &[Key::Code(KeyCode::Enter)],
        "",
        "open or close",
    ),
    here(
        Scope::Tree,
        Action::HotPath,
        &[Key::Char('*')],
        "hot path",
        "go down the hot path",
    ),
    here(
        Scope::Tree,
        Action::Fold(FoldAction::OpenAll),
        &[Key::Char('E')],
        "all",
        "open all that is not small",
    ),
    here(
        Scope::Tree,
        Action::Fold(FoldAction::CloseAll),
        &[Key::Char('C')],
        "",
        "close all but the way here",
    ),
    here(
        Scope::Flame,
        Action::Zoom,
        &[Key::Code(KeyCode::Enter)],
        "zoom",
        "zoom in; Backspace: out",
    ),
    here(
        Scope::Time,
        Action::MarkTime,
        &[Key::Char('v')],
        "mark",
        "mark from here",
    ),
    here(
        Scope::Time,
        Action::UseTime,
        &[Key::Code(KeyCode::Enter)],
        "use",
        "the marked time as window",
    ),
    here(
        Scope::Maps,
        Action::Left,
        &[Key::Code(KeyCode::Left), Key::Char('h')],
        "",
        "to the left",
    ),
    here(
        Scope::Maps,
        Action::Right,
        &[Key::Code(KeyCode::Right), Key::Char('l')],
        "",
        "to the right",
    ),
    here(
        Scope::Flame,
        Action::SameName,
        &[Key::Char('#')],
        "same name",
        "next one of this function",
    ),
    here(
        Scope::Calls,
        Action::Invert,
        &[Key::Char('I')],
        "invert",
        "callers or callees first",
    ),
    here(
        Scope::People,
        Action::Narrow,
        &[Key::Code(KeyCode::Enter)],
        "narrow",
        "only it, or what is marked",
    ),
    here(
        Scope::People,
        Action::MarkRow,
        &[Key::Char('v')],
        "mark",
        "mark, to narrow to several",
    ),
    here(
        Scope::Code,
        Action::Filter(FilterAction::Focus),
        &[Key::Char('f')],
        "focus",
        "only stacks with it",
    ),
    here(
        Scope::Code,
        Action::Filter(FilterAction::Exclude),
        &[Key::Char('x')],
        "exclude",
        "no stacks with it",
    ),
    here(
        Scope::Code,
        Action::Filter(FilterAction::Hide),
        &[Key::Char('H')],
        "",
        "hide it, charge its caller",
    ),
    here(
        Scope::Code,
        Action::Filter(FilterAction::FoldModule),
        &[Key::Char('D')],
        "",
        "hide its whole module",
    ),
    here(
        Scope::Calls,
        Action::Page,
        &[Key::Char('p')],
        "page",
        "the function's page",
    ),
    here(
        Scope::Rows,
        Action::Find,
        &[Key::Char('/')],
        "find",
        "find by regular expression",
    ),
    here(
        Scope::Rows,
        Action::FindNext,
        &[Key::Char('n')],
        "",
        "next match",
    ),
    here(
        Scope::Rows,
        Action::FindPrevious,
        &[Key::Char('N')],
        "",
        "previous match",
    ),
    here(
        Scope::Tables,
        Action::SortRight,
        &[Key::Char('s'), Key::Char('>')],
        "sort",
        "sort by the next column",
    ),
    here(
        Scope::Tables,
        Action::SortLeft,
        &[Key::Char('<')],
        "",
        "sort by the column before",
    ),
    here(
        Scope::Tables,
        Action::Invert,
        &[Key::Char('I')],
        "invert",
        "invert the order",
    ),
    everywhere(
        Action::Explain,
        &[Key::Char('i')],
        "explain",
        "explain this number",
    ),
    here(
        Scope::Rows,
        Action::Copy,
        &[Key::Char('y')],
        "",
        "copy the name (OSC 52)",
    ),
    everywhere(
        Action::EditFilter,
        &[Key::Char('\\'), Key::Code(KeyCode::F(4))],
        "filter",
        "edit the filter",
    ),
    everywhere(
        Action::Filter(FilterAction::Kernel),
        &[Key::Char('K')],
        "",
        "kernel: hide, alone, show",
    ),
    everywhere(
        Action::Filter(FilterAction::User),
        &[Key::Char('U')],
        "",
        "user: hide, alone, show",
    ),
    everywhere(
        Action::Filter(FilterAction::FoldRecursion),
        &[Key::Char('R')],
        "",
        "fold recursion",
    ),
    everywhere(
        Action::ShorterWindow,
        &[Key::Char(',')],
        "",
        "shorter window",
    ),
    everywhere(
        Action::LongerWindow,
        &[Key::Char('.')],
        "window",
        "longer window",
    ),
    everywhere(Action::Mark, &[Key::Char('m')], "", "window from now on"),
    everywhere(Action::Unit, &[Key::Char('%')], "", "other unit"),
    everywhere(
        Action::Baseline,
        &[Key::Char('b')],
        "",
        "compare with this, as A",
    ),
    everywhere(
        Action::Difference,
        &[Key::Char('=')],
        "",
        "difference to A, on, off",
    ),
    everywhere(Action::Write, &[Key::Char('w')], "write", "write to a file"),
    everywhere(
        Action::Freeze,
        &[Key::Char(' '), Key::Char('Z')],
        "freeze",
        "freeze, go on",
    ),
    everywhere(
        Action::View(View::Functions),
        &[Key::Char('1')],
        "",
        "functions",
    ),
    everywhere(Action::View(View::Tree), &[Key::Char('2')], "", "call tree"),
    everywhere(
        Action::View(View::Flame),
        &[Key::Char('3')],
        "",
        "flame graph",
    ),
    everywhere(
        Action::View(View::Processes),
        &[Key::Char('4')],
        "",
        "processes",
    ),
    everywhere(
        Action::View(View::Threads),
        &[Key::Char('5')],
        "",
        "threads",
    ),
    everywhere(Action::View(View::Time), &[Key::Char('6')], "", "time"),
    everywhere(
        Action::View(View::Health),
        &[Key::Char('8')],
        "",
        "what is missing and why",
    ),
    everywhere(
        Action::NextView,
        &[Key::Code(KeyCode::Tab)],
        "view",
        "next view",
    ),
    everywhere(
        Action::PreviousView,
        &[Key::Code(KeyCode::BackTab)],
        "",
        "view before",
    ),
    everywhere(
        Action::Up,
        &[Key::Code(KeyCode::Up), Key::Char('k')],
        "",
        "up; from row 1: watch top",
    ),
    everywhere(
        Action::Down,
        &[Key::Code(KeyCode::Down), Key::Char('j')],
        "",
        "down",
    ),
    everywhere(
        Action::PageUp,
        &[Key::Code(KeyCode::PageUp), Key::Ctrl('b')],
        "",
        "page up",
    ),
    everywhere(
        Action::PageDown,
        &[Key::Code(KeyCode::PageDown), Key::Ctrl('f')],
        "",
        "page down",
    ),
    everywhere(Action::HalfUp, &[Key::Ctrl('u')], "", "half a page up"),
    everywhere(Action::HalfDown, &[Key::Ctrl('d')], "", "half a page down"),
    everywhere(
        Action::Top,
        &[Key::Char('g'), Key::Code(KeyCode::Home)],
        "",
        "watch the top",
    ),
    everywhere(
        Action::Bottom,
        &[Key::Char('G'), Key::Code(KeyCode::End)],
        "",
        "last row",
    ),
    everywhere(
        Action::Back,
        &[Key::Code(KeyCode::Esc), Key::Code(KeyCode::Backspace)],
        "",
        "close, end find, go back",
    ),
    everywhere(Action::Back, &[Key::Char('[')], "", "back"),
    everywhere(Action::Forward, &[Key::Char(']')], "", "forward again"),
    everywhere(
        Action::Output,
        &[Key::Char('O')],
        "",
        "the command's output",
    ),
    everywhere(Action::Mouse, &[Key::Char('M')], "", "mouse on, off"),
    everywhere(Action::Redraw, &[Key::Ctrl('l')], "", "redraw"),
    everywhere(Action::Suspend, &[Key::Ctrl('z')], "", "suspend"),
    everywhere(
        Action::Help,
        &[Key::Char('?'), Key::Code(KeyCode::F(1))],
        "help",
        "this help",
    ),
    everywhere(
        Action::Quit,
        &[Key::Char('q'), Key::Code(KeyCode::F(10)), Key::Ctrl('c')],
        "quit",
        "quit",
    ),
    everywhere(Action::Kill, &[Key::Code(KeyCode::F(9))], "", ""),
    // As in htop.
    here(
        Scope::Rows,
        Action::Find,
        &[Key::Code(KeyCode::F(3))],
        "",
        "",
    ),
    here(
        Scope::Tables,
        Action::SortRight,
        &[Key::Code(KeyCode::F(6))],
        "",
        "",
    ),
];

const fn here(
    scope: Scope,
    action: Action,
    keys: &'static [Key],
    hint: &'static str,
    help: &'static str,
) -> Binding {
    Binding {
        action,
        keys,
        scope,
        hint,
        help,
    }
}

const fn everywhere(
    action: Action,
    keys: &'static [Key],
    hint: &'static str,
    help: &'static str,
) -> Binding {
    Binding {
        action,
        keys,
        scope: Scope::Everywhere,
        hint,
        help,
    }
}

/// What a key asks for in a view.
pub fn find_action(event: KeyEvent, view: View) -> Option<Action> {
    bindings(view)
        .find(|binding| binding.keys.iter().any(|key| key.is(event)))
        .map(|binding| binding.action)
}

/// The keys of a binding, as the help writes them.
pub fn labels(binding: &Binding, ascii: bool) -> String {
    let labels: Vec<String> = binding.keys.iter().map(|key| key.label(ascii)).collect();
    labels.join(" ")
}

/// What works in a view.
pub fn bindings(view: View) -> impl Iterator<Item = &'static Binding> {
    BINDINGS
        .iter()
        .filter(move |binding| binding.scope.holds(view))
}

impl Scope {
    fn holds(self, view: View) -> bool {
        match self {
            Scope::Everywhere => true,
            Scope::Rows => !matches!(view, View::Time | View::Health),
            Scope::Tables => {
                matches!(view, View::Functions | View::Processes | View::Threads)
            }
            Scope::Functions => view == View::Functions,
            Scope::People => matches!(view, View::Processes | View::Threads),
            Scope::Code => matches!(
                view,
                View::Functions | View::Tree | View::Flame | View::Page
            ),
            Scope::Tree => view == View::Tree,
            Scope::Flame => view == View::Flame,
            Scope::Page => view == View::Page,
            Scope::Time => view == View::Time,
            Scope::Maps => matches!(view, View::Flame | View::Time),
            Scope::Calls => matches!(view, View::Tree | View::Flame),
        }
    }
}

impl Key {
    pub fn is(self, event: KeyEvent) -> bool {
        let control = event.modifiers.contains(KeyModifiers::CONTROL);
        let alt = event.modifiers.contains(KeyModifiers::ALT);
        match self {
            Key::Char(c) => event.code == KeyCode::Char(c) && !control && !alt,
            Key::Ctrl(c) => event.code == KeyCode::Char(c) && control,
            Key::Code(code) => event.code == code,
        }
    }

    /// As the key line and the help write it.
    pub fn label(self, ascii: bool) -> String {
        match self {
            Key::Char(' ') => "Space".into(),
            Key::Char(c) => c.into(),
            Key::Ctrl(c) => format!("^{c}"),
            Key::Code(KeyCode::F(number)) => format!("F{number}"),
            Key::Code(KeyCode::Up) if !ascii => "↑".into(),
            Key::Code(KeyCode::Down) if !ascii => "↓".into(),
            Key::Code(KeyCode::Right) if !ascii => "→".into(),
            Key::Code(KeyCode::Left) if !ascii => "←".into(),
            Key::Code(KeyCode::Backspace) if !ascii => "⌫".into(),
            Key::Code(KeyCode::Backspace) => "Bksp".into(),
            Key::Code(KeyCode::BackTab) => "Shift-Tab".into(),
            Key::Code(KeyCode::PageUp) => "PgUp".into(),
            Key::Code(KeyCode::PageDown) => "PgDn".into(),
            Key::Code(code) => format!("{code:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things() {
        for view in View::ALL.into_iter().chain([View::Page]) {
            let keys: Vec<Key> = bindings(view)
                .flat_map(|b| b.keys.iter().copied())
                .collect();
            for (at, key) in keys.iter().enumerate() {
                assert!(!keys[..at].contains(key), "{key:?} in {view:?}");
            }
        }
    }

    #[test]
    fn labels_can_be_plain() {
        for binding in BINDINGS {
            for key in binding.keys {
                assert!(key.label(true).is_ascii());
            }
        }
    }

    #[test]
    fn control_is_not_the_letter() {
        let event = KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL);
        assert_eq!(find_action(event, View::Functions), Some(Action::HalfUp));
        let event = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::ALT);
        assert_eq!(find_action(event, View::Functions), None);
        let event = KeyEvent::new(KeyCode::Char('G'), KeyModifiers::SHIFT);
        assert_eq!(find_action(event, View::Functions), Some(Action::Bottom));
    }
}
