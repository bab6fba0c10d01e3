//! Opens the directory that caches lie in, if we have the rights of root: then nobody else must be
//! able to choose where its path leads. A user who may change a directory on the path could put a
//! link into it, and have directories created in places of root.

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path};

/// Maximum number of symbolic links on a path, as in the kernel.
const LINKS_MAX: usize = 40;

/// Opens a directory, and creates it and missing ones on its path with access for us alone. Refuses
/// a path with a directory that another user can change, and a link of another user.
pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    let root = || rustix::fs::open("/", DIRECTORY, Mode::empty());
    let mut directory = root()?;
    let mut left = components(path).ok_or(io::ErrorKind::InvalidInput)?;
    let mut links = 0;
    while let Some(part) = left.pop_front() {
        require_unchangeable(&rustix::fs::fstat(&directory)?)?;
        let entry = rustix::io::retry_on_intr(|| {
            rustix::fs::openat(&directory, &*part, ENTRY, Mode::empty())
        });
        let entry = match entry {
            Err(Errno::NOENT) => {
                match rustix::fs::mkdirat(&directory, &*part, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                rustix::fs::openat(&directory, &*part, ENTRY, Mode::empty())?
            }
            entry => entry?,
        };
        let status = rustix::fs::fstat(&entry)?;
        if !FileType::from_raw_mode(status.st_mode).is_symlink() {
            directory = entry;
            continue;
        }
        links += 1;
        if links > LINKS_MAX {
            return Err(Errno::LOOP.into());
        }
        // In a directory with the sticky bit others may have made it.
        require_ours(&status)?;
        let target = rustix::fs::readlinkat(&entry, "", Vec::new())?;
        let target = OsString::from_vec(target.into_bytes());
        if Path::new(&target).is_absolute() {
            directory = root()?;
        }
        let mut parts = relative(Path::new(&target));
        parts.append(&mut left);
        left = parts;
    }
    require_unchangeable(&rustix::fs::fstat(&directory)?)?;
    Ok(rustix::fs::openat(
        &directory,
        ".",
        DIRECTORY,
        Mode::empty(),
    )?)
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);
/// Opens a link itself.
const ENTRY: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Returns the parts of an absolute path, and None for another one.
fn components(path: &Path) -> Option<VecDeque<OsString>> {
    path.is_absolute().then(|| relative(path))
}

/// Returns the parts of a path below the directory that it begins in.
fn relative(path: &Path) -> VecDeque<OsString> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    parts.collect()
}

/// Returns an error if another user can change the entries of a directory that are ours.
fn require_unchangeable(status: &Stat) -> io::Result<()> {
    const STICKY: u32 = 0o1000;
    require_ours(status)?;
    if status.st_mode & 0o022 == 0 || status.st_mode & STICKY != 0 {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

fn require_ours(status: &Stat) -> io::Result<()> {
    if status.st_uid == rustix::process::geteuid().as_raw() {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    use test_support::is_root_or_skip;

    const OTHER: u32 = 4_242_424;

    #[test]
    fn only_we_choose_where_a_path_leads() {
        if !is_root_or_skip("only root is careful, and can give a directory away") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let is_refused = |path: &Path| {
            let opened = open(path).map(drop);
            opened.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
        };
        // Missing directories are made, and links of our own are followed.
        assert!(open(&path("own/deep")).is_ok());
        assert_eq!(
            fs::metadata(path("own/deep")).unwrap().permissions().mode() & 0o777,
            0o700
        );
        symlink("../own", path("own/up")).unwrap();
        symlink(path("own"), path("link")).unwrap();
        assert!(open(&path("link/up/deep/new")).is_ok());
        assert!(path("own/deep/new").is_dir());
        symlink("circle", path("circle")).unwrap();
        assert!(open(&path("circle")).is_err());
        assert!(open(Path::new("own")).is_err());
        fs::write(path("file"), "").unwrap();
        assert!(open(&path("file/new")).is_err());
        assert!(open(&path("file")).is_err());

        // A directory of another user, below which nothing is made.
        fs::create_dir(path("others")).unwrap();
        chown(path("others"), Some(OTHER), None).unwrap();
        assert!(is_refused(&path("others")) && is_refused(&path("others/new")));
        assert!(!path("others/new").exists());
        symlink(path("own"), path("others/link")).unwrap();
        assert!(is_refused(&path("others/link/made")) && !path("own/made").exists());
        // One that others may write to, and the same with the sticky bit: there a link of another
        // user is not followed.
        fs::create_dir(path("shared")).unwrap();
        let open_to_all = |mode| fs::set_permissions(path("shared"), Permissions::from_mode(mode));
        open_to_all(0o777).unwrap();
        assert!(is_refused(&path("shared/new")));
        open_to_all(0o1777).unwrap();
        assert!(open(&path("shared/new")).is_ok());
        symlink(path("own"), path("shared/link")).unwrap();
        std::os::unix::fs::lchown(path("shared/link"), Some(OTHER), None).unwrap();
        assert!(is_refused(&path("shared/link/made")) && !path("own/made").exists());
    }
}
