//! A file of which others are asked, as whoever asks has it: open, and with a number.

use std::fs::File;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::answer;
use super::names::FileNames;
use super::order::{self, Beside, OFFSETS_MAX};
use crate::debug_file::DebugFiles;
use crate::files::{Order, Work};
use crate::{FileOffset, FileSource, Files, Origin, Reason, Writers};

/// A file that processes have mapped, whose content is understood elsewhere.
#[derive(Debug)]
pub struct OpenedFile {
    /// No other has it in this run.
    number: u64,
    file: File,
    writers: Writers,
    /// Its debug file, once it was looked for: a process that takes the place of another one
    /// is to read the same.
    beside: OnceLock<Option<(File, Origin)>>,
}

impl OpenedFile {
    pub fn new(file: File) -> OpenedFile {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        OpenedFile {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            writers: Writers::of(&file).unwrap_or(Writers::UNKNOWN),
            file,
            beside: OnceLock::new(),
        }
    }

    /// The file itself.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The same file, of which nothing is known yet; `None` without a descriptor for it.
    pub fn again(&self) -> Option<OpenedFile> {
        self.file.try_clone().ok().map(OpenedFile::new)
    }

    /// What the file tells of some places.
    pub fn names(
        &self,
        source: &FileSource<'_>,
        way: &Files,
        offsets: &[FileOffset],
    ) -> Result<FileNames, Reason> {
        let mut all: Option<FileNames> = None;
        let mut left = offsets;
        loop {
            let asked = &left[..left.len().min(OFFSETS_MAX)];
            let names = self.some_names(source, way, asked)?;
            // Long names may leave no room for the last of them.
            let answered = names.places.len();
            if answered > asked.len() || answered == 0 && !asked.is_empty() {
                return Err(Reason::Refused);
            }
            left = &left[answered..];
            match &mut all {
                Some(all) => all.places.extend(names.places),
                None => all = Some(names),
            }
            if left.is_empty() {
                return all.ok_or(Reason::Refused);
            }
        }
    }

    fn some_names(
        &self,
        source: &FileSource<'_>,
        way: &Files,
        offsets: &[FileOffset],
    ) -> Result<FileNames, Reason> {
        let places;
        let beside = match self.beside.get() {
            Some(Some((file, origin))) => Beside::Found(file, *origin),
            Some(None) => Beside::Nothing,
            None => {
                places = DebugFiles::of(source, way);
                Beside::Unknown(&places)
            }
        };
        let (message, files) = order::write(&self.file, &beside, offsets);
        let reply = way.parse(&Order {
            work: Work::Names,
            file: self.number,
            writers: self.writers,
            files: &files,
            message: &message,
        })?;
        let (names, origin) = answer::read(&reply.bytes).ok_or(Reason::Refused)?;
        if matches!(beside, Beside::Unknown(_)) {
            let found = reply.file.map(File::from).zip(origin);
            // Of two that looked at once either has the right one.
            _ = self.beside.set(found);
        }
        Ok(names)
    }
}
