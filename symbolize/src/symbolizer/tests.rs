use super::*;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::RemoteFiles;
use rustix::fs::{major, minor};

fn open(symbolizer: &Symbolizer, path: &Path) -> Result<Arc<ElfSymbols>, Reason> {
    let metadata = std::fs::metadata(path).unwrap();
    symbolizer.open(FileSource {
        inode: metadata.ino(),
        device: (major(metadata.dev()), minor(metadata.dev())),
        ..FileSource::new(path)
    })
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
