//! A *control group* as specified with `-g`: by path, by systemd unit, or by the beginning of a
//! container id.
//!
//! What the BPF program compares is the group's id, which is the inode number
//! of its directory on 64-bit kernels, at its depth below the root of the
//! hierarchy (`bpf_get_current_ancestor_cgroup_id(level)`). In a container with
//! its own cgroup namespace that depth counts from the namespace's root, which
//! is not the kernel's.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Maximum number of directories that are searched. A host with thousands of containers has some
/// ten thousand; the limit only stops a runaway search.
const SEARCH_MAX: usize = 200_000;
/// Maximum number of candidates that are listed when a name is ambiguous.
const CANDIDATES_MAX: usize = 10;
/// Minimum length of a container id. `docker ps` shows 12 digits; fewer than 8 could be a word.
const CONTAINER_ID_MIN: usize = 8;

/// A control group that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    /// Path as in `/proc/PID/cgroup`: `/system.slice/nginx.service`.
    pub path: PathBuf,
    /// Path of its directory.
    pub directory: PathBuf,
    /// The kernel's id of the group.
    pub id: u64,
    /// Depth below the root, which is 0.
    pub level: u32,
}

/// Why a control group cannot be a target.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// There is no cgroup2 hierarchy.
    #[error("no cgroup2 file system is mounted here")]
    NotMounted,
    /// No group has that name.
    #[error("no cgroup, unit or container is called {0:?}")]
    NotFound(String),
    /// Several groups have that name.
    #[error("{name:?} could be any of {}", list(.candidates))]
    Ambiguous {
        /// The name as typed.
        name: String,
        /// The groups that it could mean.
        candidates: Vec<PathBuf>,
    },
    /// The hierarchy cannot be read.
    #[error("failed to read `{path}`: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

/// The mounted cgroup2 file system.
#[derive(Debug, Clone)]
pub struct Hierarchy {
    root: PathBuf,
}

impl Hierarchy {
    /// Finds the hierarchy of this mount namespace: `/sys/fs/cgroup`, or `unified` below it if
    /// version 1 is mounted, too.
    pub fn mounted() -> Result<Hierarchy, CgroupError> {
        let path = PathBuf::from("/proc/self/mountinfo");
        let mounts = fs::read(&path).map_err(|source| CgroupError::Io { path, source })?;
        let root = find_cgroup2_mount(&mounts).ok_or(CgroupError::NotMounted)?;
        Ok(Hierarchy { root })
    }

    /// Where the hierarchy is mounted.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the group that `name` stands for.
    pub fn resolve(&self, name: &str) -> Result<Cgroup, CgroupError> {
        if let Some(directory) = self.find_by_path(name) {
            return self.describe(directory);
        }
        if name.is_empty() || name.contains('/') {
            return Err(CgroupError::NotFound(name.into()));
        }
        for matches in [is_unit, is_container] {
            let found = outermost(self.search(|directory| matches(directory, name)));
            match &found[..] {
                [] => {}
                [directory] => return self.describe(directory.clone()),
                several => {
                    return Err(CgroupError::Ambiguous {
                        name: name.into(),
                        candidates: several.iter().map(|d| self.below_root(d)).collect(),
                    });
                }
            }
        }
        Err(CgroupError::NotFound(name.into()))
    }

    /// Finds a path of the file system below the mount, or one relative to the root of the
    /// hierarchy, with or without the leading slash.
    fn find_by_path(&self, name: &str) -> Option<PathBuf> {
        let path = Path::new(name);
        if path.components().any(|part| part == Component::ParentDir) {
            return None;
        }
        let inside = match path.strip_prefix(&self.root) {
            Ok(inside) => inside,
            Err(_) => path.strip_prefix("/").unwrap_or(path),
        };
        let directory = self.root.join(inside);
        (!name.is_empty() && directory.is_dir()).then_some(directory)
    }

