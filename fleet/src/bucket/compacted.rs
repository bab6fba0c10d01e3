//! Which objects of a folder count after it was compacted.
//!
//! A store has no rename, so that one object cannot take the place of many in one step. But each
//! single object is written as a whole. So a folder that was compacted has a list, `_compacted.json.gz`,
//! and what it says holds from the moment when it is there:
//!
//! ```text
//! 1. write `compacted-RUN.parquet`: does not count, as no list names it
//! 2. write the list, if it is still the one that was read before: the new object counts, and all
//!    objects that it was made of do not
//! 3. remove these objects
//! ```
//!
//! A compaction that is killed in between leaves either the old state or the new one, and objects
//! that do not count, which the next run removes. A reader lists the objects first and reads the list
//! after that: what was removed before its time is then known to be replaced.
//!
//! Names of objects that were replaced stay in the list, so that a shipper which was killed before
//! it knew that it had written an object does not write it once more.

use super::{Bucket, Trouble, Version};
use crate::failure::safe;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

/// The name of the list. Engines ignore names that begin with `_`.
const NAME: &str = "_compacted.json.gz";

/// How objects are called that count only if a list names them. Files of the shipper end
/// differently.
const BEGINNING: &str = "compacted-";
const ENDING: &str = ".parquet";
const RUN_DIGITS: usize = 16;

/// Maximum size of a list, with and without compression: names of some million objects.
const BYTES_MAX: u64 = 64 << 20;
const TEXT_MAX: u64 = 512 << 20;

/// How often objects are listed while the list changes each time.
const LOOKS: usize = 10;

/// The content of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    version: u32,
    /// The run that has written the list. It is another one each time, so that lists differ.
    run: String,
    /// The name of the object that the others were made to; empty if there is none.
    file: String,
    /// The names of the objects that it replaces.
    replaced: BTreeSet<String>,
}

/// The objects of a folder, by their names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// Those that count.
    pub current: Vec<String>,
    /// Those that were replaced and are still there.
    pub replaced: Vec<String>,
    /// Those that no list names: of a run that was killed, or that goes on.
    pub unfinished: Vec<String>,
}

impl Compacted {
    /// Reads the list of a folder, and its version; `None` if it was never compacted.
    pub fn read(bucket: &Bucket, folder: &Path) -> Result<Option<(Self, Version)>, Trouble> {
        let key = folder.join(NAME);
        let (bytes, version) = match bucket.get(&key, BYTES_MAX) {
            Err(Trouble::Missing) => return Ok(None),
            got => got?,
        };
        let damaged = |why: &dyn std::fmt::Display| {
            Trouble::NotAllowed(format!(
                "{} cannot be read ({}): it says which objects beside it count",
                bucket.shown(&key),
                safe(&why.to_string())
            ))
        };
        let mut text = String::new();
        GzDecoder::new(&*bytes)
            .take(TEXT_MAX)
            .read_to_string(&mut text)
            .map_err(|error| damaged(&error))?;
        let list: Self = serde_json::from_str(&text).map_err(|error| damaged(&error))?;
        if list.version != 1 {
            return Err(damaged(&"it is of a newer version"));
        }
        Ok(Some((list, version)))
    }

    /// Makes the list for when `file` replaces the current objects as well.
    pub fn next(before: Option<&Self>, run: &str, file: String, current: &[String]) -> Self {
        let mut replaced = before.map(|it| it.replaced.clone()).unwrap_or_default();
        // Objects that only count by a list need not be remembered.
        replaced.extend(current.iter().filter(|it| !is_by_list(it)).cloned());
        Self {
            version: 1,
            run: run.into(),
            file,
            replaced,
        }
    }

    /// Returns the name of the object that counts instead of others.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Writes the list, if it is still the one of that version. `Changed` if another run was faster.
    pub fn write(
        &self,
        bucket: &Bucket,
        folder: &Path,
        before: Option<Version>,
    ) -> Result<(), Trouble> {
        let failed = |error: &dyn std::fmt::Display| Trouble::Later(error.to_string());
        let text = serde_json::to_vec(self).map_err(|error| failed(&error))?;
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(&text).map_err(|error| failed(&error))?;
        let bytes = packed.finish().map_err(|error| failed(&error))?;
        let trouble = match bucket.put_if(&folder.join(NAME), bytes, before) {
            Ok(()) => return Ok(()),
            Err(Trouble::Ended(failure)) => return Err(Trouble::Ended(failure)),
            Err(trouble) => trouble,
        };
        // If only the answer was lost, the list is this one, and a repetition finds it changed.
        match Self::read(bucket, folder) {
            Ok(Some((list, _))) if list == *self => Ok(()),
            _ => Err(trouble),
        }
    }

