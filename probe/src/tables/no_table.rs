//! Why a file has no unwind table: this is not an error, but a regular result.

/// The reason why code of a file is walked by frame pointers only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NoTable {
    /// The file has no unwind information at all.
    NoUnwindInfo,
    /// The file, or its unwind information, is damaged.
    Damaged,
    /// The file has more code or more rows than a table can have.
    TooLarge,
    /// The file is for a machine whose tables are not supported.
    UnsupportedMachine,
    /// The file could not be read.
    Unreadable,
    /// The tables of other files fill all the memory for tables.
    NoRoom,
    /// The tables of this user's files have used up their share of the memory, and the rest is
    /// reserved for others.
    OverShare,
}

impl NoTable {
    /// Every reason.
    pub const ALL: [NoTable; 7] = [
        NoTable::NoUnwindInfo,
        NoTable::Damaged,
        NoTable::TooLarge,
        NoTable::UnsupportedMachine,
        NoTable::Unreadable,
        NoTable::NoRoom,
        NoTable::OverShare,
    ];

    /// Whether there may be a table when there is more room.
    pub fn is_for_want_of_room(self) -> bool {
        matches!(self, NoTable::NoRoom | NoTable::OverShare)
    }

    /// Returns the word in output for scripts.
    pub fn label(self) -> &'static str {
        match self {
            NoTable::NoUnwindInfo => "no_unwind_info",
            NoTable::Damaged => "damaged",
            NoTable::TooLarge => "too_large",
            NoTable::UnsupportedMachine => "unsupported_machine",
            NoTable::Unreadable => "unreadable",
            NoTable::NoRoom => "no_room",
            NoTable::OverShare => "over_share",
        }
    }

    /// Returns a sentence for the user.
    pub fn explain(self) -> &'static str {
        match self {
            NoTable::NoUnwindInfo => "The file has no unwind information.",
            NoTable::Damaged => "The file's unwind information is damaged.",
            NoTable::TooLarge => "The file's unwind information is larger than the limits allow.",
            NoTable::UnsupportedMachine => "The file is for a machine that is not supported.",
            NoTable::Unreadable => "The file could not be read.",
            NoTable::NoRoom => "The memory for unwind tables is full.",
            NoTable::OverShare => "Files of its owner take their share of the memory for tables.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_holds_every_reason_with_its_own_words() {
        let mut labels: Vec<_> = NoTable::ALL.iter().map(|reason| reason.label()).collect();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), NoTable::ALL.len());
        assert_eq!(NoTable::OverShare as usize + 1, NoTable::ALL.len());
        assert!(
            NoTable::ALL
                .iter()
                .all(|reason| reason.explain().ends_with('.'))
        );
    }
}
