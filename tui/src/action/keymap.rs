//! The *keymap* says which keys start which actions. It starts as the table below; a configuration
//! may assign other keys to an action.

use super::{Action, Key, Scope};
use crate::action::{FilterAction, FoldAction};
use crate::view_id::ViewId;
use crossterm::event::{KeyCode, KeyEvent};

/// An action, where it works, and its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The name of the action in a configuration file.
    pub name: &'static str,
    pub scope: Scope,
    pub action: Action,
    pub keys: Vec<Key>,
    /// The word in the line of keys. Empty if the action is not shown there.
    pub hint: &'static str,
    /// The sentence in the help. Empty if the action is not listed there.
    pub help: &'static str,
}

/// All bindings, in the order of the line of keys and the help. If several bindings of a view have
/// the same key, the first one counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keymap {
    bindings: Vec<Binding>,
}

/// The result of assigning other keys to an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebound {
    Done,
    /// There is no action with this name.
    Unknown,
    /// No key would be left that quits the program.
    NoWayOut,
}

/// One row for each action: its name, where it works, the action, its keys, the word in the line of
/// keys, the sentence in the help. Both show the actions in the order of the rows.
macro_rules! table {
    ($($name:literal $scope:ident $action:expr => $keys:literal, $hint:literal, $help:literal;)*) => {
        vec![$(Binding {
            name: $name,
            scope: Scope::$scope,
            action: $action,
            keys: keys($keys),
            hint: $hint,
            help: $help,
        }),*]
    };
}

