//! Debug information in separate files: where they are searched, and whether they match.
//!
//! | found by | where | belongs if |
//! |---|---|---|
//! | build-id | `/usr/lib/debug/.build-id/xx/yyyy.debug`, the cache of debuginfod's client | its build-id is the same |
//! | `.gnu_debuglink` | beside the file, in `.debug/`, in `/usr/lib/debug/…` | the build-id, else the checksum |
//! | `.gnu_debugaltlink` | the path in it, or by build-id | its build-id is the named one |
//! | `.gnu_debugdata` | inside of the file (xz) | always |
//! | name in a skeleton unit | `.dwo` where it was built or beside the file, `.dwp` beside it | it has the unit's number |
//!
//! Each place is searched below the target's root and below ours, never outside of them; the cache
//! of debuginfod's client is ours. Wherever a file lies, it is trusted only if root or we wrote it,
//! or a user who can also write to the file that it belongs to ([`Writers::are_trusted_by`]): a
//! build-id or checksum is easily copied into another file.

mod link;
mod told;

use crate::crc::Crc;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::object::Object;
use crate::opener::{self, FileSource};
use crate::source::Source;
use crate::{Files, OpenError, RemoteFiles, Writers, debuginfod};

/// Directory in which distributions install debug files.
const DIRECTORY: &str = "/usr/lib/debug";

/// Files larger than this are not read for their checksum.
const CHECKED_BYTES_MAX: u64 = 4 << 30;

/// The places where the debug files of one file are searched.
#[derive(Debug)]
pub struct DebugFiles {
    roots: Vec<OwnedFd>,
    /// Where we see the first root, if it is not ours and visible to us (chroot).
    seen_at: Option<PathBuf>,
    /// Path of the file itself, as it was given.
    path: PathBuf,
    /// That path relative to the root, if it was given from outside of the root.
    path_inside: Option<PathBuf>,
    files: Files,
    /// Directory where debuginfod's client keeps fetched files.
    fetched: Option<PathBuf>,
    /// Who can write to the file that names the others; `None` to trust every file.
    writers: Option<Writers>,
}

impl DebugFiles {
    /// The [`Files`] through which it opens files.
    pub(crate) fn files(&self) -> &Files {
        &self.files
    }

    /// The places where debug files of a mapped file may lie. Nothing is opened yet except its root
    /// directory.
    pub fn of(source: &FileSource<'_>, files: impl Into<Files>) -> DebugFiles {
        let files = files.into();
        let own = match source.root {
            Some(root) => root.try_clone().ok(),
            None => source.pid.and_then(|pid| files.root_of(pid).ok()),
        };
        let roots: Vec<_> = own.into_iter().chain(opener::our_root()).collect();
        let seen_at = roots.first().and_then(seen_at);
        let inside = |root: &PathBuf| inside(root, source.path);
        DebugFiles {
            path_inside: seen_at.as_ref().and_then(inside),
            seen_at,
            roots,
            path: source.path.to_owned(),
            files,
            fetched: debuginfod::default_cache(),
            writers: None,
        }
    }

    /// The places for a file at `path` below a root directory that is already open.
    pub fn below(root: OwnedFd, path: &Path, files: impl Into<Files>) -> DebugFiles {
        DebugFiles {
            roots: vec![root],
            seen_at: None,
            path: path.to_owned(),
            path_inside: None,
            files: files.into(),
            fetched: debuginfod::default_cache(),
            writers: None,
        }
    }

    /// Looks for files that `object` names: only those are trusted that its writers could have
    /// written.
    #[must_use]
    pub fn named_in(self, object: &Object) -> DebugFiles {
        let writers = object.source().writers();
        DebugFiles { writers, ..self }
    }

    /// Finds the separate file with the debug information of `object`.
    pub fn separate(&self, object: &Object) -> Option<Object> {
        let writers = object.source().writers();
        let id = object.build_id();
        let by_id = id.as_deref().and_then(|id| self.by_build_id(id, writers));
        by_id.or_else(|| self.by_link(object, id.as_deref(), writers))
    }

