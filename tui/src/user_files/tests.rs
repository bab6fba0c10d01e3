//! Tests of written files, and of what remains if writing fails.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;

fn write(path: &Path, text: &str, replaces: bool) -> Result<(), Refusal> {
    let rights = UserRights::own();
    UserFiles::of(&rights).write(path, text.as_bytes(), Manner::usual(replaces))
}

#[test]
fn a_file_is_whole_or_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let rights = UserRights::own();
    let files = UserFiles::of(&rights);
    let seen = files.write_with(&path, |file| {
        file.write_all(b"half")?;
        Ok::<_, io::Error>(path.exists())
    });
    assert!(
        !seen.unwrap().unwrap(),
        "it has no name while it is written"
    );
    let failed = files.write_with(&path, |file| {
        file.write_all(b"less")?;
        Err::<(), _>(io::Error::other("on purpose"))
    });
    assert!(failed.unwrap().is_err());
    assert_eq!(fs::read(&path).unwrap(), b"half");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn what_fails_to_be_written_leaves_the_old() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    write(&path, "old", false).unwrap();
    assert!(matches!(write(&path, "new", false), Err(Refusal::Exists)));
    assert_eq!(fs::read(&path).unwrap(), b"old");
    write(&path, "new", true).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_file_that_grows_is_seen_as_soon_as_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let rights = UserRights::own();
    let files = UserFiles::of(&rights);
    let mut before = None;
    for replacing in [false, true] {
        let created = files.create(&path, replacing).unwrap();
        let Created::Unnamed { new, replaces } = created else {
            panic!("{created:?}");
        };
        assert_eq!(replaces, replacing);
        assert_eq!(fs::read(&path).ok(), before);
        let mut file = files.name(new, replaces).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        file.write_all(b"one line").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one line");
        before = Some(b"one line".to_vec());
    }
    assert!(matches!(files.create(&path, false), Err(Refusal::Exists)));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn only_files_pipes_and_plain_devices_are_places() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    symlink("/dev/null", path("link")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    for (name, words) in [
        ("link", "symbolic link"),
        ("socket", "it is a socket"),
        (".", "it is a folder"),
        ("new/", "it is a folder"),
        ("..", "it is a folder"),
        ("no/file", "No such file"),
    ] {
        for replaces in [false, true] {
            let why = write(&path(name), "", replaces).unwrap_err().to_string();
            assert!(why.contains(words), "{name}: {why}");
        }
    }
    write(Path::new("/dev/null"), "gone", false).unwrap();
}

#[test]
fn permissions_are_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let rights = UserRights::own();
    let private = Manner {
        replaces: true,
        mode: 0o600,
    };
    UserFiles::of(&rights).write(&path, b"", private).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    write(&path, "more", true).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
}

/// Covers file systems without unnamed files, and systems without /proc.
#[test]
fn a_hidden_name_does_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let begin = || {
        let place = FolderEntry::open(&path).unwrap();
        let mut new = NewFile::begin_hidden(place, Mode::from_raw_mode(0o666)).unwrap();
        new.file().write_all(b"text").unwrap();
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1 + usize::from(path.exists())
        );
        new
    };
    drop(begin());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    begin().publish().unwrap();
    assert!(matches!(begin().publish(), Err(Refusal::Exists)));
    begin().replace().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"text");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
