//! The views there are, by number and name.

use engine::snapshot::Snapshot;

/// The views there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ViewId {
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

impl ViewId {
    pub const ALL: [ViewId; 8] = [
        ViewId::Functions,
        ViewId::Tree,
        ViewId::Flame,
        ViewId::Processes,
        ViewId::Threads,
        ViewId::Time,
        ViewId::Code,
        ViewId::Health,
    ];

    /// As in the tab line.
    pub fn short_name(self) -> &'static str {
        match self {
            ViewId::Functions | ViewId::Page => "Func",
            ViewId::Tree => "Tree",
            ViewId::Flame => "Flame",
            ViewId::Processes => "Proc",
            ViewId::Threads => "Thread",
            ViewId::Time => "Time",
            ViewId::Code => "Code",
            ViewId::Health => "Health",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            ViewId::Functions => "Functions",
            ViewId::Tree => "Call tree",
            ViewId::Flame => "Flame graph",
            ViewId::Page => "Function",
            ViewId::Processes => "Processes",
            ViewId::Threads => "Threads",
            ViewId::Time => "Time",
            ViewId::Code => "Code",
            ViewId::Health => "Health",
        }
    }

    /// Its name for the command line and the configuration.
    pub fn word(self) -> &'static str {
        match self {
            ViewId::Tree => "tree",
            ViewId::Flame => "flame",
            ViewId::Functions => "functions",
            ViewId::Page => "function",
            ViewId::Processes => "processes",
            ViewId::Threads => "threads",
            ViewId::Time => "time",
            ViewId::Code => "code",
            ViewId::Health => "health",
        }
    }

    /// Why there is nothing to see in it, with this source of samples.
    pub fn lacking(self, snapshot: &Snapshot) -> Option<&'static str> {
        let lacks = snapshot.recording.as_ref()?.lacks;
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
        match self {
            ViewId::Page => ViewId::Functions,
            view => view,
        }
    }
}
