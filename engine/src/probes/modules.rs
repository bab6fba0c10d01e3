//! The files with code that processes have mapped.

use crate::naming::Build;
use probe::proc_maps;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use symbolize::debug_file::DebugFiles;
use symbolize::dwarf::DebugTypes;
use symbolize::table::Table;
use symbolize::{ElfSymbols, FileSource, Files, Reason, Symbolizer, opener};

/// Maximum number of files: more than any group of processes has.
const MODULES_MAX: usize = 4096;

/// Maximum memory of the debug information of one file while its types are read.
pub const TYPES_BYTES_MAX: u64 = 256 << 20;

/// Number of threads that read the lines of a file.
const THREADS: usize = 2;

/// A file that is mapped as code.
#[derive(Debug, Clone)]
pub struct Module {
    /// Path as its processes see it.
    pub path: PathBuf,
    /// The mapped file, whatever its path leads to now.
    pub file: Arc<File>,
    /// Its functions.
    pub symbols: Arc<ElfSymbols>,
    /// Whether it is the program of a target, and not a library.
    pub is_program: bool,
    /// The result of [`types`](Self::types).
    types: Types,
}

/// Types of a file, once they were read; `None` if there are none.
type Types = Arc<OnceLock<Option<Arc<DebugTypes>>>>;

impl Module {
    /// The build-id; empty if it has none.
    pub fn build_id(&self) -> Vec<u8> {
        self.symbols.object().build_id().unwrap_or_default()
    }

    /// Reads its line information. `None` if there is none, or too much.
    pub fn lines(&self, symbolizer: &Symbolizer) -> Option<Arc<Table>> {
        let descriptor = self.file.try_clone().ok()?.into();
        let lines = symbolizer.lines(FileSource {
            file: Some(&descriptor),
            ..FileSource::new(&self.path)
        });
        lines.ok()??.whole(THREADS).ok()?
    }

    /// Reads its types, from the file or its debug file. `None` if there are none, or too many.
    pub fn types(&self) -> Option<Arc<DebugTypes>> {
        let read = || {
            let descriptor = self.file.try_clone().ok()?.into();
            let source = FileSource {
                file: Some(&descriptor),
                ..FileSource::new(&self.path)
            };
            let files = DebugFiles::of(&source, probe::files::of_targets());
            let types = DebugTypes::of_file(self.symbols.object(), files, TYPES_BYTES_MAX);
            types.ok()?.map(Arc::new)
        };
        self.types.get_or_init(read).clone()
    }

    /// The last component of its path.
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        symbolize::sanitize(name.as_encoded_bytes()).into_owned()
    }
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
    let symbols = symbolizer.open(FileSource {
        file: Some(&descriptor),
        ..FileSource::new(path)
    })?;
    Ok(Module {
        path: path.to_path_buf(),
        file: Arc::new(file),
        symbols,
        is_program,
        types: Types::default(),
    })
}

/// Opens a mapped file and reads its symbols.
fn open(
    pid: u32,
    source: FileSource<'_>,
    way: &Files,
    symbolizer: &Symbolizer,
) -> Result<Module, Reason> {
    let file = way.open(&source)?;
    // Of the very file that gets the probe, not of what the path leads to by now.
    let descriptor = file.try_clone().map_err(|_| Reason::FileGone)?.into();
    let symbols = symbolizer.open(FileSource {
        file: Some(&descriptor),
        ..source
    })?;
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    Ok(Module {
        path: source.path.to_path_buf(),
        file: Arc::new(file),
        symbols,
        is_program: program.is_ok_and(|program| program == source.path),
        types: Types::default(),
    })
}
