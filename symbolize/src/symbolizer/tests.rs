use super::*;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::RemoteFiles;
use rustix::fs::{major, minor};

fn source(path: &Path) -> FileSource<'_> {
    let metadata = std::fs::metadata(path).unwrap();
    FileSource {
        inode: metadata.ino(),
        device: (major(metadata.dev()), minor(metadata.dev())),
        ..FileSource::new(path)
    }
}

fn open(symbolizer: &Symbolizer, path: &Path) -> Result<Arc<ElfSymbols>, Reason> {
    symbolizer.open(source(path))
}

#[test]
fn a_file_is_read_once() {
    let symbolizer = Symbolizer::new().with_files(RemoteFiles::Open);
    let path = std::env::current_exe().unwrap();
    let threads: Vec<_> = std::thread::scope(|scope| {
        let start = || scope.spawn(|| open(&symbolizer, &path).unwrap());
        let threads = [start(), start(), start()];
        threads.map(|thread| thread.join().unwrap()).into()
    });
    assert!(
        threads
            .iter()
            .all(|symbols| Arc::ptr_eq(symbols, &threads[0]))
    );
    assert!(symbolizer.heap_bytes() >= threads[0].heap_bytes());
}

#[test]
fn a_changed_file_is_read_again() {
    let symbolizer = Symbolizer::new().with_files(RemoteFiles::Open);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program");
    std::fs::write(&path, "not ELF").unwrap();
    assert_eq!(open(&symbolizer, &path).unwrap_err(), Reason::Damaged);
    std::fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
    assert!(open(&symbolizer, &path).is_ok());
}

#[test]
fn deleted_files_are_closed_when_they_take_much_room() {
    const BYTES: usize = 1 << 20;
    let symbolizer = Symbolizer {
        opened: Cache::with_bytes_max(3 * BYTES),
        ..Symbolizer::new().with_files(RemoteFiles::Open)
    };
    let directory = tempfile::tempdir().unwrap();
    let open = |name: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, vec![7; BYTES]).unwrap();
        let opened = symbolizer.opened(&source(&path)).unwrap();
        (path, Arc::downgrade(&opened.1))
    };
    let (_, named) = open("named");
    let deleted: Vec<_> = (0..9)
        .map(|number| {
            let (path, file) = open(&format!("{number}"));
            std::fs::remove_file(path).unwrap();
            file
        })
        .collect();
    // The room of the last one is taken when the next file is opened.
    let (_, last) = open("last");
    let is_open: Vec<bool> = deleted.iter().map(|file| file.strong_count() > 0).collect();
    let open_count = is_open.iter().filter(|is_open| **is_open).count();
    assert!((2..=3).contains(&open_count), "{is_open:?}");
    assert!(is_open.iter().is_sorted(), "the oldest leave: {is_open:?}");
    assert!(named.strong_count() > 0 && last.strong_count() > 0);
}
