//! A file on the asking side: open, and with a number by which the parser caches it.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::{MemfdFlags, memfd_create};

use super::answer;
use super::known::KnownNames;
use super::names::{FileNames, PlaceName, PlaceNames};
use super::order::{self, Beside, OFFSETS_MAX};
use crate::debug_file::DebugFiles;
use crate::files::{Order, Reply, Work};
use crate::{FileOffset, FileSource, Files, Origin, Reason, Writers};

/// A file that processes have mapped, whose contents another process parses.
#[derive(Debug)]
pub struct OpenedFile {
    /// Number of the file, unique within this run.
    number: u64,
    file: File,
    writers: Writers,
    /// Its debug file, once it was searched: a process that replaces another one has to read the
    /// same file.
    beside: OnceLock<Option<(File, Origin)>>,
    /// Names that were already found.
    known: Mutex<KnownNames>,
}

impl OpenedFile {
    /// Gives a file the next number. Nothing is known about it yet.
    pub fn new(file: File) -> OpenedFile {
        OpenedFile {
            number: next_number(),
            writers: Writers::of(&file).unwrap_or(Writers::UNKNOWN),
            file,
            beside: OnceLock::new(),
            known: Mutex::default(),
        }
    }

    /// Makes a file in memory of an ELF image that was read from a process's memory. The process may
    /// have written to it, so its writers count as unknown. It has no debug file.
    pub fn of_image(image: &[u8]) -> io::Result<OpenedFile> {
        let mut file = File::from(memfd_create("proftop-image", MemfdFlags::CLOEXEC)?);
        file.write_all(image)?;
        Ok(OpenedFile {
            writers: Writers::UNKNOWN,
            beside: OnceLock::from(None),
            ..OpenedFile::new(file)
        })
    }

    /// The file itself.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The room on the disk that is only taken because the file is open: its own, if it has no name
    /// any more.
    pub fn deleted_bytes(&self) -> usize {
        /// The unit of the number of blocks, whatever the file system's own is.
        const BLOCK: u64 = 512;
        let file = self.file.metadata().ok().filter(|file| file.nlink() == 0);
        file.map_or(0, |file| (file.blocks() * BLOCK) as usize)
    }

    /// Returns the same file without any cached data; `None` if no further descriptor is available.
    pub fn again(&self) -> Option<OpenedFile> {
        self.file.try_clone().ok().map(OpenedFile::new)
    }

    /// Looks up some places in the file. Only places whose names are unknown are sent to the
    /// parser.
    pub fn names(
        &self,
        source: &FileSource<'_>,
        way: &Files,
        offsets: &[FileOffset],
    ) -> Result<FileNames, Reason> {
        let known = self.known();
        let (origin, mut places) = (known.origin(), find_each(&known, offsets));
        drop(known);
        let missing = offsets
            .iter()
            .zip(&places)
            .filter(|(_, place)| place.is_none());
        let missing: Vec<FileOffset> = missing.map(|(offset, _)| *offset).collect();
        let origin = match origin.filter(|_| missing.is_empty()) {
            Some(origin) => origin,
            None => {
                let told = self.ask(source, way, &missing)?;
                add_all(&mut self.known(), &missing, &told);
                let gaps = places.iter_mut().filter(|place| place.is_none());
                gaps.zip(told.places)
                    .for_each(|(gap, place)| *gap = Some(place));
                told.origin
            }
        };
        Ok(FileNames {
            origin,
            places: places.into_iter().flatten().collect(),
        })
    }

    /// Drops the names that were found.
    pub fn forget_names(&self) {
        self.known().forget();
    }

    /// Bytes of heap used by names.
    pub fn heap_bytes(&self) -> usize {
        self.known().heap_bytes()
    }

    /// A poisoned lock is used all the same: no code panics while it holds the lock, and every
    /// state is consistent.
    fn known(&self) -> MutexGuard<'_, KnownNames> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(
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
            // If names are long, the answer may lack the last ones.
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

    /// Sends an order about the file.
    pub fn order(
        &self,
        way: &Files,
        work: Work,
        files: &[BorrowedFd<'_>],
        message: &[u8],
    ) -> Result<Reply, Reason> {
        way.parse(&Order {
            work,
            file: self.number,
            writers: self.writers,
            process: None,
            files,
            message,
        })
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
        let reply = self.order(way, Work::Names, &files, &message)?;
        let (names, origin) = answer::read(&reply.bytes).ok_or(Reason::Refused)?;
        if matches!(beside, Beside::Unknown(_)) {
            let found = reply.file.map(File::from).zip(origin);
            // If two threads searched at once, both have the right one.
            _ = self.beside.set(found);
        }
        Ok(names)
    }
}

/// Returns a number that is unique in this run, for everything that parser processes are asked
/// about.
pub fn next_number() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// Returns what is known about each of these places.
fn find_each(known: &KnownNames, offsets: &[FileOffset]) -> Vec<Option<PlaceNames>> {
    let place = |offset: &FileOffset| {
        let (name, same) = known.find(*offset)?;
        Some(PlaceNames {
            name: PlaceName::Named {
                name: name.into(),
                same: Some(same),
            },
            lines: Vec::new(),
        })
    };
    offsets.iter().map(place).collect()
}

/// Stores the answer for these places. A name whose range does not include the place itself is
/// ignored.
fn add_all(known: &mut KnownNames, offsets: &[FileOffset], told: &FileNames) {
    known.set_origin(told.origin);
    for (offset, place) in offsets.iter().zip(&told.places) {
        if let PlaceName::Named {
            name,
            same: Some(same),
        } = &place.name
            && same.contains(&offset.0)
        {
            known.add(same.clone(), name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_has_told_is_known_of_other_places() {
        let mut known = KnownNames::default();
        let place = |name: &str, same| PlaceNames {
            name: PlaceName::Named {
                name: name.into(),
                same,
            },
            lines: Vec::new(),
        };
        let unnamed = PlaceNames {
            name: PlaceName::Unnamed {
                reason: Reason::NotCovered,
                start: None,
            },
            lines: Vec::new(),
        };
        let names = FileNames {
            origin: Origin::SymbolTable,
            // The range of the last one is wrong: it does not contain the requested place.
            places: vec![place("f", Some(8..16)), unnamed, place("g", Some(100..200))],
        };
        add_all(&mut known, &[10, 20, 30].map(FileOffset), &names);
        let first = Some(names.places[0].clone());
        assert_eq!(
            find_each(&known, &[15, 8, 20, 150].map(FileOffset)),
            [first.clone(), first, None, None]
        );
        assert_eq!(known.origin(), Some(Origin::SymbolTable));
    }
}
