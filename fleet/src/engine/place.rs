//! Where the tables of many machines are: in a folder, or below a prefix in a bucket of object
//! storage. Paths of a bucket are keys.

use crate::bucket::{Bucket, BucketUrl, Look, Retries};
use crate::failure::{Failure, shown};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where tables are.
#[derive(Debug, Clone)]
pub enum Place {
    Folder(PathBuf),
    Bucket(Bucket),
}

impl Place {
    /// Converts what a user has written: a folder, or `s3://BUCKET/PREFIX`.
    pub fn read(text: &Path) -> Result<Self, Failure> {
        if !BucketUrl::is_meant(text) {
            return Ok(Self::Folder(text.into()));
        }
        let url = BucketUrl::read(&text.to_string_lossy())
            .map_err(|why| Failure::usage(format!("{}: {why}", shown(text))))?;
        Bucket::open(&url, Retries::Here).map(Self::Bucket)
    }

    /// Formats the place itself, so that it can be printed.
    pub fn name(&self) -> String {
        match self {
            Self::Folder(dir) => shown(dir),
            Self::Bucket(bucket) => bucket.url().to_string(),
        }
    }

    /// Formats a path in this place, so that it can be printed.
    pub fn shown(&self, path: &Path) -> String {
        match self {
            Self::Folder(_) => shown(path),
            Self::Bucket(bucket) => bucket.shown(path),
        }
    }

    /// Returns the path of a table.
    pub fn table(&self, name: &str) -> PathBuf {
        match self {
            Self::Folder(dir) => dir.join(name),
            Self::Bucket(bucket) => Path::new(&bucket.url().prefix).join(name),
        }
    }

    /// Checks that it is there. Of a bucket nothing is known before something is asked of it.
    pub fn check(&self) -> Result<(), Failure> {
        let Self::Folder(dir) = self else {
            return Ok(());
        };
        let told = fs::metadata(dir).map_err(|error| unlisted(&shown(dir), &error))?;
        if told.is_dir() {
            Ok(())
        } else {
            Err(Failure::usage(format!("{} is no folder", shown(dir))))
        }
    }

    /// Returns the files of a folder that count.
    pub fn files(&self, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
        match self {
            Self::Folder(_) => {
                let files = self.entries(folder)?.into_iter();
                Ok(files.filter(|it| is_parquet(it)).collect())
            }
            Self::Bucket(bucket) => match Look::at(bucket, folder, is_parquet) {
                Ok(look) => Ok(look.current(folder)),
                Err(trouble) => Err(trouble.failure(&self.shown(folder))),
            },
        }
    }

    /// Returns what is directly in a folder, in any order. Empty if there is no such folder.
    pub fn entries(&self, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
        let failed = |error: std::io::Error| unlisted(&shown(folder), &error);
        match self {
            Self::Folder(_) => match fs::read_dir(folder) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
                found => {
                    let entries = found.map_err(failed)?;
                    entries.map(|it| Ok(it.map_err(failed)?.path())).collect()
                }
            },
            Self::Bucket(bucket) => bucket
                .entries(folder)
                .map_err(|trouble| trouble.failure(&self.shown(folder))),
        }
    }
}

/// Whether it is a complete file of Parquet: incomplete files have names that begin with a dot.
pub fn is_parquet(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.ends_with(b".parquet") && !name.starts_with(b".") && !name.starts_with(b"_")
}

fn unlisted(place: &str, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot look into {place}: {error}"))
}