    /// Divides the objects of a folder.
    fn divide(list: Option<&Self>, names: Vec<String>) -> Objects {
        let mut objects = Objects::default();
        for name in names {
            let (is_file, is_replaced) = match list {
                Some(list) => (list.file == name, list.replaced.contains(&name)),
                None => (false, false),
            };
            if is_file || !is_by_list(&name) && !is_replaced {
                objects.current.push(name);
            } else if is_replaced {
                objects.replaced.push(name);
            } else {
                objects.unfinished.push(name);
            }
        }
        objects
    }
}

/// The objects of a folder, and the list by which they were divided.
pub struct Look {
    pub objects: Objects,
    pub list: Option<(Compacted, Version)>,
}

impl Look {
    /// Lists the objects of a folder whose names `is_wanted`, and reads the list after that.
    pub fn at(
        bucket: &Bucket,
        folder: &Path,
        is_wanted: impl Fn(&Path) -> bool,
    ) -> Result<Self, Trouble> {
        let mut before = None;
        for _ in 0..LOOKS {
            let entries = bucket.entries(folder)?.into_iter();
            let names = entries.filter(|it| is_wanted(it)).filter_map(|it| {
                let name = it.file_name()?.to_str()?;
                Some(name.to_string())
            });
            let names: Vec<String> = names.collect();
            let list = Compacted::read(bucket, folder)?;
            let now = list.as_ref().map(|it| &it.0);
            let is_there = now.is_none_or(|it| it.file.is_empty() || names.contains(&it.file));
            // If it is not there, it was compacted between both questions; or the object was removed,
            // as those are that were kept long enough, and the list is the same the next time.
            if is_there || now == before.as_ref() {
                let objects = Compacted::divide(now, names);
                return Ok(Self { objects, list });
            }
            before = list.map(|it| it.0);
        }
        Err(Trouble::Missing)
    }

    /// Returns the keys of the objects that count.
    pub fn current(&self, folder: &Path) -> Vec<PathBuf> {
        let current = self.objects.current.iter();
        current.map(|name| folder.join(name)).collect()
    }
}

/// Whether an object was replaced by one that has its rows.
pub fn is_replaced(bucket: &Bucket, key: &Path) -> Result<bool, Trouble> {
    let folder = key.parent().unwrap_or(Path::new(""));
    let name = key.file_name().unwrap_or_default().to_string_lossy();
    let list = Compacted::read(bucket, folder)?;
    Ok(list.is_some_and(|(list, _)| list.replaced.contains(&*name)))
}

/// Returns a name for a run that no other run has.
pub fn new_run() -> String {
    // Each state of the standard library's hash is random.
    let time = std::time::SystemTime::now();
    format!(
        "{:016x}",
        RandomState::new().hash_one((time, std::process::id()))
    )
}

/// Returns the name of the object that a run writes.
pub fn file_of(run: &str) -> String {
    format!("{BEGINNING}{run}{ENDING}")
}

/// Whether an object counts only if a list names it.
fn is_by_list(name: &str) -> bool {
    let run = name.strip_prefix(BEGINNING);
    let run = run.and_then(|it| it.strip_suffix(ENDING));
    run.is_some_and(|it| it.len() == RUN_DIGITS && it.bytes().all(|it| it.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|it| (*it).into()).collect()
    }

    #[test]
    fn an_object_counts_once_before_and_after() {
        let [one, two] = ["1111111111111111", "2222222222222222"].map(file_of);
        let (a, b, late) = ("a-1.parquet", "b-1.parquet", "c-1.parquet");
        // A run has written its object, and no list yet.
        let before = Compacted::divide(None, names(&[a, b, &one]));
        assert_eq!(before.current, [a, b]);
        assert_eq!(before.unfinished, [&*one]);
        let list = Compacted::next(None, "1111111111111111", one.clone(), &before.current);
        // The list is there, and the objects that it replaces as well.
        let after = Compacted::divide(Some(&list), names(&[a, b, late, &one, &two]));
        assert_eq!(after.current, [late, &*one]);
        assert_eq!(after.replaced, [a, b]);
        assert_eq!(after.unfinished, [&*two]);
        // The next run replaces both, and the first objects do not come back.
        let list = Compacted::next(Some(&list), "2222222222222222", two.clone(), &after.current);
        let last = Compacted::divide(Some(&list), names(&[a, late, &one, &two]));
        assert_eq!(last.current, [&*two]);
        assert_eq!(last.replaced, [a, late]);
        assert_eq!(last.unfinished, [&*one]);
    }

    #[test]
    fn no_file_of_the_shipper_counts_by_a_list() {
        assert!(is_by_list(&file_of(&new_run())));
        assert!(!is_by_list("compacted-5eed5eed5eed5eed-0000000001.parquet"));
        assert!(!is_by_list("compact-samples.parquet"));
        assert_ne!(new_run(), new_run());
    }
}
