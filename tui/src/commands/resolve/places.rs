//! The places in which files of a recording are searched: their paths on this machine, and all
//! files below directories that the user names. In the latter, debug files are enough.

use super::kernel::KernelFiles;
use crate::commands::input;
use crate::failure::Failure;
use probe::privilege::UserRights;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use symbolize::debug_file::DebugFiles;
use symbolize::object::Object;
use symbolize::{FileSource, Files, RemoteFiles, Resolver, opener};

/// Maximum number of bytes of debug information of one file that are held in memory.
const DEBUG_BYTES_MAX: u64 = 8 << 30;

/// Maximum number of files and folders that are visited below all directories together.
const ENTRIES_MAX: usize = 1 << 20;
/// Maximum depth of folders.
const DEPTH_MAX: usize = 32;

/// The places, as far as they can be opened before rights are given up. The files in them are read
/// later.
#[derive(Debug, Default)]
pub struct Places {
    /// The root directory. Without it no file is opened by its path.
    root: Option<OwnedFd>,
    kernel: KernelFiles,
    /// All programs, libraries and debug files below the named directories.
    listed: Vec<PathBuf>,
    /// Those files by build-id, once they were read.
    below: HashMap<Vec<u8>, PathBuf>,
    /// Files with debug information only.
    debug_below: HashMap<Vec<u8>, PathBuf>,
}

impl Places {
    /// Opens the places of this machine.
    pub fn of_this_machine() -> Self {
        Self {
            root: opener::our_root(),
            kernel: KernelFiles::open(),
            ..Self::default()
        }
    }

    /// Opens the places of this machine, and lists the programs and libraries below directories with
    /// the rights of the user.
    pub fn with_directories(directories: &[PathBuf]) -> Result<Self, Failure> {
        let mut places = Self::of_this_machine();
        let mut entries = 0;
        for directory in directories {
            let name = || input::name(directory);
            // A process with a deadline tests the directory first: listing a folder of a file
            // server that does not answer would never end.
            let answers = std::path::absolute(directory)
                .map_or(Ok(()), |path| probe::files::of_targets().answers(&path));
            answers.map_err(|_| {
                Failure::failed(format!(
                    "cannot read {}: its file system does not answer",
                    name()
                ))
            })?;
            let listed = UserRights::current().run(|| {
                let directory = fs::canonicalize(directory)?;
                fs::read_dir(&directory)?;
                places.list(&directory, 0, &mut entries);
                Ok(())
            });
            listed.map_err(|error: io::Error| {
                let name = name();
                Failure::failed(format!("cannot read {name}: {error}"))
            })?;
        }
        Ok(places)
    }

    /// Returns what has to stay open for the files to be read later.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let root = self.root.as_ref().map(OwnedFd::as_fd);
        root.into_iter().chain(self.kernel.descriptor())
    }

    /// Encodes the places of this machine for another process, which gets [`Places::descriptors`] as
    /// well. What was listed below directories is left out.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend([
            u8::from(self.root.is_some()),
            u8::from(self.kernel.descriptor().is_some()),
        ]);
        let notes = self.kernel.notes();
        out.extend((notes.len() as u32).to_le_bytes());
        out.extend(notes);
    }

    /// Decodes places that [`Places::write`] has encoded, and leaves the bytes behind them. `None` if
    /// they are malformed.
    pub fn told(bytes: &mut &[u8], mut files: impl Iterator<Item = OwnedFd>) -> Option<Self> {
        let (&[has_root, has_symbols], rest) = bytes.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (notes, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        *bytes = rest;
        let mut next = |is_there: u8| if is_there == 0 { None } else { files.next() };
        Some(Self {
            root: next(has_root),
            kernel: KernelFiles::of(notes.to_vec(), next(has_symbols).map(File::from)),
            ..Self::default()
        })
    }

    /// Returns what the running kernel tells of itself.
    pub fn kernel(&self) -> &KernelFiles {
        &self.kernel
    }

    /// Lists all ELF files below a directory, within the limits. Unreadable ones are skipped.
    fn list(&mut self, directory: &Path, depth: usize, entries: &mut usize) {
        let Ok(listed) = fs::read_dir(directory) else {
            return;
        };
        for entry in listed.flatten() {
            *entries += 1;
            if *entries > ENTRIES_MAX {
                return;
            }
            let path = entry.path();
            match entry.file_type() {
                // Symbolic links lead to files that are found anyway, or out of the directory.
                Ok(kind) if kind.is_dir() && depth < DEPTH_MAX => {
                    self.list(&path, depth + 1, entries);
                }
                Ok(kind) if kind.is_file() && is_elf(&path) => self.listed.push(path),
                _ => {}
            }
        }
    }

    /// Reads the build-ids of the listed files. If several have the same one, the first is kept.
    pub fn read_build_ids(&mut self) {
        for path in std::mem::take(&mut self.listed) {
            let Some(object) = self.read(&path) else {
                continue;
            };
            let Some(build_id) = object.build_id() else {
                continue;
            };
            let files = if object.is_debug_only() {
                &mut self.debug_below
            } else {
                &mut self.below
            };
            files.entry(build_id).or_insert(path);
        }
    }

    /// Opens the recorded file, or its debug file. If the recording has no build-id of it, the file
    /// at its path on this machine is used. None if none is found.
    pub fn open(&self, path: &str, build_id: &[u8]) -> Option<Resolver> {
        let main = self.main(Path::new(path), build_id);
        let debug = self
            .debug_below
            .get(build_id)
            .and_then(|found| Some((self.read(found)?, found.clone())));
        match (main, debug) {
            (Some((main, path)), None) => self.resolver(main, &path),
            (Some((main, _)), Some((debug, path))) => {
                self.resolver(debug.belonging_to(&main), &path)
            }
            (None, Some((debug, path))) => self.resolver(debug.laid_out(), &path),
            (None, None) => None,
        }
    }

    /// Finds the recorded file, and returns it with its path.
    fn main(&self, path: &Path, build_id: &[u8]) -> Option<(Object, PathBuf)> {
        if let Some(found) = self.below.get(build_id) {
            return Some((self.read(found)?, found.clone()));
        }
        // Anybody may have made the recording, so only regular files on local disks are opened.
        let file = files().open_beneath(self.root.as_ref()?, path).ok()?;
        let object = Object::read(&file).ok()?;
        let is_it = build_id.is_empty() || object.build_id().as_deref() == Some(build_id);
        is_it.then(|| (object, path.to_path_buf()))
    }

    /// Reads a file below a named directory, which may be on a remote file system. None if it is not
    /// an ELF file.
    fn read(&self, path: &Path) -> Option<Object> {
        let files = files().with_remote(RemoteFiles::Open);
        let file = files.open_beneath(self.root.as_ref()?, path).ok()?;
        Object::read(&file).ok()
    }

    /// Returns the resolver for addresses in a file, with its debug information if that is found.
    fn resolver(&self, object: Object, path: &Path) -> Option<Resolver> {
        let source = FileSource {
            root: self.root.as_ref(),
            ..FileSource::new(path)
        };
        Resolver::of_file(object, || DebugFiles::of(&source, files()), DEBUG_BYTES_MAX).ok()
    }
}

/// Returns the access to files with the rights of the user: their paths may come from anybody.
fn files() -> Files {
    probe::files::of_user()
}

/// Whether the first bytes are those of an ELF file.
fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"\x7fELF"
}
