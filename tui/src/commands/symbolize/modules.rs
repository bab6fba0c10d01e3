//! Files, opened once, and the tables that stand for them.

use super::fetch;
use crate::failure::Failure;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use symbolize::debug_file::DebugFiles;
use symbolize::foreign::{ForeignSymbols, dsym_of};
use symbolize::object::Object;
use symbolize::table::Table;
use symbolize::{FileSource, OpenError, RemoteFiles, Resolver, opener};

/// Debug information that is held in memory, of one file.
const BYTES_MAX: u64 = 8 << 30;

/// What the name of a table ends with: `NAME.BUILDID.symtab`.
pub const SUFFIX: &str = "symtab";

pub type Module = Rc<Resolver>;

/// Modules by the path or name that they were asked for by; `None` for what
/// could not be opened.
pub struct Modules {
    /// Answers come from the tables in here alone.
    cache: Option<PathBuf>,
    known: RefCell<HashMap<PathBuf, Option<Module>>>,
}

impl Modules {
    pub fn of_files() -> Modules {
        Modules {
            cache: None,
            known: RefCell::default(),
        }
    }

    pub fn of_cache(directory: &Path) -> Result<Modules, Failure> {
        let found = fs::metadata(directory).is_ok_and(|directory| directory.is_dir());
        match found {
            true => Ok(Modules {
                cache: Some(directory.to_owned()),
                known: RefCell::default(),
            }),
            false => Err(Failure::failed(format!(
                "cannot read the cache `{}`: no such directory",
                directory.display()
            ))
            .remedy("proftop symbolize --build-cache DIR FILE…", "makes one")),
        }
    }

    /// The module that the command line names. It answers for its file's name
    /// from now on, wherever a log says the file was.
    pub fn open_named(&self, path: &Path) -> Result<Module, Failure> {
        let module = match &self.cache {
            Some(directory) => open_table(directory, path),
            None => open_file(path),
        };
        let module = module.map_err(|why| {
            Failure::failed(format!("cannot symbolize `{}`: {why}", path.display()))
        })?;
        let module = Rc::new(module);
        let mut known = self.known.borrow_mut();
        known.insert(path.to_owned(), Some(module.clone()));
        if let Some(name) = path.file_name() {
            known.insert(name.into(), Some(module.clone()));
        }
        Ok(module)
    }

    /// The module at a path that some text tells.
    pub fn find(&self, path: &Path) -> Option<Module> {
        let mut known = self.known.borrow_mut();
        let by_name = path.file_name().map(PathBuf::from);
        let by_name = by_name.and_then(|name| known.get(&name)?.clone());
        if by_name.is_some() {
            return by_name;
        }
        let open = || match &self.cache {
            Some(directory) => open_table(directory, path).ok(),
            // The text is a stranger's: only regular files on disks of ours.
            None => {
                let root = opener::roots(None).into_iter().next()?;
                let absolute = std::path::absolute(path).ok()?;
                let file = opener::open_beneath(root, &absolute, RemoteFiles::Skip).ok()?;
                read(&file, &absolute).ok()
            }
        };
        let entry = known.entry(path.to_owned());
        entry.or_insert_with(|| open().map(Rc::new)).clone()
    }

    /// A file that a process has mapped.
    pub fn find_mapped(&self, source: &FileSource<'_>) -> Option<Module> {
        let mut known = self.known.borrow_mut();
        let entry = known.entry(source.path.to_owned());
        let open = || {
            let file = opener::open(source, RemoteFiles::Open).ok()?;
            let object = Object::read(&file).ok()?;
            fetch::debug_file(&object, source.path);
            let files = || DebugFiles::of(source, RemoteFiles::Open);
            Resolver::of_file(object, files, BYTES_MAX).ok()
        };
        entry.or_insert_with(|| open().map(Rc::new)).clone()
    }
}

/// A file that the user names: of this system or another.
pub fn open_file(path: &Path) -> Result<Resolver, String> {
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

/// By its first bytes: a PE file, or a Mach-O file for one machine or several.
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
    let files = || DebugFiles::of(&FileSource::new(absolute), RemoteFiles::Open);
    Resolver::of_file(object, files, BYTES_MAX)
}

/// The table of a file in a directory of tables, by its name or its build-id.
fn open_table(directory: &Path, file: &Path) -> Result<Resolver, String> {
    let wanted = file.file_name().unwrap_or_default().to_string_lossy();
    let entries = fs::read_dir(directory).map_err(|error| error.to_string())?;
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut names = names.filter_map(|name| name.into_string().ok());
    let mut found: Vec<String> = names.by_ref().filter(|name| is_of(name, &wanted)).collect();
    found.sort();
    match &found[..] {
        [] => Err("the cache has no table of it".into()),
        [only] => {
            let table = File::open(directory.join(only)).map_err(|error| error.to_string())?;
            let table = Table::from_file(table).map_err(|error| error.to_string())?;
            Ok(Resolver::of_table(table))
        }
        [first, second, ..] => Err(format!(
            "the cache has several builds of it: say which by build-id ({first}, {second})"
        )),
    }
}

/// Whether a table called `NAME.ID.symtab` is of the file or the build-id.
fn is_of(table: &str, wanted: &str) -> bool {
    let Some(rest) = table.strip_suffix(SUFFIX).and_then(|t| t.strip_suffix('.')) else {
        return false;
    };
    rest.rsplit_once('.')
        .is_some_and(|(name, id)| name == wanted || id == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_by_name_and_by_build_id() {
        let table = "libc.so.6.0ab1.symtab";
        for (wanted, is) in [
            ("libc.so.6", true),
            ("0ab1", true),
            ("libc", false),
            ("0ab", false),
        ] {
            assert_eq!(is_of(table, wanted), is, "{wanted}");
        }
        assert!(!is_of("libc.so.6", "libc.so"));
    }
}
