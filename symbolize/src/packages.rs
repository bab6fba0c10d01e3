//! Finds the *package* that a file of a system belongs to, and the package that has its symbols.
//!
//! Databases of package managers are read as files, below the root that the target sees; none of
//! its programs is run. So are the files that identify its distribution. They are not trusted: their
//! contents are shown to the user, and nothing else depends on them.
//!
//! | manager | read | packages with symbols |
//! |---|---|---|
//! | dpkg | `var/lib/dpkg/status`, `var/lib/dpkg/info/*.list` | `-dbg` or `-dbgsym` |
//! | apk | `lib/apk/db/installed` | `-dbg` |
//! | rpm | `rpmdb.sqlite` below `usr/lib/sysimage/rpm` or `var/lib/rpm` | `-debuginfo` |

mod apk;
mod distribution;
mod dpkg;
mod rpm;
mod sqlite;

pub use distribution::Distribution;

use crate::source::Source;
use crate::{Files, sanitize};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

/// Maximum size of the database of one system.
const DATABASE_BYTES_MAX: u64 = 256 << 20;

/// Maximum number of bytes read from one system to find the owners of some files.
const BYTES_MAX: u64 = 512 << 20;

/// A package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    /// dpkg, of Debian and its derivatives.
    Dpkg,
    /// apk, of Alpine.
    Apk,
    /// rpm, of Fedora, SUSE and their derivatives.
    Rpm,
}

impl Manager {
    /// All of them, in the order of the enum.
    pub const ALL: [Manager; 3] = [Manager::Dpkg, Manager::Apk, Manager::Rpm];
}

/// The package that a file belongs to. All texts are safe to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The package manager that installed it.
    pub manager: Manager,
    /// The package's name.
    pub package: String,
    /// The version that is installed.
    pub version: String,
}

impl Owner {
    pub(crate) fn new(manager: Manager, package: &[u8], version: &[u8]) -> Owner {
        Owner {
            manager,
            package: sanitize(package).into(),
            version: sanitize(version).into(),
        }
    }

    /// Returns the package with the debug symbols of this package's files, by the conventions of
    /// the distribution.
    pub fn symbols(&self) -> String {
        let package = &self.package;
        match self.manager {
            Manager::Dpkg => dpkg::symbols(package),
            Manager::Apk => format!("{package}-dbg"),
            Manager::Rpm => format!("{package}-debuginfo"),
        }
    }
}

/// What the files of package managers tell of a system.
#[derive(Debug, PartialEq, Eq)]
pub struct Packages {
    /// `None` if it is unknown.
    pub distribution: Option<Distribution>,
    /// The owners of the files that were asked for, in their order; `None` for a file that belongs
    /// to no package, or if no database can be read.
    pub owners: Vec<Option<Owner>>,
}

impl Packages {
    /// Identifies the system below a root, and finds the owners of files of it.
    pub fn find(root: &OwnedFd, paths: &[&Path], files: &Files) -> Packages {
        let mut reader = Reader::new(root, files);
        Packages {
            distribution: Distribution::read(&mut reader),
            owners: find_owners(&mut reader, paths),
        }
    }
}

fn find_owners(reader: &mut Reader<'_>, paths: &[&Path]) -> Vec<Option<Owner>> {
    let wanted: Vec<Wanted> = paths.iter().map(|path| Wanted::new(path)).collect();
    let mut owners = vec![None; paths.len()];
    for find in [dpkg::find, apk::find, rpm::find] {
        if owners.iter().all(Option::is_some) {
            break;
        }
        find(reader, &wanted, &mut owners);
    }
    owners
}

/// The directories of the databases, seen from the root of a system.
const DIRECTORIES: [&str; 5] = [
    "var/lib/dpkg",
    "usr/lib/apk/db",
    "lib/apk/db",
    "usr/lib/sysimage/rpm",
    "var/lib/rpm",
];

/// Whether a path below the root of a system may be that of a file of a database, or of one that
/// identifies its distribution: no others are opened to find [`Packages`].
pub fn is_of_packages(path: &Path) -> bool {
    let mut parts = path.components();
    let is_plain = parts.all(|part| matches!(part, Component::Normal(_)));
    let is_database = is_plain && DIRECTORIES.iter().any(|place| path.starts_with(place));
    is_database || path.to_str().is_some_and(distribution::is_read)
}

/// A file whose owner is searched.
#[derive(Debug)]
struct Wanted {
    /// The names that a database may use for the file: distributions made `/lib` a link to
    /// `/usr/lib`, and packages may be older than that.
    paths: Vec<PathBuf>,
}