/// Returns the default bindings. Rows that work everywhere come last, because the first binding
/// with a key counts. So a view can give a key another meaning than it has elsewhere.
#[rustfmt::skip]
fn defaults() -> Vec<Binding> {
    // `Action::*` imports a variant named `View`, but not the type of its value, which has to be
    // imported here.
    use crate::view_id::ViewId;
    use Action::*;
    table! {
        "page"           Functions    Page                                => "enter",           "callers",    "its callers and callees";
        "callers-tree"   Functions    Callers                             => "t",               "",           "its callers, as a tree";
        "follow"         Page         Follow                              => "enter",           "its page",   "the selected one's page";
        "callers-tree"   Page         Callers                             => "t",               "tree",       "the callers as a tree";
        "copy-stack"     Page         CopyStack                           => "Y",               "copy stack", "copy the heaviest stack";
        "follow"         Code         Follow                              => "enter",           "follow",     "the code that it calls";
        "hot-next"       Code         HotNext                             => "}",               "hot",        "next hot line";
        "hot-previous"   Code         HotPrevious                         => "{",               "",           "previous hot line";
        "layout"         Code         Layout                              => "o",               "layout",     "source, assembly, both";
        "edit"           Code         Edit                                => "e",               "edit",       "open the line in $EDITOR";
        "page"           Code         Page                                => "p",               "page",       "the function's page";
        "syntax"         Code         Syntax                              => "A",               "",           "AT&T or Intel syntax";
        "open"           Tree         Fold(FoldAction::Open)              => "right l +",       "open",       "open; if open, go down";
        "close"          Tree         Fold(FoldAction::Close)             => "left h -",        "close",      "close; if closed, go up";
        "open-or-close"  Tree         Fold(FoldAction::Toggle)            => "enter",           "",           "open or close; [+]: unfold";
        "hot-path"       Tree         HotPath                             => "*",               "hot path",   "go down the hot path";
        "open-all"       Tree         Fold(FoldAction::OpenAll)           => "E",               "all",        "open all that is not small";
        "close-all"      Tree         Fold(FoldAction::CloseAll)          => "C",               "",           "close all but the way here";
        "zoom"           Flame        Zoom                                => "enter",           "zoom",       "zoom in; back leads out";
        "runs"           Flame        Runs                                => "+",               "",           "[+]: show every frame";
        "mark-time"      Time         MarkTime                            => "v",               "mark",       "mark from here";
        "use-time"       Time         UseTime                             => "enter",           "use",        "the marked time as window";
        "open-cause"     Health       OpenCause                           => "enter",           "what to type", "how to get missing names";
        "copy"           Health       Copy                                => "y",               "",           "copy the line to type";
        "page"           Probes       Page                                => "enter",           "callers",    "the function's page";
        "renew"          Probes       Renew                               => "r",               "renew",      "60 s more; if gone, again";
        "value"          Probes       Value                               => "v",               "value",      "read a value of each call";
        "unprobe"        Probes       Unprobe                             => "d del",           "take away",  "take this probe away";
        "unprobe-all"    Probes       UnprobeAll                          => "D",               "all",        "take all probes away";
        "code"           Probes       Code                                => "a",               "",           "its source and assembly";
        "left"           Maps         Left                                => "left h",          "",           "to the left";
        "right"          Maps         Right                               => "right l",         "",           "to the right";
        "same-name"      Flame        SameName                            => "#",               "same name",  "next frame with this name";
        "group"          Time         Group                               => "o",               "rows",       "rows: parts, CPUs, threads";
        "group"          Calls        Group                               => "o",               "",           "group by process, thread";
        "invert"         Calls        Invert                              => "I",               "invert",     "callers or callees first";
        "narrow"         People       Narrow                              => "enter",           "narrow",     "only it, or what is marked";
        "mark-row"       People       MarkRow                             => "v",               "mark",       "mark, to narrow to several";
        "family"         Processes    Family                              => "t f5",            "tree",       "tree of who started whom";
        "code"           FunctionRows Code                                => "a",               "code",       "its source and assembly";
        "probe"          Functions    Probe                               => "l L",             "probe",      "count and time its calls";
        "probe"          Page         Probe                               => "l L",             "probe",      "count and time its calls";
        "probe"          Code         Probe                               => "l L",             "probe",      "count and time its calls";
        "probe"          Calls        Probe                               => "L",               "probe",      "count and time its calls";
        "focus"          FunctionRows Filter(FilterAction::Focus)         => "f",               "focus",      "only stacks with it";
        "exclude"        FunctionRows Filter(FilterAction::Exclude)       => "x",               "exclude",    "no stacks with it";
        "hide"           FunctionRows Filter(FilterAction::Hide)          => "H",               "",           "hide it, charge its caller";
        "fold-module"    FunctionRows Filter(FilterAction::FoldModule)    => "D",               "",           "hide its whole module";
        "machines"       FunctionRows Machines                            => "@",               "",           "on which machines it runs";
        "page"           Calls        Page                                => "p",               "page",       "the function's page";
        "find"           Rows         Find                                => "/ f3",            "find",       "find by regular expression";
        "find-next"      Rows         FindNext                            => "n",               "",           "next match";
        "find-previous"  Rows         FindPrevious                        => "N",               "",           "previous match";
        "freeze"         Everywhere   Freeze                              => "space Z",         "freeze",     "freeze, or go on";
        "write"          Everywhere   Write                               => "w",               "write",      "write to a file";
        "group"          People       Group                               => "o",               "group",      "by unit, command or name";
        "exclude-rows"   People       Filter(FilterAction::ExcludeRows)     => "x",               "exclude",    "all but it, or the marked";
        "sort-right"     Tables       SortRight                           => "> s f6",          "sort",       "sort by the next column";
        "sort-left"      Tables       SortLeft                            => "<",               "",           "sort by previous column";
        "invert"         Tables       Invert                              => "I",               "invert",     "invert the order";
        "help"           Everywhere   Help                                => "? f1",            "",           "this help";
        "palette"        Everywhere   Palette                             => ":",               "",           "find an action by name";
        "quit"           Everywhere   Quit                                => "q f10 ctrl-c",    "quit",       "quit";
        "explain"        Everywhere   Explain                             => "i",               "explain",    "explain this number";
        "detail-left"    Lists        DetailLeft                          => "left",            "",           "";
        "detail-right"   Lists        DetailRight                         => "right",           "",           "";
        "detail-left"    Everywhere   DetailLeft                          => "(",               "",           "detail line to the left";
        "detail-right"   Everywhere   DetailRight                         => ")",               "",           "detail line to the right";
        "copy"           Rows         Copy                                => "y",               "",           "copy the name (OSC 52)";
        "filter"         Everywhere   EditFilter                          => "\\ f4",           "filter",     "edit the filter";
        "kernel-frames"  Everywhere   Filter(FilterAction::Kernel)        => "K",               "",           "kernel: hide, alone, show";
        "user-frames"    Everywhere   Filter(FilterAction::User)          => "U",               "",           "user: hide, alone, show";
        "interpreter"    Everywhere   Filter(FilterAction::Internals)     => "P",               "",           "internals: show or hide";
        "fold-recursion" Everywhere   Filter(FilterAction::FoldRecursion) => "R",               "",           "fold recursion";
        "idle-waits"     Everywhere   Filter(FilterAction::Idle)          => "W",               "",           "without waits for work";
        "shorter-window" Everywhere   ShorterWindow                       => ",",               "",           "shorter window";
        "longer-window"  Everywhere   LongerWindow                        => ".",               "window",     "longer window";
        "mark"           Everywhere   Mark                                => "m",               "",           "start a new window now";
        "unit"           Everywhere   Unit                                => "%",               "",           "change the unit";
        "metric"         Everywhere   Metric                              => "c",               "",           "count by another metric";
        "baseline"       Everywhere   Baseline                            => "b",               "",           "make this the baseline, A";
        "difference"     Everywhere   Difference                          => "=",               "",           "show or hide what differs";
        "sampling"       Everywhere   Sampling                            => "S",               "",           "sampling: rate, unwinder";
        "view-functions" Everywhere   View(ViewId::Functions)               => "1",               "",           "functions";
        "view-tree"      Everywhere   View(ViewId::Tree)                    => "2",               "",           "call tree";
        "view-flame"     Everywhere   View(ViewId::Flame)                   => "3",               "",           "flame graph";
        "view-processes" Everywhere   View(ViewId::Processes)               => "4",               "",           "processes";
        "view-threads"   Everywhere   View(ViewId::Threads)                 => "5",               "",           "threads";
        "view-time"      Everywhere   View(ViewId::Time)                    => "6",               "",           "time";
        "view-code"      Everywhere   View(ViewId::Code)                    => "7",               "",           "source and assembly";
        "view-health"    Everywhere   View(ViewId::Health)                  => "8",               "",           "what is missing and why";
        "view-probes"    Everywhere   View(ViewId::Probes)                  => "9",               "",           "probes of functions";
        "next-view"      Everywhere   NextView                            => "tab",             "view",       "next view";
        "previous-view"  Everywhere   PreviousView                        => "shift-tab",       "",           "previous view";
        "pane"           Everywhere   Pane                                => "|",               "",           "second view: on or off";
        "other-pane"     Everywhere   OtherPane                           => "ctrl-w",          "",           "switch to the other view";
        "up"             Everywhere   Up                                  => "up k",            "",           "up; from row 1: watch top";
        "down"           Everywhere   Down                                => "down j",          "",           "down";
        "page-up"        Everywhere   PageUp                              => "pgup ctrl-b",     "",           "page up";
        "page-down"      Everywhere   PageDown                            => "pgdn ctrl-f",     "",           "page down";
        "half-up"        Everywhere   HalfUp                              => "ctrl-u",          "",           "half a page up";
        "half-down"      Everywhere   HalfDown                            => "ctrl-d",          "",           "half a page down";
        "top"            Everywhere   Top                                 => "g home",          "",           "watch the top";
        "bottom"         Everywhere   Bottom                              => "G end",           "",           "last row";
        "back"           Everywhere   Back                                => "esc backspace [", "",           "close, go back";
        "forward"        Everywhere   Forward                             => "]",               "",           "forward again";
        "output"         Everywhere   Output                              => "O",               "",           "the command's output";
        "mouse"          Everywhere   Mouse                               => "M",               "",           "mouse: on or off";
        "redraw"         Everywhere   Redraw                              => "ctrl-l",          "",           "redraw";
        "suspend"        Everywhere   Suspend                             => "ctrl-z",          "",           "suspend";
        "kill"           Everywhere   Kill                                => "f9",              "",           "";
    }
}