    /// Whether a file names one with the parts that several debug files share (dwz).
    pub fn supplementary_is_named(object: &Object) -> bool {
        link::alternative(object).is_some()
    }

    /// Finds the file with the parts that several debug files share (dwz).
    pub fn supplementary(&self, object: &Object) -> Option<Object> {
        let link = link::alternative(object)?;
        let writers = object.source().writers();
        let belongs = |object: &Object| object.build_id().as_deref() == Some(&link.build_id);
        let named = Path::new(OsStr::from_bytes(&link.path));
        // A relative path starts at the directory of the debug file, which is unknown here. Tried
        // are the directory of the file itself, its counterpart among the debug files, and the one
        // to which its build-id leads.
        let debug = Path::new(DIRECTORY);
        let beside = self.directories().flat_map(|beside| {
            let below = beside.strip_prefix("/").unwrap_or(beside);
            [beside.join(named), debug.join(below).join(named)]
        });
        beside
            .chain([debug.join(named)])
            .find_map(|place| self.open(&place, writers).filter(belongs))
            .or_else(|| self.by_build_id(&link.build_id, writers))
    }

    /// Opens a file that another file names, at one of the paths, and returns the result of `take`
    /// for the first one that `take` accepts.
    pub fn named<T>(&self, paths: &[&Path], take: impl Fn(Object) -> Option<T>) -> Option<T> {
        let files = paths
            .iter()
            .flat_map(|path| self.open_files(path, self.writers));
        let mut objects = files.filter_map(|file| Object::read(&file).ok());
        objects.find_map(take)
    }

    /// Opens a file in the same root as this one, and in no other.
    pub fn beside(&self, path: &Path) -> Option<Object> {
        let file = self.files.open_beneath(self.roots.first()?, path).ok()?;
        let file = Some(file).filter(|file| is_believed(file, self.writers))?;
        Object::read(&file).ok()
    }

    /// The file's own path, below its root.
    pub fn path(&self) -> &Path {
        self.path_inside.as_ref().unwrap_or(&self.path)
    }

    fn by_build_id(&self, id: &[u8], writers: Option<Writers>) -> Option<Object> {
        let (first, rest) = id.split_first().filter(|(_, rest)| !rest.is_empty())?;
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = format!("{DIRECTORY}/.build-id/{first:02x}/{rest}.debug");
        let belongs = |object: &Object| object.build_id().as_deref() == Some(id);
        let installed = self.open(Path::new(&path), writers).filter(belongs);
        installed.or_else(|| {
            let cached = debuginfod::debug_file(self.fetched.as_deref()?, id);
            // The cache is in our home directory, so it may be on a remote filesystem.
            let files = self.files.with_remote(RemoteFiles::Open);
            let file = files.open_beneath(self.our_root()?, &cached).ok()?;
            let its = Writers::by_mode(&file.metadata().ok()?);
            let is_ours = its.are_root_or_us() || is_believed(&file, writers);
            Object::read(&file).ok().filter(|_| is_ours).filter(belongs)
        })
    }

    /// Our own root directory. A process that may open nothing has it from the one that asked: it
    /// is the last of the roots then.
    fn our_root(&self) -> Option<OwnedFd> {
        opener::our_root().or_else(|| self.roots.last()?.try_clone().ok())
    }

