//! Why an address has no name. That is an answer, not an error.

/// Why an address has no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The file has no full symbol table, and its exported symbols (`.dynsym`), if any, do not
    /// cover this address.
    Stripped,
    /// The file has symbols, and none covers this address.
    NotCovered,
    /// The file cannot be opened any more.
    FileGone,
    /// The file at that path is not the one that was mapped.
    ChangedOnDisk,
    /// The file is not read: not a regular file, or too large.
    Refused,
    /// Not an ELF file, or a damaged one.
    Damaged,
    /// No permission to read the file.
    NoPermission,
    /// Code made at run time, without a map of it.
    Jit,
    /// Code made at run time that is not in its map.
    JitNotCovered,
    /// The map of code made at run time could have been written by another user.
    JitMapRefused,
    /// No mapping of the process holds this address.
    Unmapped,
    /// The kernel hides its symbols (kptr_restrict, no CAP_SYSLOG).
    KernelHidden,
    /// A valid ELF file of an unsupported class or byte order.
    Unsupported,
    /// On a network or FUSE filesystem, which could stall the reader for ever.
    Remote,
    /// A Python function whose code object was freed before it was read, or was not read because
    /// there was too much new code at once.
    CodeGone,
    /// An error in proftop itself while it looked for the name.
    Mistake,
}

impl Reason {
    /// Every reason, in the order of the enum.
    pub const ALL: [Reason; 16] = [
        Reason::Stripped,
        Reason::NotCovered,
        Reason::FileGone,
        Reason::ChangedOnDisk,
        Reason::Refused,
        Reason::Damaged,
        Reason::NoPermission,
        Reason::Jit,
        Reason::JitNotCovered,
        Reason::JitMapRefused,
        Reason::Unmapped,
        Reason::KernelHidden,
        Reason::Unsupported,
        Reason::Remote,
        Reason::CodeGone,
        Reason::Mistake,
    ];

    /// The identifier for scripts.
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
            Reason::JitNotCovered => "jit_not_covered",
            Reason::JitMapRefused => "jit_map_refused",
            Reason::Unmapped => "unmapped",
            Reason::KernelHidden => "kernel_hidden",
            Reason::Unsupported => "unsupported",
            Reason::Remote => "remote",
            Reason::CodeGone => "code_gone",
            Reason::Mistake => "mistake",
        }
    }

    /// Explains to the user in one sentence what happened.
    pub fn explain(self) -> &'static str {
        match self {
            Reason::Stripped => "The file was stripped: it names only what it exports.",
            Reason::NotCovered => "The file has symbols, but none covers this address.",
            Reason::FileGone => "The file cannot be opened any more.",
            Reason::ChangedOnDisk => "The file at that path is no longer the one that runs.",
            Reason::Refused => "Not a regular file, or larger than the limits allow.",
            Reason::Damaged => "Not an ELF file, or a damaged one.",
            Reason::NoPermission => "No right to read the file.",
            Reason::Jit => "Code made at run time, and its process has written no perf map.",
            Reason::JitNotCovered => "Code made at run time that the perf map does not have.",
            Reason::JitMapRefused => "The perf map is a link, or others may have written it.",
            Reason::Unmapped => "No mapping of the process holds this address.",
            Reason::KernelHidden => "The kernel hides the addresses of its symbols.",
            Reason::Unsupported => {
                "A big-endian ELF file, or a 32-bit one of a machine that is not read."
            }
            Reason::Remote => {
                "On a network or FUSE filesystem, which could stall us, or not opened in time."
            }
            Reason::CodeGone => {
                "A function of Python that was gone when its name was read, or too many were new."
            }
            Reason::Mistake => "proftop made a mistake of its own while it looked for the name.",
        }
    }

    /// Tells the user what he can do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            Reason::Stripped => "Install the package's debug symbols, or build without `-s`.",
            Reason::NotCovered => "Often assembly or padding; debug information may name it.",
            Reason::FileGone => "Profile while the process is alive, or keep the file.",
            Reason::ChangedOnDisk => "Restart the process after an upgrade.",
            Reason::Refused => "Nothing to do, unless the file should be an ordinary one.",
            Reason::Damaged => "Check the file with `readelf -a`.",
            Reason::NoPermission => "Run as root, or as the owner of the process.",
            Reason::Jit => {
                "node --perf-basic-prof, jcmd PID Compiler.perfmap, python -X perf, \
                 DOTNET_PerfMapEnabled=1 write one."
            }
            Reason::JitNotCovered => {
                "For Java run `jcmd PID Compiler.perfmap` again; \
                 for node add --interpreted-frames-native-stack."
            }
            Reason::JitMapRefused => "Let its own user write it, with `umask 022`, in /tmp.",
            Reason::Unmapped => "Usually code unmapped since, or a stack that was misread.",
            Reason::KernelHidden => "Run as root, or set `sysctl kernel.kptr_restrict=0`.",
            Reason::Unsupported => {
                "Nothing yet: little-endian files are read, of 32 bits those of x86 and Arm."
            }
            Reason::Remote => "Copy the file to a local disk, or allow remote files.",
            Reason::CodeGone => {
                "Usually its process had just ended, or it makes code all the time; nothing to do."
            }
            Reason::Mistake => "Report it, with the place that proftop prints when it ends.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn all_holds_every_reason_in_order_with_its_own_words() {
        assert!(Reason::ALL.is_sorted());
        let last = *Reason::ALL.last().unwrap();
        assert_eq!(last as usize + 1, Reason::ALL.len());

        let labels: HashSet<_> = Reason::ALL.iter().map(|r| r.label()).collect();
        assert_eq!(labels.len(), Reason::ALL.len());
        for reason in Reason::ALL {
            assert!(reason.explain().ends_with('.'), "{reason:?}");
            assert!(reason.remedy().ends_with('.'), "{reason:?}");
        }
    }
}