/// Parses keys separated by blanks. A test checks that all keys of the table can be parsed.
fn keys(text: &str) -> Vec<Key> {
    text.split(' ').filter_map(|key| key.parse().ok()).collect()
}

impl Default for Keymap {
    fn default() -> Self {
        Keymap {
            bindings: defaults(),
        }
    }
}

impl Keymap {
    /// Returns a keymap in which no action has a key, so that sentences do not mention keys.
    pub fn without_keys() -> Self {
        let mut keymap = Keymap::default();
        for binding in &mut keymap.bindings {
            binding.keys.clear();
        }
        keymap
    }

    /// Returns the action that a key press starts in a view, or `None` if it does nothing there.
    pub fn find(&self, event: KeyEvent, view: ViewId) -> Option<Action> {
        self.of(view)
            .find(|binding| binding.keys.iter().any(|key| key.is(event)))
            .map(|binding| binding.action)
    }

    /// Returns the bindings that work in a view.
    pub fn of(&self, view: ViewId) -> impl Iterator<Item = &Binding> {
        self.bindings
            .iter()
            .filter(move |binding| binding.scope.holds(view))
    }

    /// Returns all bindings.
    pub fn all(&self) -> &[Binding] {
        &self.bindings
    }

    /// Returns the first key of an action, or `None` if it has no key.
    pub fn key_of(&self, action: Action) -> Option<Key> {
        let mut bindings = self.bindings.iter();
        let found = bindings.find(|binding| binding.action == action)?;
        found.keys.first().copied()
    }

    /// Returns the key of an action as a sentence in a view names it, or `None` if the action has
    /// no key there.
    pub fn label(&self, action: Action, view: ViewId) -> Option<String> {
        let bindings = self.of(view).filter(|binding| binding.action == action);
        let keys = bindings.flat_map(|binding| &binding.keys);
        // Any other key is preferred to Esc, because after Esc a terminal waits a moment for the
        // rest of an escape sequence.
        let key = keys.min_by_key(|key| **key == Key::Code(KeyCode::Esc))?;
        Some(key.label(true))
    }

