//! The files with code that processes have mapped.

use crate::naming::Build;
use probe::proc_maps;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use symbolize::parser::FileSites;
use symbolize::{FileSource, Files, Reason, Segments, Symbolizer, opener};

/// Maximum number of files: more than any group of processes has.
const MODULES_MAX: usize = 4096;

/// A file that is mapped as code.
#[derive(Debug, Clone)]
pub struct Module {
    /// Path as its processes see it.
    pub path: PathBuf,
    /// The mapped file, whatever its path leads to now.
    pub file: Arc<File>,
    /// Its functions, which another process reads.
    pub sites: Arc<FileSites>,
    /// Whether it is the program of a target, and not a library.
    pub is_program: bool,
}

impl Module {
    /// The build-id; empty if it has none.
    pub fn build_id(&self) -> &[u8] {
        &self.sites.facts().build_id
    }

    /// Where it is loaded.
    pub fn segments(&self) -> &Segments {
        &self.sites.facts().segments
    }

    /// A sentence about a file that cannot be read.
    pub fn unread(&self, reason: Reason) -> String {
        let why = reason.explain();
        format!(
            "{} was not looked through: {}",
            self.name(),
            why.trim_end_matches('.')
        )
    }

    /// The last component of its path.
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        symbolize::sanitize(name.as_encoded_bytes()).into_owned()
    }
}

/// Returns a sentence on mapped files that cannot be read; `None` if all can be.
pub fn explain_unreadable(files: &[(PathBuf, Reason)]) -> Option<String> {
    let (path, why) = files.first()?;
    let name = symbolize::sanitize(path.as_os_str().as_encoded_bytes());
    let others = match files.len() - 1 {
        0 => String::new(),
        many => format!(", nor {many} others"),
    };
    Some(format!(
        "{name} was not looked through ({}){others}",
        why.explain()
    ))
}

/// Opens every file that one of the processes has mapped, each once; returns also those that cannot
/// be read.
pub fn of_processes(
    pids: &[u32],
    way: &Files,
    symbolizer: &Symbolizer,
) -> (Vec<Module>, Vec<(PathBuf, Reason)>) {
    let mut seen = BTreeSet::new();
    let (mut modules, mut unreadable) = (Vec::new(), Vec::new());
    for pid in pids {
        // A process that has ended has nothing mapped.
        let mapped = proc_maps::read(*pid, way).unwrap_or_default();
        for source in mapped.iter().filter_map(|line| line.source(*pid)) {
            let key = (source.device, source.inode, source.path.to_path_buf());
            if modules.len() == MODULES_MAX || !seen.insert(key) {
                continue;
            }
            match open(*pid, source, way, symbolizer) {
                Ok(module) => modules.push(module),
                Err(reason) => unreadable.push((source.path.to_path_buf(), reason)),
            }
        }
    }
    (modules, unreadable)
}

/// Opens every file with this build-id that one of the processes has mapped: containers have a copy
/// each. Without a build-id only the same file matches.
pub fn copies_of(
    pids: &[u32],
    build: &Build<'_>,
    way: &Files,
    symbolizer: &Symbolizer,
) -> Vec<Module> {
    let name = build.path.file_name();
    let mut seen = BTreeSet::new();
    let mut copies: Vec<Module> = Vec::new();
    for pid in pids {
        let mapped = proc_maps::read(*pid, way).unwrap_or_default();
        for source in mapped.iter().filter_map(|line| line.source(*pid)) {
            let is_itself = (source.device, source.inode) == build.inode;
            let can_be = is_itself || !build.id.is_empty() && source.path.file_name() == name;
            if !can_be || copies.len() == COPIES_MAX || !seen.insert((source.device, source.inode))
            {
                continue;
            }
            let Ok(module) = open(*pid, source, way, symbolizer) else {
                continue;
            };
            if is_itself || module.build_id() == build.id {
                copies.push(module);
            }
        }
    }
    copies
}

/// Maximum number of copies of one file that are probed.
const COPIES_MAX: usize = 64;

/// Opens a file with code of this system, which no process need have mapped.
pub fn of_file(path: &Path, is_program: bool, symbolizer: &Symbolizer) -> Result<Module, Reason> {
    let way = probe::files::of_user();
    let root = opener::our_root().ok_or(Reason::FileGone)?;
    let file = way.open_beneath(root, path)?;
    let descriptor = file.try_clone().map_err(|_| Reason::FileGone)?.into();
    let sites = symbolizer.file_sites(FileSource {
        file: Some(&descriptor),
        ..FileSource::new(path)
    })?;
    Ok(Module {
        path: path.to_path_buf(),
        file: Arc::new(file),
        sites,
        is_program,
    })
}

/// Opens a mapped file and has its symbols read.
fn open(
    pid: u32,
    source: FileSource<'_>,
    way: &Files,
    symbolizer: &Symbolizer,
) -> Result<Module, Reason> {
    let file = way.open(&source)?;
    // Of the very file that gets the probe, not of what the path leads to by now.
    let descriptor = file.try_clone().map_err(|_| Reason::FileGone)?.into();
    let sites = symbolizer.file_sites(FileSource {
        file: Some(&descriptor),
        ..source
    })?;
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    Ok(Module {
        path: source.path.to_path_buf(),
        file: Arc::new(file),
        sites,
        is_program: program.is_ok_and(|program| program == source.path),
    })
}
