//! Where files are written: a folder, or a bucket of object storage. In both a file is there as a
//! whole or not at all, and replaces one of the same name.

use crate::bucket::{Bucket, Trouble, is_replaced};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Where files are written.
#[derive(Debug, Clone)]
pub enum Target {
    Folder(PathBuf),
    Bucket(Bucket),
}

/// Why a file was not written.
#[derive(Debug)]
pub enum Unwritten {
    /// It may be possible later.
    Later(String),
    /// It is not possible until somebody changes the configuration, or rights.
    NotAllowed(String),
}

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Self {
        Self::Later(error.to_string())
    }
}

impl From<::parquet::errors::ParquetError> for Unwritten {
    fn from(error: ::parquet::errors::ParquetError) -> Self {
        Self::Later(error.to_string())
    }
}

impl From<Trouble> for Unwritten {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::NotAllowed(why) => Self::NotAllowed(why),
            Trouble::Later(why) => Self::Later(why),
            Trouble::Missing => Self::NotAllowed(
                "the store answers 404 to a write: AWS_ENDPOINT_URL is something else".into(),
            ),
            Trouble::Changed => Self::Later("another one writes the object".into()),
            Trouble::Ended(failure) => Self::Later(failure.to_string()),
        }
    }
}

impl Target {
    /// Writes a file. `path` is below the target.
    pub fn put(&self, path: &Path, bytes: Vec<u8>) -> Result<(), Unwritten> {
        match self {
            Self::Folder(dir) => Ok(put(&dir.join(path), &bytes)?),
            Self::Bucket(bucket) => Ok(bucket.put(&key(bucket, path), bytes)?),
        }
    }

    /// Whether there is a file, or one that it was compacted to.
    pub fn has(&self, path: &Path) -> Result<bool, Unwritten> {
        match self {
            Self::Folder(dir) => Ok(dir.join(path).try_exists()?),
            Self::Bucket(bucket) => {
                let key = key(bucket, path);
                Ok(bucket.has(&key)? || is_replaced(bucket, &key)?)
            }
        }
    }

    /// Returns the place of a file that may disappear; `None` in a bucket, where each question about
    /// it is a request, and only days that are over are removed.
    pub fn watched(&self, path: &Path) -> Option<PathBuf> {
        match self {
            Self::Folder(dir) => Some(dir.join(path)),
            Self::Bucket(_) => None,
        }
    }
}

fn key(bucket: &Bucket, path: &Path) -> PathBuf {
    Path::new(&bucket.url().prefix).join(path)
}

/// Writes a file that gets its name only when it is complete.
fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    // Engines ignore names that begin with a dot.
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(path.file_name().unwrap_or_default());
    let part = folder.join(hidden);
    let mut file = File::create(&part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&part, path)?;
    // The name as well must survive a crash of the machine: the spool is not read again.
    File::open(folder)?.sync_all()
}
