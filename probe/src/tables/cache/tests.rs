use super::*;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, Instant, SystemTime};
use symbolize::object::Object;
use symbolize::source::Source;
use symbolize::unwind::{RbpRule, Register, Row, RuleId, UnwindRule};
use symbolize::{Segment, Segments};

/// A table with `rules` rules, of both kinds.
pub fn table(rules: u16) -> FileTable {
    let frame = |rule: u16| UnwindRule::frame(Register::Rsp, i32::from(rule) * 4, RbpRule::Same);
    let rules: Vec<UnwindRule> = [UnwindRule::Hole]
        .into_iter()
        .chain((1..=rules).map(frame))
        .collect();
    let rows: Vec<Row> = (1..rules.len() as u16)
        .chain([0])
        .enumerate()
        .map(|(at, rule)| Row {
            start: 0x1_0000 + at as u32 * 16,
            rule: RuleId(rule),
        })
        .collect();
    let segments = Segments::new(vec![Segment {
        offset: 0x1000,
        vaddr: 0x2000,
        filesz: 0x3000,
        executable: true,
    }]);
    FileTable::build(&rows, &rules, &segments).unwrap()
}

fn key(number: u8) -> CacheKey {
    CacheKey::by_id(&FileId::gnu(&[number; 20]), 1000).unwrap()
}

fn open(base: &Path) -> Cache {
    Cache::open(base, BYTES_MAX).unwrap()
}

fn leaf(base: &Path) -> PathBuf {
    base.join(PARTS.join("/"))
}

fn files(base: &Path) -> usize {
    std::fs::read_dir(leaf(base)).unwrap().count()
}

#[test]
fn another_run_finds_it() {
    let base = tempfile::tempdir().unwrap();
    open(base.path()).store(&key(1), &table(9));
    let cache = open(base.path());
    assert_eq!(cache.load(&key(1)), Some(table(9)));
    assert_eq!(cache.load(&key(2)), None);
    assert_eq!((cache.hits(), cache.damaged()), (1, 0));
    let rights = std::fs::metadata(leaf(base.path())).unwrap().permissions();
    assert_eq!(rights.mode() & 0o777, 0o700);
}

#[test]
fn what_is_kept_and_under_which_name() {
    let name = |id| CacheKey::by_id(&id, 255).map(|key| key.name);
    assert_eq!(
        name(FileId::gnu(&[0xab; 8])).as_deref(),
        Some("abababababababab-ff")
    );
    let go = name(FileId::Go("a/../b".into())).unwrap();
    assert!(go.starts_with("go-") && !go.contains('/'));
    assert_eq!(name(FileId::Content { hash: 1, len: 2 }), None);
    assert_eq!(name(FileId::gnu(&[])), None);
}

/// Files without build-id are what rustc links. The file's time decides when it may be stored.
#[test]
fn a_file_without_build_id_is_kept_once_it_rests() {
    // A small file, so that it is written within a moment, however busy the machine is.
    let mut bytes = std::fs::read("/bin/sh").unwrap();
    // The owner field of every note.
    let owners: Vec<usize> = (0..bytes.len() - 4)
        .filter(|at| &bytes[*at..at + 4] == b"GNU\0")
        .collect();
    for at in owners {
        bytes[at] = b'X';
    }
    let key_of = |source| {
        let object = Object::from_source(source).unwrap();
        let summary = Summary::of(&object);
        let id = summary.file_id(object.source());
        assert!(matches!(id, Ok(FileId::Content { .. })));
        CacheKey::of(&summary, object.source())
    };
    assert_eq!(key_of(Source::Memory(bytes.clone().into())), None);

    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&bytes).unwrap();
    let key = || key_of(Source::file(file.as_file()).unwrap());
    assert_eq!(key(), None);
    let began = Instant::now();
    while key().is_none() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(100));
    }
    let first = key().unwrap();
    assert!(first.name.starts_with("file-"));
    assert_eq!(key(), Some(first));
}

#[test]
fn a_damaged_file_is_removed() {
    let base = tempfile::tempdir().unwrap();
    let cache = open(base.path());
    cache.store(&key(1), &table(9));
    let path = leaf(base.path()).join(&key(1).name);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.truncate(100);
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(cache.load(&key(1)), None);
    assert_eq!((cache.damaged(), files(base.path())), (1, 0));
    cache.store(&key(1), &table(9));
    assert_eq!(cache.load(&key(1)), Some(table(9)));
}

