//! A directory for a test.

use std::path::{Path, PathBuf};

/// A temporary directory for a test, which is removed when this is dropped, also when the test
/// fails.
pub struct Scratch(tempfile::TempDir);

impl Scratch {
    /// Creates an empty directory below the one for temporary files.
    #[expect(clippy::new_without_default, reason = "it makes a directory")]
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a scratch directory"))
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the path of a file in it, whether it exists or not.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a file, and returns its path. Creates the directories above it.
    pub fn write(&self, name: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        let parent = path.parent().expect("it is in the scratch directory");
        std::fs::create_dir_all(parent).expect("its directory");
        std::fs::write(&path, contents).expect("a file in a scratch directory");
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left() {
        let scratch = Scratch::new();
        let path = scratch.path().to_owned();
        let file = scratch.write("deep/er", "text");
        assert_eq!(std::fs::read(&file).unwrap(), b"text");
        assert!(file.starts_with(&path));
        let failed = std::thread::spawn(move || {
            let _scratch = scratch;
            panic!("as a test that fails");
        });
        assert!(failed.join().is_err());
        assert!(!path.exists());
    }
}