    /// Searches breadth-first, so that of equal names the outer ones come first.
    fn search(&self, matches: impl Fn(&OsStr) -> bool) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut queue = VecDeque::from([self.root.clone()]);
        for _ in 0..SEARCH_MAX {
            let Some(directory) = queue.pop_front() else {
                break;
            };
            // A group may be removed during the search.
            let Ok(entries) = fs::read_dir(&directory) else {
                continue;
            };
            for entry in entries.flatten() {
                if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    continue;
                }
                if matches(&entry.file_name()) {
                    found.push(entry.path());
                }
                queue.push_back(entry.path());
            }
        }
        found
    }

    fn describe(&self, directory: PathBuf) -> Result<Cgroup, CgroupError> {
        let path = self.below_root(&directory);
        let metadata = fs::metadata(&directory).map_err(|source| CgroupError::Io {
            path: directory.clone(),
            source,
        })?;
        let names = path
            .components()
            .filter(|c| matches!(c, Component::Normal(_)));
        Ok(Cgroup {
            id: metadata.ino(),
            level: u32::try_from(names.count()).unwrap_or(u32::MAX),
            path,
            directory,
        })
    }

    fn below_root(&self, directory: &Path) -> PathBuf {
        Path::new("/").join(directory.strip_prefix(&self.root).unwrap_or(directory))
    }
}

/// Whether a directory is the unit `nginx.service`, also for `nginx`.
fn is_unit(directory: &OsStr, name: &str) -> bool {
    let Some(rest) = directory.as_bytes().strip_prefix(name.as_bytes()) else {
        return false;
    };
    matches!(rest, b"" | b".service" | b".scope" | b".slice")
}

/// Whether a directory belongs to a container: `docker-<id>.scope`, `cri-containerd-<id>.scope`,
/// `libpod-<id>.scope`, or the bare id. `libpod-conmon-<id>` is the monitor of a container, not the
/// container.
fn is_container(directory: &OsStr, id: &str) -> bool {
    let is_id = id.len() >= CONTAINER_ID_MIN && id.bytes().all(|b| b.is_ascii_hexdigit());
    let Some(directory) = directory.to_str() else {
        return false;
    };
    let name = directory.strip_suffix(".scope").unwrap_or(directory);
    let (keeper, last) = name.rsplit_once('-').unwrap_or(("", name));
    is_id && last.starts_with(&id.to_ascii_lowercase()) && !keeper.ends_with("conmon")
}

/// Removes groups inside of other found ones: a container may make groups of its own.
fn outermost(found: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut kept: Vec<PathBuf> = Vec::new();
    for directory in found {
        if !kept.iter().any(|outer| directory.starts_with(outer)) {
            kept.push(directory);
        }
    }
    kept
}

/// Returns the mount point in proc_pid_mountinfo(5): the fifth field, with the file system type
/// after a lone dash.
pub fn find_cgroup2_mount(mountinfo: &[u8]) -> Option<PathBuf> {
    mountinfo.split(|&b| b == b'\n').find_map(|line| {
        let mut fields = line.split(|&b| b == b' ');
        let point = fields.nth(4)?;
        let kind = fields.skip_while(|&field| field != b"-").nth(1)?;
        (kind == b"cgroup2").then(|| PathBuf::from(OsStr::from_bytes(&unescape(point))))
    })
}

/// Decodes paths, in which blanks and backslashes are written `\ooo`.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let code = match (first, tail) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'))
            }
            _ => None,
        };
        bytes.push(code.unwrap_or(*first));
        rest = &tail[if code.is_some() { 3 } else { 0 }..];
    }
    bytes
}

fn list(candidates: &[PathBuf]) -> String {
    let mut text: Vec<_> = candidates
        .iter()
        .take(CANDIDATES_MAX)
        .map(|path| path.display().to_string())
        .collect();
    if candidates.len() > CANDIDATES_MAX {
        text.push(format!("{} more", candidates.len() - CANDIDATES_MAX));
    }
    text.join(", ")
}

#[cfg(test)]
mod tests;
