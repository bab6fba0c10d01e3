//! Errors of reading files: what was attempted, and how it failed.

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
    /// An ELF file of an unsupported kind.
    #[error("big-endian, or 32-bit and neither of x86 nor of Arm: such ELF files are not read")]
    Unsupported,
    /// Its parts contradict each other, or it was cut off; the text says which part.
    #[error("damaged ELF file: {0}")]
    Damaged(&'static str),
    /// It is deliberately not read because of its size or kind; the text says why.
    #[error("refused: {0}")]
    Refused(&'static str),
}

impl OpenError {
    /// Returns the same error for another caller. Of the operating system's error only the kind is
    /// kept.
    pub(crate) fn again(&self) -> OpenError {
        match self {
            OpenError::Read { what, source } => OpenError::Read {
                what,
                source: source.kind().into(),
            },
            OpenError::Write { source } => OpenError::Write {
                source: source.kind().into(),
            },
            OpenError::NotElf => OpenError::NotElf,
            OpenError::Unsupported => OpenError::Unsupported,
            OpenError::Damaged(what) => OpenError::Damaged(what),
            OpenError::Refused(what) => OpenError::Refused(what),
        }
    }

    /// Converts the error to the reason that is stored for missing names.
    pub fn reason(&self) -> Reason {
        match self {
            OpenError::Read { source, .. } => io_reason(source),
            OpenError::NotElf | OpenError::Damaged(_) => Reason::Damaged,
            OpenError::Unsupported => Reason::Unsupported,
            OpenError::Refused(_) | OpenError::Write { .. } => Reason::Refused,
        }
    }
}

/// Converts an I/O error to the reason that is stored for missing names.
pub(crate) fn io_reason(error: &io::Error) -> Reason {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Reason::NoPermission,
        // The file became shorter while it was read.
        io::ErrorKind::UnexpectedEof => Reason::ChangedOnDisk,
        _ => Reason::FileGone,
    }
}
