//! Finds the files with code that a command will map before it runs its first instruction: the
//! program, the dynamic loader, and the libraries that they name. With a probe in these files
//! before the start, the first call is seen.
//!
//! The loader searches as described in ld.so(8): directories that the files name,
//! `LD_LIBRARY_PATH`, the cache of `ldconfig`, and the system's directories. If a name may lead to
//! several files (the cache has some for certain processors), all of them are returned: a probe in
//! a file that is not mapped costs nothing, but a missing file would hide calls.

mod cache;

use super::modules::{Module, of_file};
use cache::Cache;
use std::collections::{BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use symbolize::elf::Needed;
use symbolize::{Reason, Symbolizer};

/// Maximum number of files: more than any program maps at its start.
const FILES_MAX: usize = 1024;

/// Maximum number of nested script interpreters; Linux allows four.
const SCRIPTS_MAX: usize = 4;

/// Number of bytes of a script's first line that Linux reads.
const LINE_BYTES: u64 = 256;

/// Directories of libraries that are searched by default, by glibc and by musl.
const FOLDERS: [&str; 5] = ["/lib64", "/usr/lib64", "/lib", "/usr/local/lib", "/usr/lib"];

/// The variables of the command's environment that the dynamic loader follows.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `LD_LIBRARY_PATH`.
    pub folders: Option<OsString>,
    /// `LD_PRELOAD`.
    pub preloaded: Option<OsString>,
}

impl Environment {
    /// Our own environment, which a command inherits.
    pub fn own() -> Self {
        Self {
            folders: std::env::var_os("LD_LIBRARY_PATH"),
            preloaded: std::env::var_os("LD_PRELOAD"),
        }
    }
}

/// Returns every file with code that a program maps at its start, the program first, and those that
/// cannot be read. Of a program that cannot be read, no libraries are known.
pub fn of_program(
    program: &Path,
    environment: &Environment,
    symbolizer: &Symbolizer,
) -> (Vec<Module>, Vec<(PathBuf, Reason)>) {
    let program = interpreter_of(program);
    let module = match of_file(&program, true, symbolizer) {
        Ok(module) => module,
        Err(reason) => return (Vec::new(), vec![(program, reason)]),
    };
    let needed = module.sites.needed().unwrap_or_default();
    let kind = |module: &Module| {
        let facts = module.sites.facts();
        (facts.class, facts.machine)
    };
    let program_kind = kind(&module);
    // The directories of the program's DT_RPATH also apply to what its libraries need.
    let inherited = folders(needed.rpath.as_deref(), &program);
    let search = Search {
        folders: environment.folders.as_deref(),
        inherited,
        cache: Cache::read(),
    };
    let mut seen: BTreeSet<(u64, u64)> = BTreeSet::new();
    seen.extend(identity(&program));
    let mut todo: VecDeque<PathBuf> = VecDeque::new();
    if needed.loader.is_some() {
        todo.extend(needed.loader.iter().map(PathBuf::from));
        let preloaded = environment
            .preloaded
            .as_deref()
            .unwrap_or_default()
            .as_bytes();
        for name in preloaded
            .split(|byte| b" :".contains(byte))
            .filter(|name| !name.is_empty())
        {
            todo.extend(search.find(OsStr::from_bytes(name), &Needed::default(), &program));
        }
        search.find_all(&needed, &program, &mut todo);
    }
    let (mut modules, mut unreadable) = (vec![module], Vec::new());
    while let Some(path) = todo.pop_front().filter(|_| modules.len() < FILES_MAX) {
        let Ok(path) = fs::canonicalize(&path) else {
            continue;
        };
        if !identity(&path).is_some_and(|identity| seen.insert(identity)) {
            continue;
        }
        let module = match of_file(&path, false, symbolizer) {
            Ok(module) => module,
            Err(reason) => {
                unreadable.push((path, reason));
                continue;
            }
        };
        // The loader skips files for other processors, too.
        if kind(&module) != program_kind {
            continue;
        }
        let needed = module.sites.needed().unwrap_or_default();
        search.find_all(&needed, &path, &mut todo);
        modules.push(module);
    }
    (modules, unreadable)
}

/// Where libraries are searched.
struct Search<'e> {
    folders: Option<&'e OsStr>,
    inherited: Vec<PathBuf>,
    cache: Cache,
}

