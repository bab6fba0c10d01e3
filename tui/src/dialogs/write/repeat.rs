//! A *series of files*. Each contains what is counted at its time, and has a number in its name.
//! The series ends when the user ends it, when the target ends, or when a file cannot be written.

use super::{FileKind, Manner};
use std::path::PathBuf;
use std::time::Duration;

/// How many names in a row may belong to older files before the series ends.
const TAKEN_MAX: u32 = 1_000;

/// A series of files and its progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeat {
    pub kind: FileKind,
    pub manner: Manner,
    /// Whether all samples that are kept are written, and not only those that are shown.
    pub is_whole: bool,
    /// Time between two files.
    pub every: Duration,
    /// The name of the first file.
    name: String,
    /// The number of the file that is being written, or was written last.
    number: u32,
    /// How many names in a row belonged to older files.
    taken: u32,
    /// When the next file is due.
    next_at: Duration,
    /// Whether a file is being written.
    is_writing: bool,
    /// Number of files written.
    pub count: u32,
    /// Whether no more samples will come, so that the present file is the last one.
    pub is_last: bool,
}

impl Repeat {
    /// Starts a series with the file `name`, which is already being written.
    pub fn new(
        kind: FileKind,
        manner: Manner,
        is_whole: bool,
        name: &str,
        every: Duration,
        now: Duration,
    ) -> Self {
        Repeat {
            kind,
            manner,
            is_whole,
            every,
            name: name.to_owned(),
            number: 1,
            taken: 0,
            next_at: now + every,
            is_writing: true,
            count: 0,
            is_last: false,
        }
    }

    /// Returns the name of the file that is being written. From the second file on it has its
    /// number before the extension.
    pub fn path(&self) -> PathBuf {
        let (name, ending) = (&*self.name, self.kind.ending());
        let stem = name.strip_suffix(ending).unwrap_or(name);
        match self.number {
            1 => name.into(),
            number => format!("{stem}-{number}{ending}").into(),
        }
    }

    /// Whether the next file is due. If so, it counts as being written from now on. Files that
    /// became due while another one was written are skipped.
    pub fn is_due(&mut self, now: Duration) -> bool {
        let is_due = !self.is_writing && now >= self.next_at;
        if is_due {
            self.next_at = now + self.every;
            self.number += 1;
            self.is_writing = true;
        }
        is_due
    }

    /// Records that the present file was written.
    pub fn wrote(&mut self) {
        self.is_writing = false;
        self.taken = 0;
        self.count += 1;
    }

    /// Takes the next number, because an older file has this name. Returns false if that has
    /// happened too often.
    pub fn pass_over(&mut self) -> bool {
        self.number += 1;
        self.taken += 1;
        self.taken <= TAKEN_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::formats::Format;
    use std::path::Path;

    #[test]
    fn one_file_after_the_other() {
        let seconds = Duration::from_secs;
        let kind = FileKind::Profile(Format::Pprof);
        let mut repeat = Repeat::new(
            kind,
            Manner::default(),
            false,
            "a.pb.gz",
            seconds(10),
            seconds(5),
        );
        assert_eq!(repeat.path(), Path::new("a.pb.gz"));
        assert!(!repeat.is_due(seconds(99)), "the first is not out");
        repeat.wrote();
        assert!(!repeat.is_due(seconds(14)));
        assert!(repeat.is_due(seconds(33)));
        assert_eq!(repeat.path(), Path::new("a-2.pb.gz"));
        assert!(repeat.pass_over());
        assert_eq!(repeat.path(), Path::new("a-3.pb.gz"));
        repeat.wrote();
        assert!(!repeat.is_due(seconds(42)), "no two for one that came late");
        assert!(repeat.is_due(seconds(43)));
        assert!((0..TAKEN_MAX).all(|_| repeat.pass_over()));
        assert!(!repeat.pass_over());
    }

    #[test]
    fn a_name_without_an_ending_gets_one_with_its_number() {
        let every = Duration::from_secs(1);
        let kind = FileKind::Profile(Format::Pprof);
        let mut repeat = Repeat::new(kind, Manner::default(), false, "mine", every, every);
        assert_eq!(repeat.path(), Path::new("mine"));
        repeat.wrote();
        assert!(repeat.is_due(Duration::from_secs(9)));
        assert_eq!(repeat.path(), Path::new("mine-2.pb.gz"));
    }
}
