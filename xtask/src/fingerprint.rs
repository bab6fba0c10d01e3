//! The fingerprint of the BPF objects' sources, by which outdated objects are detected.

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Returns the workspace in which this xtask was started. It is determined at run time, not at
/// build time: two checkouts with a common target folder share this program.
pub fn workspace() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
    });
    FOLDER.parent().expect("xtask lies in the workspace")
}

/// Returns the SHA-256 of the paths and contents of all source files of the objects, sorted by
/// path.
pub fn of_sources() -> Result<String> {
    let mut files = vec![PathBuf::from("probe-ebpf/Cargo.toml")];
    collect(Path::new("probe-ebpf/src"), &mut files)?;
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let path = workspace().join(&file);
        let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        hash.update(file.to_string_lossy().as_bytes());
        hash.update([0]);
        hash.update((content.len() as u64).to_le_bytes());
        hash.update(content);
    }
    Ok(hex(&hash.finalize()))
}

pub fn of_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let path = workspace().join(folder);
    for entry in fs::read_dir(&path).with_context(|| format!("cannot list {}", path.display()))? {
        let entry = entry?;
        let inside = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            collect(&inside, files)?;
        } else if inside
            .extension()
            .is_some_and(|extension| extension == "rs")
        {
            files.push(inside);
        }
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ebpf::{OBJECTS, receipt_field};

    /// Fails if the BPF sources were changed and the objects were not rebuilt.
    #[test]
    fn the_committed_object_is_of_these_sources() {
        for object in OBJECTS {
            let receipt = fs::read_to_string(workspace().join(object.receipt)).unwrap();
            assert_eq!(
                receipt_field(&receipt, "sources_sha256"),
                Some(of_sources().unwrap().as_str()),
                "probe-ebpf/ has changed since {} was built: run `cargo xtask ebpf`",
                object.path
            );
        }
    }

    #[test]
    fn the_committed_object_is_the_one_in_its_receipt() {
        for object in OBJECTS {
            let receipt = fs::read_to_string(workspace().join(object.receipt)).unwrap();
            let bytes = fs::read(workspace().join(object.path)).unwrap();
            assert_eq!(
                receipt_field(&receipt, "object_sha256"),
                Some(of_bytes(&bytes).as_str())
            );
        }
    }
}
