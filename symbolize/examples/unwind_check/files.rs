//! Lists the files below directories, each once.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Visits every ELF file below the paths. Links are followed only if they are among the paths,
/// and a file with several names is visited once.
pub fn visit(paths: Vec<PathBuf>, on_file: &mut impl FnMut(&Path)) {
    let resolved = paths.iter().flat_map(|path| path.canonicalize());
    let mut pending: Vec<PathBuf> = resolved.collect();
    let mut seen = HashSet::new();
    while let Some(path) = pending.pop() {
        let Ok(metadata) = path.symlink_metadata() else {
            continue;
        };
        if metadata.is_dir() {
            let entries = path.read_dir().into_iter().flatten().flatten();
            pending.extend(entries.map(|entry| entry.path()));
            continue;
        }
        let is_wanted = metadata.is_file() && is_elf(&path);
        if is_wanted && seen.insert((metadata.dev(), metadata.ino())) {
            on_file(&path);
        }
    }
}

fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = std::fs::File::open(path)
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut magic));
    read.is_ok() && magic == *b"\x7fELF"
}
