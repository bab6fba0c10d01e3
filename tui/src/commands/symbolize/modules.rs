//! Files, each opened once, and the tables that can replace them.

use super::fetch;
use super::tables::Tables;
use super::upcoming::Upcoming;
use crate::commands::input;
use crate::failure::Failure;
use crate::stderr;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use symbolize::debug_file::DebugFiles;
use symbolize::foreign::{ForeignSymbols, dsym_of};
use symbolize::object::Object;
use symbolize::resolver::KeptTables;
use symbolize::{FileSource, LinkAddr, OpenError, Resolver, demangle, opener};

/// Maximum number of bytes of debug information of one file that are held in memory.
const BYTES_MAX: u64 = 8 << 30;

/// Maximum number of paths and names of files whose build-ids in the text are remembered.
const BUILDS_MAX: usize = 1 << 17;

/// Maximum number of unusable files that are listed, each with the reason.
const MISSED_MAX: usize = 20;

/// An opened file or table, shared by all paths that lead to it.
pub type Module = Rc<Opened>;

/// A file or a table that can resolve addresses.
pub struct Opened {
    resolver: Resolver,
    /// Starts of functions by name, mangled and demangled. None if several functions share the
    /// name. Filled when a function is first looked up by its name.
    by_name: OnceCell<HashMap<Vec<u8>, Option<LinkAddr>>>,
}

impl Opened {
    fn new(resolver: Resolver) -> Module {
        Rc::new(Opened {
            resolver,
            by_name: OnceCell::new(),
        })
    }

