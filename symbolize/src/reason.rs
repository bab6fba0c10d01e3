//! Why there is no name: not an error, but an answer.

/// Why an address has no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The file has no symbol table at all.
    Stripped,
    /// The file has symbols, and none covers this address.
    NotCovered,
    /// The file cannot be opened any more.
    FileGone,
    /// The file at that path is not the one that was mapped.
    ChangedOnDisk,
    /// Refused: not a regular file, or too large.
    Refused,
    /// Not an ELF file, or a damaged one.
    Damaged,
    /// No right to read it.
    NoPermission,
    /// Code made at run time, without a map of it.
    Jit,
    /// No mapping of the process holds this address.
    Unmapped,
    /// The kernel hides its symbols (kptr_restrict, no CAP_SYSLOG).
    KernelHidden,
}

impl Reason {
    /// The word that scripts see.
    pub fn label(self) -> &'static str {
        match self {
            Reason::Stripped => "stripped",
            Reason::NotCovered => "not_covered",
            Reason::FileGone => "file_gone",
            Reason::ChangedOnDisk => "changed_on_disk",
            Reason::Refused => "refused",
            Reason::Damaged => "damaged",
            Reason::NoPermission => "no_permission",
            Reason::Jit => "jit",
            Reason::Unmapped => "unmapped",
            Reason::KernelHidden => "kernel_hidden",
        }
    }
}
