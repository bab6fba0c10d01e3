//! What was attempted on a file, and how it failed.

use std::io;

use crate::Reason;

/// A file could not be opened or read as an object.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system failed to read it.
    #[error("failed to read {what}")]
    Read {
        /// Which part was being read.
        what: &'static str,
        /// Why that failed.
        #[source]
        source: io::Error,
    },
    /// The operating system failed to write a table.
    #[error("failed to write the symbol table")]
    Write {
        /// Why that failed.
        #[source]
        source: io::Error,
    },
    /// Its first bytes are not those of an ELF file.
    #[error("not an ELF file")]
    NotElf,
    /// An ELF file of a kind that is not read.
    #[error("big-endian, or 32-bit and neither of x86 nor of Arm: such ELF files are not read")]
    Unsupported,
    /// Its parts contradict each other, or it was cut; the text says which part.
    #[error("damaged ELF file: {0}")]
    Damaged(&'static str),
    /// It is not read on purpose, for its size or kind; the text says why.
    #[error("refused: {0}")]
    Refused(&'static str),
}

impl OpenError {
    /// The same, as the answer that a missing name carries.
    pub fn reason(&self) -> Reason {
        match self {
            OpenError::Read { source, .. } => io_reason(source),
            OpenError::NotElf | OpenError::Damaged(_) => Reason::Damaged,
            OpenError::Unsupported => Reason::Unsupported,
            OpenError::Refused(_) | OpenError::Write { .. } => Reason::Refused,
        }
    }
}

/// The answer that an I/O error amounts to.
pub(crate) fn io_reason(error: &io::Error) -> Reason {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Reason::NoPermission,
        // The file became shorter while it was read.
        io::ErrorKind::UnexpectedEof => Reason::ChangedOnDisk,
        _ => Reason::FileGone,
    }
}
