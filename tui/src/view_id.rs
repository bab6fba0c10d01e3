//! The list of views, with the name and the facts of each.

use engine::snapshot::Snapshot;

/// Defines [`ViewId`] and the facts about each view from one list.
macro_rules! views {
    ($($(#[$doc:meta])* $view:ident {
        tab: $tab:ident, short: $short:literal, name: $name:literal, word: $word:literal,
        row: $row:literal, rows: $rows:literal, has: [$($has:ident)*]
    })*) => {
        /// A view of the screen.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub enum ViewId {
            #[default]
            $($(#[$doc])* $view,)*
        }

        const FACTS: &[(ViewId, Facts)] = &[$((ViewId::$view, Facts {
            tab: ViewId::$tab,
            short: $short,
            name: $name,
            word: $word,
            row: $row,
            rows: $rows,
            has: &[$(Feature::$has),*],
        })),*];
    };
}

/// The constant facts about a view.
#[derive(Debug)]
struct Facts {
    /// The view whose tab is highlighted while this view is open: the view itself, or another one
    /// if it has no tab.
    tab: ViewId,
    /// The name in the line of tabs.
    short: &'static str,
    /// The full name, for sentences and titles.
    name: &'static str,
    /// The name on the command line and in the configuration.
    word: &'static str,
    /// What one of its rows is called, in the singular and in the plural.
    row: &'static str,
    rows: &'static str,
    has: &'static [Feature],
}

/// A property that several views share. The keys for it work in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Rows with names, which can be searched.
    Names,
    /// Rows whose samples can be added up.
    Sums,
    /// Columns that can be sorted by.
    Columns,
    /// The selected row is a function.
    Functions,
    /// The selected row is a process or thread.
    People,
    /// Rows that are callers and callees of each other.
    Calls,
    /// Cells to the left and to the right of the selected one.
    Map,
    /// Columns for the difference from a baseline.
    Compares,
}

// The views are in the order of their tabs. The position of a view without a tab does not matter.
views! {
    Functions { tab: Functions, short: "Func", name: "Functions", word: "functions",
        row: "function", rows: "functions", has: [Names Sums Columns Functions Compares] }
    Tree { tab: Tree, short: "Tree", name: "Call tree", word: "tree",
        row: "open row", rows: "open rows", has: [Names Functions Calls Compares] }
    Flame { tab: Flame, short: "Flame", name: "Flame graph", word: "flame",
        row: "frame here", rows: "frames here", has: [Names Sums Functions Calls Map Compares] }
    /// One function; the view has no tab.
    Page { tab: Functions, short: "Func", name: "Function", word: "function",
        row: "row here", rows: "rows here", has: [Names Functions Compares] }
    Processes { tab: Processes, short: "Proc", name: "Processes", word: "processes",
        row: "process", rows: "processes", has: [Names Sums Columns People Compares] }
    Threads { tab: Threads, short: "Thread", name: "Threads", word: "threads",
        row: "thread", rows: "threads", has: [Names Sums Columns People Compares] }
    Time { tab: Time, short: "Time", name: "Time", word: "time",
        row: "second", rows: "seconds", has: [Sums Map] }
    /// The code of one function.
    Code { tab: Code, short: "Code", name: "Code", word: "code",
        row: "row here", rows: "rows here", has: [Names Functions Compares] }
    Health { tab: Health, short: "Health", name: "Health", word: "health",
        row: "line", rows: "lines", has: [Sums] }
    Probes { tab: Probes, short: "Probes", name: "Probes", word: "probes",
        row: "probe", rows: "probes", has: [] }
}

/// Whether the view at this position has a tab of its own.
const fn has_tab(at: usize) -> bool {
    FACTS[at].0 as usize == FACTS[at].1.tab as usize
}

/// Number of tabs.
const TABS: usize = {
    let (mut at, mut tabs) = (0, 0);
    while at < FACTS.len() {
        tabs += has_tab(at) as usize;
        at += 1;
    }
    tabs
};

impl ViewId {
    /// The views that have a tab of their own, in the order of the tabs.
    pub const ALL: [ViewId; TABS] = {
        let mut all = [ViewId::Functions; TABS];
        let (mut at, mut tab) = (0, 0);
        while at < FACTS.len() {
            if has_tab(at) {
                all[tab] = FACTS[at].0;
                tab += 1;
            }
            at += 1;
        }
        all
    };

    fn facts(self) -> &'static Facts {
        let (view, facts) = &FACTS[self as usize];
        debug_assert_eq!(*view, self, "facts are in the order of the views");
        facts
    }

    /// Returns the name in the line of tabs.
    pub fn short_name(self) -> &'static str {
        self.facts().short
    }

    /// Returns the full name, for sentences and titles.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Returns the name on the command line and in the configuration.
    pub fn word(self) -> &'static str {
        self.facts().word
    }

    /// Returns what one row is called, in the singular and in the plural.
    pub fn rows(self) -> (&'static str, &'static str) {
        (self.facts().row, self.facts().rows)
    }

    /// Whether the view has this property.
    pub fn has(self, feature: Feature) -> bool {
        self.facts().has.contains(&feature)
    }

    /// Returns a sentence if the recording lacks the data for this view, and `None` if the view can
    /// show something.
    pub fn lacking(self, snapshot: &Snapshot) -> Option<&'static str> {
        let lacks = snapshot.source.recording.as_ref()?.lacks;
        match self {
            ViewId::Time if lacks.time => Some("this file does not say when samples were taken"),
            ViewId::Threads if lacks.people => Some("this file has no numbers of threads"),
            _ => None,
        }
    }

    /// Returns the view of the next tab. After the last tab comes the first.
    pub fn next(self) -> ViewId {
        Self::ALL[(self.position() + 1) % Self::ALL.len()]
    }

    /// Returns the view of the previous tab. Before the first tab comes the last.
    pub fn previous(self) -> ViewId {
        Self::ALL[(self.position() + Self::ALL.len() - 1) % Self::ALL.len()]
    }

    /// Returns the position of the view's tab.
    fn position(self) -> usize {
        let tab = self.tab();
        Self::ALL.iter().position(|view| *view == tab).unwrap_or(0)
    }

    /// Returns the view whose tab is highlighted while this view is open.
    pub fn tab(self) -> ViewId {
        self.facts().tab
    }
}