impl Search<'_> {
    /// Adds the files of all libraries that a file needs.
    fn find_all(&self, needed: &Needed, file: &Path, found: &mut VecDeque<PathBuf>) {
        for name in &needed.libraries {
            found.extend(self.find(name, needed, file));
        }
    }

    /// Returns the files that a name may lead to: the first one in a searched directory, else all
    /// in the cache, else the first one in a directory of the system.
    fn find(&self, name: &OsStr, needed: &Needed, file: &Path) -> Vec<PathBuf> {
        if name.as_bytes().contains(&b'/') {
            return vec![with_origin(name, file)];
        }
        let named = [
            needed.rpath.as_deref(),
            self.folders,
            needed.runpath.as_deref(),
        ]
        .into_iter()
        .flat_map(|list| folders(list, file));
        let mut named = self.inherited.iter().cloned().chain(named);
        let there = |folder: PathBuf| Some(folder.join(name)).filter(|path| path.is_file());
        if let Some(path) = named.find_map(there) {
            return vec![path];
        }
        let cached = self.cache.paths(name);
        if !cached.is_empty() {
            return cached;
        }
        let mut folders = FOLDERS.iter().map(PathBuf::from);
        folders.find_map(there).into_iter().collect()
    }
}

/// Splits a list with colons into directories. An empty entry is the current directory, as in
/// ld.so(8).
fn folders(list: Option<&OsStr>, file: &Path) -> Vec<PathBuf> {
    let Some(list) = list else {
        return Vec::new();
    };
    let parts = list.as_bytes().split(|byte| b":;".contains(byte));
    let folder = |part: &[u8]| match part {
        [] => PathBuf::from("."),
        part => with_origin(OsStr::from_bytes(part), file),
    };
    parts.map(folder).collect()
}

/// Replaces `$ORIGIN` in a path by the directory of the file that contains the path.
fn with_origin(text: &OsStr, file: &Path) -> PathBuf {
    let origin = file
        .parent()
        .unwrap_or(Path::new("/"))
        .as_os_str()
        .as_bytes();
    let text = text.as_bytes();
    for mark in [&b"$ORIGIN"[..], b"${ORIGIN}"] {
        if let Some(rest) = text.strip_prefix(mark) {
            return OsString::from_vec([origin, rest].concat()).into();
        }
    }
    OsStr::from_bytes(text).into()
}

/// Returns the program that runs: for a script the one in its first line, see execve(2).
fn interpreter_of(program: &Path) -> PathBuf {
    let mut program = program.to_path_buf();
    for _ in 0..SCRIPTS_MAX {
        let Some(interpreter) = first_line(&program).and_then(|line| interpreter_in(&line)) else {
            break;
        };
        program = fs::canonicalize(&interpreter).unwrap_or(interpreter);
    }
    program
}

/// Reads the beginning of a regular file.
fn first_line(path: &Path) -> Option<Vec<u8>> {
    let file = fs::metadata(path)
        .ok()
        .filter(fs::Metadata::is_file)
        .and_then(|_| fs::File::open(path).ok())?;
    let mut bytes = Vec::new();
    file.take(LINE_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns the program in a first line, such as `/bin/sh` in `#!/bin/sh -e`.
fn interpreter_in(bytes: &[u8]) -> Option<PathBuf> {
    let line = bytes
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let mut words = line.split(|byte| b" \t".contains(byte));
    let first = words.find(|word| !word.is_empty())?;
    Some(OsStr::from_bytes(first).into())
}

/// Device and inode, which identify a file.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_libraries_are_those_that_it_maps() {
        // This test itself, whose libraries are mapped by now.
        let symbolizer = Symbolizer::new();
        let own = std::env::current_exe().unwrap();
        let (modules, unreadable) = of_program(&own, &Environment::own(), &symbolizer);
        assert_eq!(unreadable, []);
        assert!(modules[0].is_program && modules[0].path == own);
        let way = probe::files::of_user();
        let pid = std::process::id();
        let (mapped, _) = super::super::modules::of_processes(&[pid], &way, &symbolizer);
        assert!(mapped.iter().any(|module| !module.is_program));
        for module in mapped {
            let path = fs::canonicalize(&module.path).unwrap();
            assert!(modules.iter().any(|found| found.path == path), "{path:?}");
        }
    }

    #[test]
    fn a_script_is_run_by_what_its_first_line_names() {
        let named = |line: &[u8]| interpreter_in(line);
        assert_eq!(named(b"#!/bin/sh -e\nexit"), Some("/bin/sh".into()));
        assert_eq!(
            named(b"#! /usr/bin/env python3"),
            Some("/usr/bin/env".into())
        );
        assert_eq!(named(b"#!\n"), None);
        assert_eq!(named(b"\x7fELF"), None);
    }

    #[test]
    fn folders_may_be_beside_the_file() {
        let file = Path::new("/opt/app/bin/app");
        let list = OsStr::new("$ORIGIN/../lib:/usr/lib:${ORIGIN}:");
        let expected = ["/opt/app/bin/../lib", "/usr/lib", "/opt/app/bin", "."];
        assert_eq!(folders(Some(list), file), expected.map(PathBuf::from));
        assert!(folders(None, file).is_empty());
    }
}
