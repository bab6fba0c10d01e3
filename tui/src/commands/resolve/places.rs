//! The places in which files of a recording are searched: their paths on this machine, and all
//! files below directories that the user names. In the latter, debug files are enough.

use crate::commands::input;
use crate::failure::Failure;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use symbolize::debug_file::DebugFiles;
use symbolize::object::Object;
use symbolize::{FileSource, Resolver, opener};

/// Maximum number of bytes of debug information of one file that are held in memory.
const DEBUG_BYTES_MAX: u64 = 8 << 30;

/// Maximum number of files and folders that are visited below all directories together.
const ENTRIES_MAX: usize = 1 << 20;
/// Maximum depth of folders.
const DEPTH_MAX: usize = 32;

/// The files below the named directories, by build-id.
#[derive(Debug, Default)]
pub struct Places {
    below: HashMap<Vec<u8>, PathBuf>,
    /// Files with debug information only.
    debug_below: HashMap<Vec<u8>, PathBuf>,
}

impl Places {
    /// Reads the build-ids of all programs and libraries below directories.
    pub fn below(directories: &[PathBuf]) -> Result<Self, Failure> {
        let mut places = Self::default();
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
            let listed = fs::read_dir(directory).map(|_| ());
            listed.map_err(|error| {
                let name = name();
                Failure::failed(format!("cannot read {name}: {error}"))
            })?;
            places.walk(directory, 0, &mut entries);
        }
        Ok(places)
    }

    /// Visits all files below a directory, within the limits. Unreadable ones are skipped.
    fn walk(&mut self, directory: &Path, depth: usize, entries: &mut usize) {
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
                    self.walk(&path, depth + 1, entries);
                }
                Ok(kind) if kind.is_file() => self.add(path),
                _ => {}
            }
        }
    }

    /// Adds a file if it is an ELF file with a build-id. If several have the same one, the first is
    /// kept.
    fn add(&mut self, path: PathBuf) {
        let mut magic = [0; 4];
        let Ok(mut file) = File::open(&path) else {
            return;
        };
        if file.read_exact(&mut magic).is_err() || magic != *b"\x7fELF" {
            return;
        }
        let Ok(object) = Object::read(&file) else {
            return;
        };
        let Some(build_id) = object.build_id() else {
            return;
        };
        let files = if object.is_debug_only() {
            &mut self.debug_below
        } else {
            &mut self.below
        };
        files.entry(build_id).or_insert(path);
    }

    /// Opens the recorded file, or its debug file. If the recording has no build-id of it, the file
    /// at its path on this machine is used. None if none is found.
    pub fn open(&self, path: &str, build_id: &[u8]) -> Option<Resolver> {
        let main = self.main(Path::new(path), build_id);
        let debug = self
            .debug_below
            .get(build_id)
            .and_then(|found| Some((read(found)?, found.clone())));
        match (main, debug) {
            (Some((main, path)), None) => resolver(main, &path),
            (Some((main, _)), Some((debug, path))) => resolver(debug.belonging_to(&main), &path),
            (None, Some((debug, path))) => resolver(debug.laid_out(), &path),
            (None, None) => None,
        }
    }

    /// Finds the recorded file, and returns it with its path.
    fn main(&self, path: &Path, build_id: &[u8]) -> Option<(Object, PathBuf)> {
        if let Some(found) = self.below.get(build_id) {
            return Some((read(found)?, found.clone()));
        }
        // Anybody may have made the recording, so only regular files on local disks are opened.
        let root = opener::our_root()?;
        let file = probe::files::of_targets().open_beneath(root, path).ok()?;
        let object = Object::read(&file).ok()?;
        let is_it = build_id.is_empty() || object.build_id().as_deref() == Some(build_id);
        is_it.then(|| (object, path.to_path_buf()))
    }
}

/// Reads a file below a named directory. None if it is not an ELF file.
fn read(path: &Path) -> Option<Object> {
    Object::read(&File::open(path).ok()?).ok()
}

/// Returns the resolver for addresses in a file, with its debug information if that is found.
fn resolver(object: Object, path: &Path) -> Option<Resolver> {
    let path = path.canonicalize().ok()?;
    let files = || DebugFiles::of(&FileSource::new(&path), probe::files::of_targets());
    Resolver::of_file(object, files, DEBUG_BYTES_MAX).ok()
}
