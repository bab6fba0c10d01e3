//! Gets the table of a file: from the cache, or newly made by a process without rights, if there
//! are such processes.

use super::make::{Made, make, no_table};
use super::{Content, elsewhere};
use crate::machine::THIS;
use crate::tables::cache::{Cache, CacheKey};
use crate::tables::file_table::FileTable;
use crate::tables::no_table::NoTable;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use symbolize::debug_file::DebugFiles;
use symbolize::files::Work;
use symbolize::object::{Object, Summary};
use symbolize::python::Trampoline;
use symbolize::revision::Revision;
use symbolize::source::Source;
use symbolize::{FileSource, Files, OpenError};

/// A table, and its cache key if it is new.
pub struct Found {
    pub table: FileTable,
    /// The key for storing the table in the cache. None if the table comes from there, is not
    /// complete, or cannot be stored.
    pub new_key: Option<CacheKey>,
}

/// Returns the table of a file: from the cache, or else from its unwind information. An error for a
/// file with more than `information_bytes` of unwind information.
pub fn table(
    content: &Content,
    cache: Option<&Cache>,
    files: &Files,
    information_bytes: u64,
    work: Work,
) -> Result<Found, NoTable> {
    match content {
        Content::Trampolines(kind) => {
            let (rows, rules) = (kind.rows(), Trampoline::rules());
            let table = FileTable::build(&rows, &rules, &Trampoline::segments())?;
            Ok(Found {
                table,
                new_key: None,
            })
        }
        Content::Bytes(bytes) => {
            let source = Source::Memory((&**bytes).into());
            let object = Object::from_source(source).map_err(no_table)?;
            let summary = Summary::of(&object);
            let key = || CacheKey::of(&summary, object.source());
            from_cache_or(cache, &summary, key, information_bytes, |_| {
                make(&object, None)
            })
        }
        Content::File {
            file,
            revision,
            summary,
            path,
            root,
        } => {
            let summary = summary.as_deref();
            let summary = summary.map_err(|reason| elsewhere::no_table(*reason))?;
            let key = || key_of(file, revision.as_ref(), summary);
            from_cache_or(cache, summary, key, information_bytes, |key| {
                let source = FileSource {
                    root: root.as_deref(),
                    ..FileSource::new(path)
                };
                let places = DebugFiles::of(&source, files);
                if files.has_parsers() {
                    let key = key.map_or("", CacheKey::text);
                    return elsewhere::ask(file, &places, key, files, work);
                }
                let object = Object::from_source(of_file(file).map_err(no_table)?);
                make(&object.map_err(no_table)?, Some(&places))
            })
        }
    }
}

/// Returns the table that the cache has under this key, or else the one that `make` returns; an
/// error for a file with more than `information_bytes` of unwind information.
fn from_cache_or(
    cache: Option<&Cache>,
    summary: &Summary,
    key: impl FnOnce() -> Option<CacheKey>,
    information_bytes: u64,
    make: impl FnOnce(Option<&CacheKey>) -> Result<Made, NoTable>,
) -> Result<Found, NoTable> {
    if summary.machine != THIS.elf {
        return Err(NoTable::UnsupportedMachine);
    }
    let key = cache.and_then(|_| key());
    let cached = cache
        .zip(key.as_ref())
        .and_then(|(cache, key)| cache.load(key));
    if let Some(table) = cached {
        return Ok(Found {
            table,
            new_key: None,
        });
    }
    if summary.unwind_bytes > information_bytes {
        return Err(NoTable::TooLarge);
    }
    let Made { table, is_complete } = make(key.as_ref())?;
    Ok(Found {
        table,
        // Missing files may be available the next time.
        new_key: key.filter(|_| is_complete),
    })
}

/// Returns the key of a file; `None` if it was written to since its headers were read: it may have
/// another build-id by now.
fn key_of(file: &Arc<OwnedFd>, revision: Option<&Revision>, summary: &Summary) -> Option<CacheKey> {
    let source = of_file(file).ok()?;
    let now = source.revision_now()?;
    let is_unchanged = revision.is_some_and(|before| now.is_as_written(before));
    if is_unchanged {
        CacheKey::of(summary, &source)
    } else {
        None
    }
}

fn of_file(file: &Arc<OwnedFd>) -> Result<Source, OpenError> {
    let file = file.try_clone().map_err(|source| OpenError::Read {
        what: "the file",
        source,
    })?;
    Source::file(&File::from(file))
}
