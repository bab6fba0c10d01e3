//! Identifies the file that a process mapped.

use std::fs::File;
use std::io;

use crate::Writers;
use crate::revision::Revision;

/// The state of a file when it was seen mapped, and who could change it then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileIdentity {
    /// Which file it was, and in which state.
    pub revision: Revision,
    /// Who could write to it.
    pub writers: Writers,
}

impl FileIdentity {
    /// The identity of a file in its current state.
    pub fn of(file: &File) -> io::Result<FileIdentity> {
        Ok(FileIdentity {
            revision: Revision::now(file)?,
            writers: Writers::of(file)?,
        })
    }

    /// Encodes the identity for another process of this program.
    pub fn to_words(&self) -> [u64; 9] {
        let [a, b, c, d, e, f, g] = self.revision.to_words();
        let [h, i] = self.writers.to_words();
        [a, b, c, d, e, f, g, h, i]
    }

    /// Decodes the result of [`FileIdentity::to_words`].
    pub fn from_words([a, b, c, d, e, f, g, h, i]: [u64; 9]) -> FileIdentity {
        FileIdentity {
            revision: Revision::from_words([a, b, c, d, e, f, g]),
            writers: Writers::from_words([h, i]),
        }
    }

    /// Whether a file with the same build-id can be assumed to have the same contents. Anybody can
    /// give a file any build-id, so it is accepted only among files of one user, which no other
    /// user can write to.
    pub fn trusts_build_id_of(&self, other: &FileIdentity) -> bool {
        self.writers.only().is_some() && self.writers.only() == other.writers.only()
    }
}