impl Wanted {
    fn new(path: &Path) -> Wanted {
        const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];
        let mut paths = vec![path.to_owned()];
        if let Ok(below) = path.strip_prefix("/usr") {
            paths.push(Path::new("/").join(below));
        } else if let Ok(below) = path.strip_prefix("/")
            && MERGED.iter().any(|name| below.starts_with(name))
        {
            paths.push(Path::new("/usr").join(below));
        }
        Wanted { paths }
    }
}

/// Reads files below the root, up to a total number of bytes.
struct Reader<'a> {
    root: &'a OwnedFd,
    files: &'a Files,
    bytes_left: u64,
}

impl<'a> Reader<'a> {
    fn new(root: &'a OwnedFd, files: &'a Files) -> Reader<'a> {
        Reader {
            root,
            files,
            bytes_left: BYTES_MAX,
        }
    }

    /// The whole file; `None` if it cannot be read or is too large.
    fn read(&mut self, path: &str) -> Option<Vec<u8>> {
        let file = self.files.open_beneath(self.root, Path::new(path)).ok()?;
        if file.metadata().ok()?.len() > DATABASE_BYTES_MAX.min(self.bytes_left) {
            return None;
        }
        self.read_opened(&file, DATABASE_BYTES_MAX)
    }

    /// The file up to a maximum length; `None` if it cannot be read.
    fn read_beginning(&mut self, path: &str, most: u64) -> Option<Vec<u8>> {
        let file = self.files.open_beneath(self.root, Path::new(path)).ok()?;
        self.read_opened(&file, most)
    }

    fn read_opened(&mut self, file: &File, most: u64) -> Option<Vec<u8>> {
        // Not by `std::fs::read`: the filter of parsers lets `pread` through, but no other reads.
        let source = Source::file(file).ok()?;
        let most = source.len().min(most).min(self.bytes_left);
        let bytes = source.read(0, most, "a file of packages").ok()?;
        self.bytes_left -= bytes.len() as u64;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RemoteFiles;
    use std::fs;

    /// Creates a root directory with these files.
    pub(super) fn root(contents: &[(&str, &[u8])]) -> (tempfile::TempDir, OwnedFd) {
        let directory = tempfile::tempdir().unwrap();
        for (path, bytes) in contents {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let root = File::open(directory.path()).unwrap().into();
        (directory, root)
    }

    pub(super) fn owner_of(root: &OwnedFd, path: &str) -> Option<(String, String)> {
        let files = Files::from(RemoteFiles::Skip);
        let [owner] = &Packages::find(root, &[Path::new(path)], &files).owners[..] else {
            panic!("one answer for one path");
        };
        let owner = owner.as_ref()?;
        Some((owner.package.clone(), owner.version.clone()))
    }

    #[test]
    fn a_system_without_a_database_has_no_owners() {
        let (_directory, root) = root(&[("etc/os-release", b"ID=own\n")]);
        assert_eq!(owner_of(&root, "/usr/bin/x"), None);
    }

    #[test]
    fn no_other_files_are_of_packages() {
        let is_it = |path: &str| is_of_packages(Path::new(path));
        assert!(is_it("var/lib/dpkg/info/libc6:amd64.list"));
        assert!(is_it(dpkg::STATUS));
        assert!(
            apk::PLACES
                .iter()
                .chain(&rpm::PLACES)
                .all(|place| is_it(place))
        );
        assert!(!is_it("var/lib/dpkg/../../../etc/shadow"));
        assert!(!is_it("/var/lib/dpkg/status"));
        assert!(!is_it("var/lib/dpkg2/status"));
        assert!(!is_it("etc/shadow") && !is_it(""));
        assert!(is_it("etc/os-release") && is_it("etc/apt/sources.list.d/ddebs.list"));
        assert!(!is_it("etc/os-release/x") && !is_it("etc/apt/sources.list.d/x.list"));
    }

    #[test]
    fn both_names_of_a_merged_directory_are_tried() {
        let names = |path: &str| Wanted::new(Path::new(path)).paths;
        assert_eq!(
            names("/lib/x.so"),
            [Path::new("/lib/x.so"), Path::new("/usr/lib/x.so")]
        );
        assert_eq!(
            names("/usr/bin/x"),
            [Path::new("/usr/bin/x"), Path::new("/bin/x")]
        );
        assert_eq!(names("/opt/x"), [Path::new("/opt/x")]);
    }
}
