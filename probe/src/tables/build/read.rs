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
use symbolize::object::Object;
use symbolize::python::Trampoline;
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
    let source = match content {
        Content::Trampolines(kind) => {
            let (rows, rules) = (kind.rows(), Trampoline::rules());
            let table = FileTable::build(&rows, &rules, &Trampoline::segments())?;
            return Ok(Found {
                table,
                new_key: None,
            });
        }
        Content::File { file, .. } => of_file(file).map_err(no_table)?,
        Content::Bytes(bytes) => Source::Memory((&**bytes).into()),
    };
    let object = Object::from_source(source).map_err(no_table)?;
    if object.machine() != THIS.elf {
        return Err(NoTable::UnsupportedMachine);
    }
    let key = cache.and_then(|_| CacheKey::of(&object));
    let cached = cache
        .zip(key.as_ref())
        .and_then(|(cache, key)| cache.load(key));
    if let Some(table) = cached {
        return Ok(Found {
            table,
            new_key: None,
        });
    }
    if unwind_bytes(&object) > information_bytes {
        return Err(NoTable::TooLarge);
    }
    let made = match content {
        Content::File { file, path, root } => {
            let source = FileSource {
                root: root.as_deref(),
                ..FileSource::new(path)
            };
            let places = DebugFiles::of(&source, files);
            if files.has_parsers() {
                let key = key.as_ref().map_or("", CacheKey::text);
                elsewhere::ask(file, &places, key, files, work)
            } else {
                make(&object, Some(&places))
            }
        }
        Content::Bytes(_) | Content::Trampolines(_) => make(&object, None),
    };
    let Made { table, is_complete } = made?;
    Ok(Found {
        table,
        // Missing files may be available the next time.
        new_key: key.filter(|_| is_complete),
    })
}

/// Returns the size of the unwind information in the file itself.
fn unwind_bytes(object: &Object) -> u64 {
    let sections = [&b".eh_frame"[..], b".debug_frame", b".gopclntab"];
    let found = sections
        .iter()
        .filter_map(|name| object.section_by_name(name));
    found.map(|section| section.size).sum()
}

fn of_file(file: &Arc<OwnedFd>) -> Result<Source, OpenError> {
    let file = file.try_clone().map_err(|source| OpenError::Read {
        what: "the file",
        source,
    })?;
    Source::file(&File::from(file))
}