#[test]
fn the_oldest_leave_first() {
    let base = tempfile::tempdir().unwrap();
    let bytes = format::encode(&table(9), &key(1).text).len() as u64;
    let cache = Cache::open(base.path(), bytes * 4).unwrap();
    for number in 1..=4 {
        cache.store(&key(number), &table(9));
        // Uses within minutes of each other count as one.
        let path = leaf(base.path()).join(&key(number).name);
        let ago = Duration::from_secs(3600 * (10 - u64::from(number)));
        let file = std::fs::File::open(path).unwrap();
        file.set_modified(SystemTime::now() - ago).unwrap();
    }
    assert!(cache.load(&key(1)).is_some(), "in use again");
    cache.store(&key(5), &table(9));
    let kept: Vec<u8> = (1..=5)
        .filter(|number| cache.load(&key(*number)).is_some())
        .collect();
    assert_eq!(kept, [1, 4, 5]);
    assert_eq!(files(base.path()), 3);
}

#[test]
fn two_runs_share_it() {
    let base = tempfile::tempdir().unwrap();
    let (a, b) = (open(base.path()), open(base.path()));
    std::thread::scope(|scope| {
        for cache in [&a, &b] {
            scope.spawn(move || {
                for round in 0..50 {
                    let number = round % 5;
                    cache.store(&key(number), &table(9));
                    assert!(cache.load(&key(number)).is_some());
                }
            });
        }
    });
    assert_eq!(a.damaged() + b.damaged(), 0);
    assert_eq!(files(base.path()), 5);
}

#[test]
fn what_cannot_be_written_is_not_kept() {
    let base = tempfile::tempdir().unwrap();
    let cache = open(base.path());
    std::fs::remove_dir(leaf(base.path())).unwrap();
    cache.store(&key(1), &table(9));
    assert_eq!(cache.load(&key(1)), None);
    assert!(!cache.directory.is_writable());
}

#[test]
fn a_directory_that_others_can_use_is_refused() {
    let refused = |prepare: &dyn Fn(&Path)| {
        let base = tempfile::tempdir().unwrap();
        drop(open(base.path()));
        prepare(base.path());
        let opened = Cache::open(base.path(), BYTES_MAX);
        assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    };
    let chmod = |path: PathBuf, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    refused(&|base| chmod(leaf(base), 0o750));
    refused(&|base| chmod(base.join("proftop"), 0o770));
    if rustix::process::geteuid().is_root() {
        let nobody = |path: PathBuf| std::os::unix::fs::chown(path, Some(65534), None).unwrap();
        refused(&|base| nobody(leaf(base)));
        refused(&|base| nobody(base.join("proftop")));
    }
}

#[test]
fn links_are_not_followed() {
    let (base, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    symlink(elsewhere.path(), base.path().join("proftop")).unwrap();
    assert!(Cache::open(base.path(), BYTES_MAX).is_err());

    let cache = open(elsewhere.path());
    cache.store(&key(1), &table(9));
    let directory = leaf(elsewhere.path());
    symlink(directory.join(&key(1).name), directory.join(&key(2).name)).unwrap();
    assert_eq!(cache.load(&key(2)), None);
}

#[test]
fn unfinished_files_of_former_runs_go() {
    let base = tempfile::tempdir().unwrap();
    drop(open(base.path()));
    let file = |name: &str, age: u64| {
        let file = std::fs::File::create(leaf(base.path()).join(name)).unwrap();
        let now = std::time::SystemTime::now();
        let then = now - std::time::Duration::from_secs(age);
        file.set_modified(then).unwrap();
    };
    file(".unfinished-1-0", 4000);
    file(".unfinished-2-0", 10);
    // A run that only reads does not look for them.
    open(base.path()).store(&key(1), &table(9));
    let stays = [key(1).name.as_str(), ".unfinished-2-0"].map(|name| leaf(base.path()).join(name));
    assert!(stays.iter().all(|path| path.exists()));
    assert_eq!(files(base.path()), 2);
}