    fn by_link(
        &self,
        object: &Object,
        id: Option<&[u8]>,
        writers: Option<Writers>,
    ) -> Option<Object> {
        let link = link::debug(object)?;
        let name = Path::new(OsStr::from_bytes(&link.name));
        let mut places = self.directories().flat_map(|beside| {
            let below = beside.strip_prefix("/").unwrap_or(beside);
            [
                beside.join(name),
                beside.join(".debug").join(name),
                Path::new(DIRECTORY).join(below).join(name),
            ]
        });
        places.find_map(|place| {
            let file = self.open_file(&place, writers)?;
            let found = Object::read(&file).ok()?;
            // A link that leads back to the file itself is accepted and ends the search: it adds
            // nothing to what the file has.
            let same_id = id.is_some() && found.build_id().as_deref() == id;
            let belongs = same_id || id.is_none() && has_checksum(found.source(), link.crc);
            belongs.then_some(found)
        })
    }

    /// The directories of the file itself, below the root.
    fn directories(&self) -> impl Iterator<Item = &Path> {
        let paths = [Some(&self.path), self.path_inside.as_ref()]
            .into_iter()
            .flatten();
        paths.map(|path| path.parent().unwrap_or(Path::new("/")))
    }

    fn open(&self, path: &Path, writers: Option<Writers>) -> Option<Object> {
        Object::read(&self.open_file(path, writers)?).ok()
    }

    fn open_file(&self, path: &Path, writers: Option<Writers>) -> Option<File> {
        self.open_files(path, writers).next()
    }

    /// Opens the file at a path below each root, as far as there is one. A path that leads from our
    /// root into the target's is resolved within the target's: its links must not lead out again.
    fn open_files(&self, path: &Path, writers: Option<Writers>) -> impl Iterator<Item = File> {
        let own = self.seen_at.as_ref().and_then(|root| inside(root, path));
        let roots = match own {
            Some(_) => &self.roots[..1],
            None => &self.roots[..],
        };
        let open = |root: &OwnedFd, path: &Path| self.files.open_beneath(root, path).ok();
        let literal = roots.iter().filter_map(move |root| open(root, path));
        let own = own.and_then(|own| open(self.roots.first()?, &own));
        let files = own.into_iter().chain(literal);
        files.filter(move |file| is_believed(file, writers))
    }
}

/// Whether a file that belongs to another one is trusted, given who can write to that one.
fn is_believed(file: &File, of: Option<Writers>) -> bool {
    of.is_none_or(|of| Writers::of(file).is_ok_and(|its| its.are_trusted_by(&of)))
}

/// The path at which we see a root directory, if it is not ours and is visible to us: paths in
/// /proc start at our root.
fn seen_at(root: &OwnedFd) -> Option<PathBuf> {
    let link = format!("/proc/self/fd/{}", root.as_raw_fd());
    let seen = std::fs::read_link(link).ok()?;
    (seen != Path::new("/")).then_some(seen)
}

/// Returns our path relative to a root directory.
fn inside(root: &Path, path: &Path) -> Option<PathBuf> {
    let inside = path.strip_prefix(root).ok()?;
    Some(Path::new("/").join(inside))
}

/// Unpacks the symbol table that some distributions leave in stripped files, compressed by xz.
pub fn mini(object: &Object, files: &Files) -> Result<Option<Object>, OpenError> {
    let Some(section) = object.section_by_name(b".gnu_debugdata") else {
        return Ok(None);
    };
    let Some(file) = object.file() else {
        // A file in memory is a vDSO, or was itself unpacked.
        return Ok(None);
    };
    let unpacked = files
        .unpacked(file, section.offset, section.size)
        .map_err(|_| OpenError::Refused(".gnu_debugdata"))?;
    Object::from_source(Source::unpacked(unpacked)?).map(Some)
}

fn has_checksum(source: &Source, expected: u32) -> bool {
    const PIECE: u64 = 1 << 20;
    if source.len() > CHECKED_BYTES_MAX {
        return false;
    }
    let mut crc = Crc::new();
    for start in (0..source.len()).step_by(PIECE as usize) {
        let len = PIECE.min(source.len() - start);
        match source.read(start, len, "debug file") {
            Ok(bytes) => crc.update(&bytes),
            Err(_) => return false,
        }
    }
    crc.sum() == expected
}
