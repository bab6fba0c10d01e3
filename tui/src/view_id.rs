//! The views there are, by number and name.

use engine::snapshot::Snapshot;

/// Makes [`ViewId`] and what is known of each view from one list.
macro_rules! views {
    ($($(#[$doc:meta])* $view:ident {
        tab: $tab:ident, short: $short:literal, name: $name:literal, word: $word:literal,
        row: $row:literal, rows: $rows:literal, has: [$($has:ident)*]
    })*) => {
        /// The views there are.
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

/// What is known of a view without its state.
#[derive(Debug)]
struct Facts {
    /// The view whose tab is open meanwhile: its own, if it has one.
    tab: ViewId,
    /// The name in the tab line.
    short: &'static str,
    name: &'static str,
    /// Its name for the command line and the configuration.
    word: &'static str,
    /// What one of its rows is, and several are.
    row: &'static str,
    rows: &'static str,
    has: &'static [Feature],
}

/// What views have in common: keys of several views work where the view has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Rows with names, among which one can be found.
    Names,
    /// Rows whose samples add up.
    Sums,
    /// Columns to sort by.
    Columns,
    /// Functions that are selected.
    Functions,
    /// Processes or threads that are selected.
    People,
    /// Callers and callees.
    Calls,
    /// Cells to the left and to the right.
    Map,
}

// In the order of the tabs; one without a tab of its own stands anywhere.
views! {
    Functions { tab: Functions, short: "Func", name: "Functions", word: "functions",
        row: "function", rows: "functions", has: [Names Sums Columns Functions] }
    Tree { tab: Tree, short: "Tree", name: "Call tree", word: "tree",
        row: "open row", rows: "open rows", has: [Names Functions Calls] }
    Flame { tab: Flame, short: "Flame", name: "Flame graph", word: "flame",
        row: "frame here", rows: "frames here", has: [Names Sums Functions Calls Map] }
    /// Of one function; it has no tab.
    Page { tab: Functions, short: "Func", name: "Function", word: "function",
        row: "row here", rows: "rows here", has: [Names Functions] }
    Processes { tab: Processes, short: "Proc", name: "Processes", word: "processes",
        row: "process", rows: "processes", has: [Names Sums Columns People] }
    Threads { tab: Threads, short: "Thread", name: "Threads", word: "threads",
        row: "thread", rows: "threads", has: [Names Sums Columns People] }
    Time { tab: Time, short: "Time", name: "Time", word: "time",
        row: "second", rows: "seconds", has: [Sums Map] }
    /// Of one function.
    Code { tab: Code, short: "Code", name: "Code", word: "code",
        row: "row here", rows: "rows here", has: [Names Functions] }
    Health { tab: Health, short: "Health", name: "Health", word: "health",
        row: "line", rows: "lines", has: [Sums] }
    Probes { tab: Probes, short: "Probes", name: "Probes", word: "probes",
        row: "probe", rows: "probes", has: [] }
}

const fn has_tab(at: usize) -> bool {
    FACTS[at].0 as usize == FACTS[at].1.tab as usize
}

const TABS: usize = {
    let (mut at, mut tabs) = (0, 0);
    while at < FACTS.len() {
        tabs += has_tab(at) as usize;
        at += 1;
    }
    tabs
};

impl ViewId {
    /// The views with a tab of their own, in the order of the tabs.
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

    /// As in the tab line.
    pub fn short_name(self) -> &'static str {
        self.facts().short
    }

    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Its name for the command line and the configuration.
    pub fn word(self) -> &'static str {
        self.facts().word
    }

    /// What one of its rows is, and several are.
    pub fn rows(self) -> (&'static str, &'static str) {
        (self.facts().row, self.facts().rows)
    }

    pub fn has(self, feature: Feature) -> bool {
        self.facts().has.contains(&feature)
    }

    /// Why there is nothing to see in it, with this source of samples.
    pub fn lacking(self, snapshot: &Snapshot) -> Option<&'static str> {
        let lacks = snapshot.source.recording.as_ref()?.lacks;
        match self {
            ViewId::Time if lacks.time => Some("this file does not say when samples were taken"),
            ViewId::Threads if lacks.people => Some("this file has no numbers of threads"),
            _ => None,
        }
    }

    pub fn next(self) -> ViewId {
        Self::ALL[(self.position() + 1) % Self::ALL.len()]
    }

    pub fn previous(self) -> ViewId {
        Self::ALL[(self.position() + Self::ALL.len() - 1) % Self::ALL.len()]
    }

    fn position(self) -> usize {
        let tab = self.tab();
        Self::ALL.iter().position(|view| *view == tab).unwrap_or(0)
    }

    /// The view whose tab is open.
    pub fn tab(self) -> ViewId {
        self.facts().tab
    }
}