    /// Assigns these keys to the action with this name, in place of its present keys. Other actions
    /// with the same keys in the same views lose them. Nothing changes unless it returns
    /// [`Rebound::Done`].
    pub fn rebind(&mut self, name: &str, keys: &[Key]) -> Rebound {
        if !self.bindings.iter().any(|binding| binding.name == name) {
            return Rebound::Unknown;
        }
        let mut changed = self.clone();
        let scopes: Vec<Scope> = changed.give(name, keys);
        for binding in &mut changed.bindings {
            if binding.name != name && scopes.iter().any(|scope| scope.overlaps(binding.scope)) {
                binding.keys.retain(|key| !keys.contains(key));
            }
        }
        if changed.key_of(Action::Quit).is_none() {
            return Rebound::NoWayOut;
        }
        *self = changed;
        Rebound::Done
    }

    /// Assigns the keys to all rows of an action, which may have one row for each kind of view.
    /// Returns where they work.
    fn give(&mut self, name: &str, keys: &[Key]) -> Vec<Scope> {
        let mut scopes = Vec::new();
        for binding in &mut self.bindings {
            if binding.name == name {
                binding.keys = keys.to_vec();
                scopes.push(binding.scope);
            }
        }
        scopes
    }
}

impl Scope {
    /// Whether there is a view in which bindings of both scopes work.
    fn overlaps(self, other: Scope) -> bool {
        let mut views = ViewId::ALL.into_iter().chain([ViewId::Page]);
        views.any(|view| self.holds(view) && other.holds(view))
    }
}

impl Binding {
    /// Returns all keys of the binding, as the help shows them.
    pub fn labels(&self, ascii: bool) -> String {
        let labels: Vec<String> = self.keys.iter().map(|key| key.label(ascii)).collect();
        labels.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::KeyModifiers;

    fn views() -> impl Iterator<Item = ViewId> {
        ViewId::ALL.into_iter().chain([ViewId::Page])
    }

    fn press(c: char) -> KeyEvent {
        KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)
    }

    #[track_caller]
    fn assert_no_key_means_two_things(keymap: &Keymap) {
        for view in views() {
            let keys: Vec<Key> = keymap.of(view).flat_map(|b| b.keys.clone()).collect();
            for (at, key) in keys.iter().enumerate() {
                assert!(!keys[..at].contains(key), "{key:?} in {view:?}");
            }
        }
    }

    #[test]
    fn no_key_means_two_things() {
        assert_no_key_means_two_things(&Keymap::default());
    }

    #[test]
    fn every_row_of_the_table_has_its_keys() {
        for binding in Keymap::default().all() {
            assert!(!binding.keys.is_empty(), "{}", binding.name);
        }
    }

    #[test]
    fn a_name_is_an_action() {
        let keymap = Keymap::default();
        for a in keymap.all() {
            for b in keymap.all() {
                assert_eq!(a.name == b.name, a.action == b.action, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn control_is_not_the_letter() {
        let keymap = Keymap::default();
        let event = KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL);
        assert_eq!(keymap.find(event, ViewId::Functions), Some(Action::HalfUp));
        let event = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::ALT);
        assert_eq!(keymap.find(event, ViewId::Functions), None);
        let event = KeyEvent::new(KeyCode::Char('G'), KeyModifiers::SHIFT);
        assert_eq!(keymap.find(event, ViewId::Functions), Some(Action::Bottom));
    }

    #[test]
    fn a_user_may_have_other_keys() {
        let mut keymap = Keymap::default();
        assert_eq!(keymap.rebind("freeze", &keys("w")), Rebound::Done);
        assert_eq!(
            keymap.find(press('w'), ViewId::Functions),
            Some(Action::Freeze)
        );
        // The action that had the key loses it, and the old keys are free.
        assert_eq!(keymap.key_of(Action::Write), None);
        assert_eq!(keymap.find(press(' '), ViewId::Functions), None);
        assert_no_key_means_two_things(&keymap);
        // Two actions keep the same key if they never work in the same view.
        assert_eq!(keymap.rebind("hot-path", &keys("v")), Rebound::Done);
        assert_eq!(
            keymap.find(press('v'), ViewId::Time),
            Some(Action::MarkTime)
        );
        assert_eq!(keymap.find(press('v'), ViewId::Tree), Some(Action::HotPath));
        assert_no_key_means_two_things(&keymap);
    }

    #[test]
    fn there_is_always_a_way_out() {
        let mut keymap = Keymap::default();
        assert_eq!(keymap.rebind("quit", &[]), Rebound::NoWayOut);
        assert_eq!(
            keymap.rebind("freeze", &keys("q f10 ctrl-c")),
            Rebound::NoWayOut
        );
        assert_eq!(
            keymap.find(press('q'), ViewId::Functions),
            Some(Action::Quit)
        );
        assert_eq!(keymap.rebind("quti", &keys("q")), Rebound::Unknown);
    }
}
