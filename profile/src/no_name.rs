//! Why a frame has no name.

/// Declares the reasons, each with its identifier, in one list.
macro_rules! reasons {
    ($($(#[$doc:meta])+ $name:ident = $label:literal,)+) => {
        /// Why a frame has no name: a fixed set, so that frames can be counted by reason.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum NoName {
            $($(#[$doc])+ $name,)+
        }

        impl NoName {
            /// Every reason, in the order of the enum.
            pub const ALL: [NoName; [$($label),+].len()] = [$(NoName::$name),+];

            /// The identifier used in files and for scripts.
            pub fn label(self) -> &'static str {
                match self {
                    $(NoName::$name => $label,)+
                }
            }
        }
    };
}

reasons! {
    /// The sample has no stack at all, so there is nothing to name.
    NoStack = "no stack",
    /// The name is empty.
    EmptyName = "empty name",
    /// The file was stripped and exports no symbol here.
    Stripped = "stripped",
    /// The file has symbols, and none covers the address.
    NotCovered = "not_covered",
    /// The file cannot be opened any more.
    FileGone = "file_gone",
    /// The file at that path is not the one that was mapped.
    ChangedOnDisk = "changed_on_disk",
    /// Not a regular file, or too large.
    Refused = "refused",
    /// Not an ELF file, or a damaged one.
    Damaged = "damaged",
    /// No right to read the file.
    NoPermission = "no_permission",
    /// Code made at run time, without a map of it.
    Jit = "jit",
    /// Code made at run time that is not in its map.
    JitNotCovered = "jit_not_covered",
    /// The map of code made at run time could have been written by another user.
    JitMapRefused = "jit_map_refused",
    /// No mapping of the process holds the address.
    Unmapped = "unmapped",
    /// The kernel hides its symbols.
    KernelHidden = "kernel_hidden",
    /// A file for a machine architecture that is not supported.
    Unsupported = "unsupported",
    /// The file is on a network filesystem, which could stall its reader.
    Remote = "remote",
    /// A Python function that was freed before its name was read, or there were too many new ones.
    CodeGone = "code_gone",
    /// An error in proftop itself while it looked for the name.
    Mistake = "mistake",
    /// The file that the profile was read from has no name for it.
    NotTold = "not_told",
    /// Names were left out of the recording on purpose.
    LeftOut = "left_out",
    /// The recording ended before the name was found.
    NotFoundInTime = "the recording ended before its name was found",
    /// A reason that this version does not know, from a file of a newer version.
    Other = "other",
}

impl NoName {
    /// Returns the reason with that identifier; [`NoName::Other`] if it is unknown.
    pub fn from_label(label: &str) -> Self {
        let found = NoName::ALL.into_iter().find(|it| it.label() == label);
        found.unwrap_or(NoName::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_comes_back_from_its_word() {
        for (at, reason) in NoName::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at);
            assert_eq!(NoName::from_label(reason.label()), reason);
        }
        assert_eq!(NoName::from_label("of a newer version"), NoName::Other);
    }
}