    /// Returns the start of the function with this name, mangled or demangled. None if no function
    /// has it, or several do.
    pub fn function(&self, name: &[u8]) -> Option<LinkAddr> {
        let by_name = self.by_name.get_or_init(|| {
            let mut by_name = HashMap::new();
            for (start, name) in self.resolver.functions() {
                let demangled = demangle(name).full();
                let other = (demangled.as_bytes() != name).then(|| demangled.as_bytes().to_vec());
                for name in other.into_iter().chain([name.to_vec()]) {
                    let known = by_name.entry(name).or_insert(Some(start));
                    // If two functions share a name, it is not known which one the text means.
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

/// What of a file could not be read, and why.
type Unread<'a> = (&'static str, &'a OpenError);

/// A file as a text refers to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Told {
    path: PathBuf,
    /// The build-id in the text, or the beginning of one.
    build: Option<String>,
}

/// All files that were opened so far, and why others could not be.
pub struct Modules {
    /// The directory of tables, if addresses are resolved by tables and not by files.
    tables: Option<Tables>,
    /// The tables that earlier runs have kept of files, which have not changed since.
    kept: Option<KeptTables>,
    named: RefCell<HashMap<PathBuf, Module>>,
    known: RefCell<HashMap<Told, Result<Module, String>>>,
    /// The build-ids that the text has for files, by path and by file name.
    builds: RefCell<HashMap<PathBuf, String>>,
    /// Whether the previous line was a stack frame in the output of perf script.
    was_frame: Cell<bool>,
    /// Number of addresses in files that could not be used, by file and reason.
    missed: RefCell<BTreeMap<(PathBuf, String), u64>>,
    /// The addresses of the text that was read and not answered yet.
    upcoming: RefCell<Upcoming>,
}

impl Modules {
    /// Resolves addresses by files, wherever they are, and by the tables that earlier runs kept of
    /// them.
    pub fn of_files() -> Modules {
        let base = symbolize::cache_directory::default_base();
        Modules {
            kept: base.map(KeptTables::new),
            ..Modules::of_nothing()
        }
    }

    /// Has nothing to resolve addresses by.
    fn of_nothing() -> Modules {
        Modules {
            tables: None,
            kept: None,
            named: RefCell::default(),
            known: RefCell::default(),
            builds: RefCell::default(),
            was_frame: Cell::new(false),
            missed: RefCell::default(),
            upcoming: RefCell::default(),
        }
    }

    /// Resolves addresses only by the tables in this directory. It is an error if the directory
    /// cannot be read.
    pub fn of_cache(directory: &Path) -> Result<Modules, Failure> {
        let tables = Tables::list(directory).map_err(|error| {
            let directory = input::name(directory);
            Failure::failed(format!("cannot read the cache `{directory}`: {error}"))
                .remedy("proftop symbolize --build-cache DIR FILE…", "makes one")
        })?;
        Ok(Modules {
            tables: Some(tables),
            ..Modules::of_nothing()
        })
    }

    /// Opens the file that the command line names. From now on it is used for every file with the
    /// same name, in whatever directory a text says it was.
    pub fn open_named(&self, path: &Path) -> Result<Module, Failure> {
        let module = match &self.tables {
            Some(tables) => tables.open(path, None),
            None => open_file(path, self.kept.as_ref()),
        };
        let module = module.map_err(|why| {
            Failure::failed(format!("cannot symbolize `{}`: {why}", input::name(path)))
        })?;
        let module = Opened::new(module);
        let mut named = self.named.borrow_mut();
        named.insert(path.to_owned(), module.clone());
        if let Some(name) = path.file_name() {
            named.insert(name.into(), module.clone());
        }
        Ok(module)
    }

    /// Returns the file at a path in a text, of the build that the text says. None if there is no
    /// such file here; the reason is kept for [`Self::missed`].
    pub fn find(&self, path: &Path, build: Option<&str>) -> Option<Module> {
        let builds = self.builds.borrow();
        let by_name = || builds.get(Path::new(path.file_name()?));
        let told = || builds.get(path).or_else(by_name).map(String::as_str);
        let build = build.or_else(told);
        let named = self.named.borrow();
        let named = path
            .file_name()
            .and_then(|name| named.get(Path::new(name)))
            .cloned()
            .map(|module| of_build(module, build));
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

    /// Takes over the addresses of a text that is answered next.
    pub fn expect(&self, text: Upcoming) {
        self.upcoming.replace(text);
    }

    /// Lets a file read together what is needed for all addresses that are answered next. `name` is
    /// how the text names the file; it is empty for the file of the command line.
    pub fn prepare(&self, module: &Opened, name: &[u8]) {
        if let Some(addrs) = self.upcoming.borrow_mut().take(name, module.segments()) {
            module.prepare(&addrs);
        }
    }

    /// Returns whether the previous line was a frame, and remembers whether this one is.
    pub fn follows_frame(&self, is_frame: bool) -> bool {
        self.was_frame.replace(is_frame)
    }

    /// Remembers the build-id that the text has for a file.
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
        // Anybody may have written the text, so only regular files on local disks are opened.
        let root = opener::our_root().ok_or("no root directory")?;
        let absolute = std::path::absolute(path).map_err(|error| error.to_string())?;
        let file = probe::files::of_targets()
            .open_beneath(root, &absolute)
            .map_err(|reason| reason.explain().to_owned())?;
        let module = read(&file, &absolute, self.kept.as_ref());
        let module = module.map_err(|error| error.to_string())?;
        of_build(Opened::new(module), build)
    }

    /// Counts an address whose file cannot be used. Words such as `name+0x10` look like files but
    /// usually are not: so only absolute paths count, and files that are here in another build.
    fn miss(&self, path: &Path, why: &str) {
        let is_file = path.is_absolute() || why.contains("build");
        let mut missed = self.missed.borrow_mut();
        let what = (path.to_owned(), why.to_owned());
        if is_file && (missed.len() < MISSED_MAX || missed.contains_key(&what)) {
            *missed.entry(what).or_default() += 1;
        }
    }

    /// Returns a sentence for each file that could not be used, with the number of addresses that
    /// were left unchanged because of it.
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

    /// Returns a sentence for each file whose symbols or debug information an address needed and
    /// which could not be read: its addresses may lack names, or lines.
    pub fn unread(&self) -> Vec<String> {
        let (named, known) = (self.named.borrow(), self.known.borrow());
        let known = known.iter().filter_map(|(told, module)| {
            let module = module.as_ref().ok()?;
            Some((&told.path, module))
        });
        let mut paths: BTreeMap<*const Opened, (&PathBuf, Unread<'_>)> = BTreeMap::new();
        for (path, module) in named.iter().chain(known) {
            if let Some(failure) = module.failure() {
                let told = paths.entry(Rc::as_ptr(module)).or_insert((path, failure));
                // A file that is named on the command line is known by its name alone, too.
                if path.as_os_str().len() > told.0.as_os_str().len() {
                    told.0 = path;
                }
            }
        }
        let sentence = |(path, (what, why)): &(&PathBuf, Unread<'_>)| {
            let path = symbolize::sanitize(path.as_os_str().as_bytes());
            format!("the {what} of `{path}` cannot be read: {why}")
        };
        let mut sentences: Vec<String> = paths.values().map(sentence).collect();
        sentences.sort();
        sentences
    }

    /// Notes how much was read of each file, and keeps a table of one for which that pays: others
    /// have their turn in later runs. All answers must be out. The output is closed before the
    /// table is made, so that a program that reads it does not wait.
    pub fn keep(&self) {
        let Some(kept) = &self.kept else {
            return;
        };
        let (named, known) = (self.named.borrow(), self.known.borrow());
        let known = known.values().flatten();
        let modules = named.values().chain(known);
        let modules: BTreeMap<_, _> = modules.map(|module| (Rc::as_ptr(module), module)).collect();
        // All files are noted, also those behind one that is due.
        let due: Vec<_> = modules
            .values()
            .filter(|module| module.note(kept))
            .collect();
        let Some(module) = due.first() else { return };
        if close_output().is_err() {
            return;
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        // A panic changes nothing: this run has given its answers.
        if let Err(fault) = faults::catch("keeping a table", || module.keep(kept, threads)) {
            stderr::say(fault);
        }
    }

    /// Returns a file that a process has mapped. None if it cannot be opened or read.
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
            let kept = self.kept.as_ref();
            let read = Resolver::of_file_or_kept(object, files, BYTES_MAX, kept);
            read.map(Opened::new).map_err(|error| error.to_string())
        };
        let mut known = self.known.borrow_mut();
        known.entry(told).or_insert_with(open).clone().ok()
    }
}

/// Closes standard output, by putting another file in its place.
fn close_output() -> io::Result<()> {
    let nowhere = File::options().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(nowhere)?)
}

/// Returns the module if it is of this build, else an error: the names of another build would be
/// wrong without looking wrong.
fn of_build(module: Module, build: Option<&str>) -> Result<Module, String> {
    let id = module.id();
    // Ids with a colon are of other kinds, which no text calls a build-id.
    let is_other = |build: &&str| !id.contains(':') && !id.starts_with(build);
    match build.filter(is_other) {
        None => Ok(module),
        Some(build) => Err(format!(
            "that is of build {build}, and the file here of {id}"
        )),
    }
}

/// Opens a file that the user names, or the table that was kept of it. It may be a program of
/// another system (PE, Mach-O).
pub fn open_file(path: &Path, kept: Option<&KeptTables>) -> Result<Resolver, String> {
    let absolute = std::path::absolute(path).map_err(|error| error.to_string())?;
    let answers = probe::files::of_targets().answers(&absolute);
    answers.map_err(|_| "its file system does not answer")?;
    // The debug information of a Mach-O program is in a .dSYM bundle beside it. The user may also
    // name the bundle.
    let path = &dsym_of(path).unwrap_or(path.to_owned());
    let file = File::open(path).map_err(|error| error.to_string())?;
    let absolute = path.canonicalize().map_err(|error| error.to_string())?;
    match read(&file, &absolute, kept) {
        Err(OpenError::NotElf) if is_foreign(&file) => ForeignSymbols::read(&file, None)
            .map(Resolver::of_foreign)
            .map_err(|error| error.to_string()),
        read => read.map_err(|error| error.to_string()),
    }
}

/// Whether a file is a program of another system, by its first bytes: PE, or Mach-O for one or
/// several processors.
fn is_foreign(file: &File) -> bool {
    let mut magic = [0; 4];
    let read = file.read_exact_at(&mut magic, 0);
    read.is_ok()
        && (magic.starts_with(b"MZ")
            || [0xfeed_facf, 0xcffa_edfe, 0xcafe_babe, 0xcafe_babf]
                .contains(&u32::from_be_bytes(magic)))
}

fn read(file: &File, absolute: &Path, kept: Option<&KeptTables>) -> Result<Resolver, OpenError> {
    let object = Object::read(file)?;
    fetch::debug_file(&object, absolute);
    let files = || DebugFiles::of(&FileSource::new(absolute), fetch::any_files());
    Resolver::of_file_or_kept(object, files, BYTES_MAX, kept)
}
