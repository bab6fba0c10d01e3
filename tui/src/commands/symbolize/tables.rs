//! A directory of tables that were made ahead of time, `NAME.BUILDID.symtab`. It may contain the
//! tables of all programs of many machines, so it is listed only once.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use symbolize::Resolver;
use symbolize::table::Table;

/// The extension of a table's file name.
pub const SUFFIX: &str = "symtab";

/// Minimum number of digits of a build-id. Fewer digits could match several builds.
pub const ID_DIGITS_MIN: usize = 8;

/// The file names of all tables in a directory, by name of the program and by build-id.
pub struct Tables {
    directory: PathBuf,
    /// The tables of each program: one for each of its builds.
    by_name: HashMap<String, Vec<String>>,
    /// The tables by build-id, sorted, so that the beginning of an id is enough to find one.
    by_id: BTreeMap<String, String>,
}

impl Tables {
    /// Lists the tables in a directory. Other files in it are ignored.
    pub fn list(directory: &Path) -> io::Result<Tables> {
        let mut tables = Tables {
            directory: directory.to_owned(),
            by_name: HashMap::new(),
            by_id: BTreeMap::new(),
        };
        for entry in fs::read_dir(directory)? {
            // Tables have names in UTF-8.
            if let Ok(table) = entry?.file_name().into_string() {
                tables.add(table);
            }
        }
        Ok(tables)
    }

    /// Adds a file name, if it is that of a table.
    fn add(&mut self, table: String) {
        let stem = table.strip_suffix(SUFFIX).and_then(|t| t.strip_suffix('.'));
        let Some((name, id)) = stem.and_then(|stem| stem.rsplit_once('.')) else {
            return;
        };
        let same_name = self.by_name.entry(name.to_owned()).or_default();
        same_name.push(table.clone());
        // Tables of the same build under two names have the same contents, so either will do.
        self.by_id.insert(id.to_owned(), table);
    }

    /// Opens the table with this build-id. Without one, opens the only table of this file name, or
    /// the table whose build-id is given in place of a name. The error says why none fits.
    pub fn open(&self, file: &Path, build: Option<&str>) -> Result<Resolver, String> {
        let table = match build {
            Some(id) => self.of_build(id),
            None => self.of_name(&file.file_name().unwrap_or_default().to_string_lossy()),
        }?;
        let opened = File::open(self.directory.join(table)).map_err(|error| error.to_string())?;
        let table = Table::from_file(opened).map_err(|error| error.to_string())?;
        Ok(Resolver::of_table(table))
    }

    /// Returns the table of a build-id. The beginning of the id is enough if only one id begins so.
    fn of_build(&self, id: &str) -> Result<&str, String> {
        let mut from = self.by_id.range(id.to_owned()..);
        match (from.next(), from.next()) {
            (Some((found, _)), Some((second, _)))
                if found != id && found.starts_with(id) && second.starts_with(id) =>
            {
                Err(format!("the cache has several builds that begin with {id}"))
            }
            (Some((found, table)), _) if found.starts_with(id) => Ok(table),
            _ => Err(format!("the cache has no table of build {id}")),
        }
    }

    /// Returns the only table of a program. If no program has this name, a long enough name may be
    /// a build-id.
    fn of_name(&self, wanted: &str) -> Result<&str, String> {
        match self.by_name.get(wanted).map(Vec::as_slice) {
            Some([only]) => Ok(only),
            Some([first, second, ..]) => Err(format!(
                "the cache has several builds of it: say which by build-id ({first}, {second})"
            )),
            _ if wanted.len() >= ID_DIGITS_MIN => self
                .of_build(wanted)
                .map_err(|_| "the cache has no table of it".into()),
            _ => Err("the cache has no table of it".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_by_name_and_by_build_id() {
        let directory = tempfile::tempdir().unwrap();
        let names = [
            "libc.so.6.0ab1c2d3e4.symtab",
            "app.aaaaaaaa01.symtab",
            "app.aaaaaaaa02.symtab",
            "unfinished",
            ".symtab",
            "symtab",
        ];
        for name in names {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let tables = Tables::list(directory.path()).unwrap();
        for (wanted, found) in [
            ("libc.so.6", Some("libc.so.6.0ab1c2d3e4.symtab")),
            ("0ab1c2d3e4", Some("libc.so.6.0ab1c2d3e4.symtab")),
            ("0ab1c2d3", Some("libc.so.6.0ab1c2d3e4.symtab")),
            ("aaaaaaaa02", Some("app.aaaaaaaa02.symtab")),
            ("libc", None),
            ("0ab1", None),
            ("app", None),
            ("aaaaaaaa", None),
            ("", None),
        ] {
            assert_eq!(tables.of_name(wanted).ok(), found, "{wanted}");
        }
        assert_eq!(
            tables.of_build("aaaaaaaa01").ok(),
            Some("app.aaaaaaaa01.symtab")
        );
        assert!(tables.of_build("0ab1c2d3e5").is_err());
        // A file that is not a table gives an error of one sentence.
        assert!(tables.open(Path::new("libc.so.6"), None).is_err());
    }
}
