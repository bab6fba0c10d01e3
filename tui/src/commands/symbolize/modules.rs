//! Files, opened once, and the tables that stand for them.

use super::fetch;
use super::tables::Tables;
use crate::failure::Failure;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use symbolize::debug_file::DebugFiles;
use symbolize::foreign::{ForeignSymbols, dsym_of};
use symbolize::object::Object;
use symbolize::{FileSource, LinkAddr, OpenError, Resolver, demangle, opener};

/// Debug information that is held in memory, of one file.
const BYTES_MAX: u64 = 8 << 30;

/// Files whose builds a text may tell, by path and by name.
const BUILDS_MAX: usize = 1 << 17;

/// Files of which it is said why they were of no use.
const MISSED_MAX: usize = 20;

pub type Module = Rc<Opened>;

/// A file or a table, ready to be asked.
pub struct Opened {
    resolver: Resolver,
    /// Made when the first function is asked for by its name.
    by_name: OnceCell<HashMap<Vec<u8>, Option<LinkAddr>>>,
}

impl Opened {
    fn new(resolver: Resolver) -> Module {
        Rc::new(Opened {
            resolver,
            by_name: OnceCell::new(),
        })
    }

    /// Where the only function of that name starts, as it is or demangled.
    pub fn function(&self, name: &[u8]) -> Option<LinkAddr> {
        let by_name = self.by_name.get_or_init(|| {
            let mut by_name = HashMap::new();
            for (start, name) in self.resolver.functions() {
                let demangled = demangle(name).full();
                let other = (demangled.as_bytes() != name).then(|| demangled.as_bytes().to_vec());
                for name in other.into_iter().chain([name.to_vec()]) {
                    let known = by_name.entry(name).or_insert(Some(start));
                    // Of two of one name nobody can tell which was meant.
                    *known = known.filter(|known| *known == start);
                }
            }
            by_name
        });
        by_name.get(name).copied().flatten()
    }
}

impl Deref for Opened {
    type Target = Resolver;

    fn deref(&self) -> &Resolver {
        &self.resolver
    }
}

/// A file as a text tells it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Told {
    path: PathBuf,
    /// The build-id that the text names, or how it begins.
    build: Option<String>,
}

/// Modules by what they were asked for by, or why there is none.
pub struct Modules {
    /// Answers come from the tables in here alone.
    tables: Option<Tables>,
    named: RefCell<HashMap<PathBuf, Module>>,
    known: RefCell<HashMap<Told, Result<Module, String>>>,
    /// The builds of files, by path and by name, where a text has told them.
    builds: RefCell<HashMap<PathBuf, String>>,
    /// The last line was a frame of perf script.
    was_frame: Cell<bool>,
    /// Addresses in files that could not be asked, by file and why.
    missed: RefCell<BTreeMap<(PathBuf, String), u64>>,
}

impl Modules {
    pub fn of_files() -> Modules {
        Modules {
            tables: None,
            named: RefCell::default(),
            known: RefCell::default(),
            builds: RefCell::default(),
            was_frame: Cell::new(false),
            missed: RefCell::default(),
        }
    }

    pub fn of_cache(directory: &Path) -> Result<Modules, Failure> {
        let tables = Tables::list(directory).map_err(|error| {
            let directory = directory.display();
            Failure::failed(format!("cannot read the cache `{directory}`: {error}"))
                .remedy("proftop symbolize --build-cache DIR FILE…", "makes one")
        })?;
        Ok(Modules {
            tables: Some(tables),
            ..Modules::of_files()
        })
    }

    /// The module that the command line names. It answers for its file's name
    /// from now on, wherever a log says the file was.
    pub fn open_named(&self, path: &Path) -> Result<Module, Failure> {
        let module = match &self.tables {
            Some(tables) => tables.open(path, None),
            None => open_file(path),
        };
        let module = module.map_err(|why| {
            Failure::failed(format!("cannot symbolize `{}`: {why}", path.display()))
        })?;
        let module = Opened::new(module);
        let mut named = self.named.borrow_mut();
        named.insert(path.to_owned(), module.clone());
        if let Some(name) = path.file_name() {
            named.insert(name.into(), module.clone());
        }
        Ok(module)
    }

    /// The module at a path that some text tells, of the build that it tells if
    /// it does.
    pub fn find(&self, path: &Path, build: Option<&str>) -> Option<Module> {
        let builds = self.builds.borrow();
        let by_name = || builds.get(Path::new(path.file_name()?));
        let told = || builds.get(path).or_else(by_name).map(String::as_str);
        let build = build.or_else(told);
        let named = self.named.borrow();
        let named = path.file_name().and_then(|name| named.get(Path::new(name)));
        let named = named.cloned().map(|module| of_build(module, build));
        let found = named.unwrap_or_else(|| {
            let told = Told {
                path: path.to_owned(),
                build: build.map(str::to_owned),
            };
            let mut known = self.known.borrow_mut();
            let open = || self.open_told(path, build);
            known.entry(told).or_insert_with(open).clone()
        });
        if let Err(why) = &found {
            self.miss(path, why);
        }
        found.ok()
    }

