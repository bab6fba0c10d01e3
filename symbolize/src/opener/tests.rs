use std::fs;
use std::io::Read;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;

use rustix::fs::{major, minor};

use super::*;
use crate::Files;

fn any() -> Files {
    RemoteFiles::Open.into()
}

fn text(file: &mut File) -> String {
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    text
}

/// Makes a root directory with a file of its own at the path of a well-known file of
/// the host.
fn root() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("lib")).unwrap();
    fs::create_dir_all(root.path().join("etc")).unwrap();
    fs::write(root.path().join("etc/passwd"), "inside").unwrap();
    root
}

#[test]
fn links_stay_below_the_root() {
    let root = root();
    for target in [
        "/etc/passwd",
        "../../../../../../etc/passwd",
        "../etc/passwd",
    ] {
        let link = root.path().join("lib/evil.so");
        let _ = fs::remove_file(&link);
        symlink(target, &link).unwrap();
        let fd = File::open(root.path()).unwrap();
        let path = Path::new("/lib/evil.so");
        let mut file = any().open_beneath(&fd, path).unwrap();
        assert_eq!(text(&mut file), "inside", "{target}");
    }
    let fd = File::open(root.path()).unwrap();
    let outside = any().open_beneath(&fd, Path::new("../../etc/hostname"));
    assert_eq!(outside.unwrap_err(), Reason::FileGone);
}

#[test]
fn a_file_that_must_be_none_is_no_link() {
    let root = root();
    symlink("/etc/passwd", root.path().join("lib/link")).unwrap();
    let fd = File::open(root.path()).unwrap();
    let open = |path: &str| {
        let mut mounts = Mounts::default();
        let mut opening = Opening {
            remote: RemoteFiles::Open,
            mounts: &mut mounts,
            watch: &mut Unwatched,
            mountinfo: None,
        };
        super::open_beneath(fd.as_fd(), Path::new(path), Links::Refuse, &mut opening)
    };
    assert_eq!(open("/lib/link").unwrap_err(), Reason::Refused);
    assert_eq!(text(&mut open("/lib/../etc/passwd").unwrap()), "inside");
}

#[test]
fn magic_links_are_not_followed() {
    let host = File::open("/").unwrap();
    let opened = any().open_beneath(&host, Path::new("/proc/self/exe"));
    assert!(opened.is_err());
}

#[test]
fn only_regular_files() {
    let host = File::open("/").unwrap();
    for path in ["/dev/null", "/etc", "/dev/tty"] {
        let opened = any().open_beneath(&host, Path::new(path));
        assert!(opened.is_err(), "{path}");
    }
    let root = root();
    let pipe = root.path().join("pipe");
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    );
    made.unwrap();
    let fd = File::open(root.path()).unwrap();
    let opened = any().open_beneath(&fd, Path::new("pipe"));
    assert_eq!(opened.unwrap_err(), Reason::Refused);
}

/// Returns the first executable mapping of a file in this process.
fn own_mapping() -> (PathBuf, (u64, u64)) {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.contains("r-xp")).unwrap();
    let (range, rest) = line.split_once(' ').unwrap();
    let (start, end) = range.split_once('-').unwrap();
    let number = |digits| u64::from_str_radix(digits, 16).unwrap();
    let path = &rest[rest.find('/').unwrap()..];
    (path.into(), (number(start), number(end)))
}

fn with_inode<'a>(path: &'a Path, metadata: &fs::Metadata) -> FileSource<'a> {
    let device = metadata.dev();
    FileSource {
        inode: metadata.ino(),
        device: (major(device), minor(device)),
        ..FileSource::new(path)
    }
}

#[test]
fn the_file_of_a_living_process() {
    let (path, range) = own_mapping();
    let metadata = fs::metadata(&path).unwrap();
    let source = FileSource {
        pid: Some(std::process::id()),
        range: Some(range),
        ..with_inode(&path, &metadata)
    };
    let file = any().open(&source).unwrap();
    assert_eq!(file.metadata().unwrap().ino(), metadata.ino());

    let by_path = FileSource {
        range: None,
        ..source
    };
    assert!(any().open(&by_path).is_ok());
    let other = FileSource {
        inode: metadata.ino() + 1,
        ..by_path
    };
    let refused = any().open(&other).unwrap_err();
    assert_eq!(refused, Reason::ChangedOnDisk);
}

#[test]
fn of_a_gone_process_only_the_same_file() {
    let root = root();
    let path = root.path().join("etc/passwd");
    let metadata = fs::metadata(&path).unwrap();
    let gone = FileSource {
        pid: Some(u32::MAX),
        ..with_inode(&path, &metadata)
    };
    assert!(any().open(&gone).is_ok());

    let unknown = FileSource { inode: 0, ..gone };
    let refused = any().open(&unknown).unwrap_err();
    assert_eq!(refused, Reason::ChangedOnDisk);
    let missing = Path::new("/nonexistent/lib.so");
    let refused = any().open(&FileSource::new(missing)).unwrap_err();
    assert_eq!(refused, Reason::FileGone);
}

#[test]
fn build_ids_decide() {
    let path = std::env::current_exe().unwrap();
    let object = crate::object::Object::read(&File::open(&path).unwrap()).unwrap();
    let Some(id) = object.build_id() else {
        test_support::skip("this test has no build-id");
        return;
    };
    let padded = [&id[..], &[0; 20][id.len().min(20)..]].concat();
    let source = FileSource {
        build_id: Some(&padded),
        ..FileSource::new(&path)
    };
    assert!(any().open(&source).is_ok());
    let other = FileSource {
        build_id: Some(b"another id"),
        ..source
    };
    let refused = any().open(&other).unwrap_err();
    assert_eq!(refused, Reason::ChangedOnDisk);
}

#[test]
fn deleted_and_replaced() {
    let root = root();
    let path = root.path().join("lib.so");
    fs::write(&path, "old").unwrap();
    let held: OwnedFd = File::open(&path).unwrap().into();
    let metadata = fs::metadata(&path).unwrap();
    // Held open, so that the new file does not get the inode.
    fs::remove_file(&path).unwrap();
    fs::write(&path, "new").unwrap();

    let marked = PathBuf::from(format!("{} (deleted)", path.display()));
    let source = FileSource {
        pid: Some(std::process::id()),
        ..with_inode(&marked, &metadata)
    };
    let replaced = any().open(&source).unwrap_err();
    assert_eq!(replaced, Reason::ChangedOnDisk);
    let given = FileSource {
        file: Some(&held),
        ..source
    };
    assert_eq!(text(&mut any().open(&given).unwrap()), "old");

    // A file whose real name ends like the mark of an unlinked one.
    fs::write(&marked, "odd").unwrap();
    let metadata = fs::metadata(&marked).unwrap();
    let odd = with_inode(&marked, &metadata);
    assert_eq!(text(&mut any().open(&odd).unwrap()), "odd");
}