    /// Whether the line before was a frame, and notes whether this one is.
    pub fn follows_frame(&self, is_frame: bool) -> bool {
        self.was_frame.replace(is_frame)
    }

    /// Remembers which build the text says that a file is of.
    pub fn tell_build(&self, path: &Path, build: &str) {
        let mut builds = self.builds.borrow_mut();
        if builds.len() >= BUILDS_MAX {
            return;
        }
        builds.insert(path.to_owned(), build.to_owned());
        if let Some(name) = path.file_name() {
            builds.insert(name.into(), build.to_owned());
        }
    }

    fn open_told(&self, path: &Path, build: Option<&str>) -> Result<Module, String> {
        if let Some(tables) = &self.tables {
            return tables.open(path, build).map(Opened::new);
        }
        // The text is a stranger's: only regular files on disks of ours.
        let root = opener::our_root().ok_or("no root directory")?;
        let absolute = std::path::absolute(path).map_err(|error| error.to_string())?;
        let file = probe::files::of_targets()
            .open_beneath(root, &absolute)
            .map_err(|reason| reason.explain().to_owned())?;
        let module = read(&file, &absolute).map_err(|error| error.to_string())?;
        of_build(Opened::new(module), build)
    }

    /// Words like `name+0x10` are no files: only what has a directory, or is
    /// there in some build, is missed.
    fn miss(&self, path: &Path, why: &str) {
        let is_file = path.is_absolute() || why.contains("build");
        let mut missed = self.missed.borrow_mut();
        let what = (path.to_owned(), why.to_owned());
        if is_file && (missed.len() < MISSED_MAX || missed.contains_key(&what)) {
            *missed.entry(what).or_default() += 1;
        }
    }

    /// Which addresses were left as they are because of their files, in
    /// sentences.
    pub fn missed(&self) -> Vec<String> {
        let missed = self.missed.borrow();
        let missed = missed.iter().map(|((path, why), count)| {
            let path = symbolize::sanitize(path.as_os_str().as_bytes());
            let addresses = match count {
                1 => "1 address",
                _ => &format!("{count} addresses"),
            };
            format!("{addresses} in `{path}` left as they are: {why}")
        });
        missed.collect()
    }

    /// A file that a process has mapped.
    pub fn find_mapped(&self, source: &FileSource<'_>) -> Option<Module> {
        let told = Told {
            path: source.path.to_owned(),
            build: None,
        };
        let open = || {
            let file = fetch::any_files()
                .open(source)
                .map_err(|reason| reason.explain().to_owned())?;
            let object = Object::read(&file).map_err(|error| error.to_string())?;
            fetch::debug_file(&object, source.path);
            let files = || DebugFiles::of(source, fetch::any_files());
            let read = Resolver::of_file(object, files, BYTES_MAX);
            read.map(Opened::new).map_err(|error| error.to_string())
        };
        let mut known = self.known.borrow_mut();
        known.entry(told).or_insert_with(open).clone().ok()
    }
}

/// Names of another build would be wrong, and look right.
fn of_build(module: Module, build: Option<&str>) -> Result<Module, String> {
    let id = module.id();
    // Ids of other kinds are not what texts call a build-id.
    let is_other = |build: &&str| !id.contains(':') && !id.starts_with(build);
    match build.filter(is_other) {
        None => Ok(module),
        Some(build) => Err(format!(
            "that is of build {build}, and the file here of {id}"
        )),
    }
}

/// A file that the user names: of this system or another.
pub fn open_file(path: &Path) -> Result<Resolver, String> {
    let absolute = std::path::absolute(path).map_err(|error| error.to_string())?;
    let answers = probe::files::of_targets().answers(&absolute);
    answers.map_err(|_| "its file system does not answer")?;
    // Beside a Mach-O program, or the bundle itself.
    let path = &dsym_of(path).unwrap_or(path.to_owned());
    let file = File::open(path).map_err(|error| error.to_string())?;
    let absolute = path.canonicalize().map_err(|error| error.to_string())?;
    match read(&file, &absolute) {
        Err(OpenError::NotElf) if is_foreign(&file) => ForeignSymbols::read(&file, None)
            .map(Resolver::of_foreign)
            .map_err(|error| error.to_string()),
        read => read.map_err(|error| error.to_string()),
    }
}

/// Whether a file is of another system, by its first bytes: PE, or Mach-O for one machine or
/// several.
fn is_foreign(file: &File) -> bool {
    let mut magic = [0; 4];
    let read = file.read_exact_at(&mut magic, 0);
    read.is_ok()
        && (magic.starts_with(b"MZ")
            || [0xfeed_facf, 0xcffa_edfe, 0xcafe_babe, 0xcafe_babf]
                .contains(&u32::from_be_bytes(magic)))
}

fn read(file: &File, absolute: &Path) -> Result<Resolver, OpenError> {
    let object = Object::read(file)?;
    fetch::debug_file(&object, absolute);
    let files = || DebugFiles::of(&FileSource::new(absolute), fetch::any_files());
    Resolver::of_file(object, files, BYTES_MAX)
}
