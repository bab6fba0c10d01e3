//! The spool that an agent fills: a folder with a file for each window, `ID-NUMBER.TIME.pft`, and
//! `spool.json`, which has the id that the agent uses now (docs/recorder.md). The folder is the agent's;
//! the shipper writes nothing into it.

use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};

/// Digits of an id and of a number.
const ID_DIGITS: usize = 16;
const NUMBER_DIGITS: usize = 10;

/// Maximum length of `spool.json`.
const MEMORY_BYTES_MAX: u64 = 4096;

/// A window in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The random id of the spool, which was chosen when the folder was first used: numbers are
    /// unique only together with it.
    pub id: String,
    pub number: u64,
    pub path: PathBuf,
}

/// The part of `spool.json` that is used here.
#[derive(Debug, Deserialize)]
struct Memory {
    id: String,
}

/// Lists the windows in the order in which they are sent: those of earlier ids first.
pub fn list(folder: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for found in std::fs::read_dir(folder)? {
        let found = found?;
        let name = found.file_name();
        if let Some((id, number)) = name.to_str().and_then(read_name) {
            entries.push(Entry {
                id: id.into(),
                number,
                path: found.path(),
            });
        }
    }
    let current = current_id(folder);
    entries.sort_by(|a, b| {
        let place = |it: &Entry| Some(&it.id) == current.as_ref();
        (place(a), &a.id, a.number).cmp(&(place(b), &b.id, b.number))
    });
    Ok(entries)
}

/// Returns the id that the agent uses now; `None` if it is unknown.
fn current_id(folder: &Path) -> Option<String> {
    let path = folder.join("spool.json");
    let length = std::fs::symlink_metadata(&path).ok()?.len();
    if length > MEMORY_BYTES_MAX {
        return None;
    }
    let memory: Memory = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
    Some(memory.id)
}

/// Returns the id and the number in the name of a window's file; `None` if it is not a window.
fn read_name(name: &str) -> Option<(&str, u64)> {
    let (id, rest) = name.split_at_checked(ID_DIGITS)?;
    let (number, rest) = rest.strip_prefix('-')?.split_at_checked(NUMBER_DIGITS)?;
    let is_hex = |it: u8| matches!(it, b'0'..=b'9' | b'a'..=b'f');
    let is_window = id.bytes().all(is_hex)
        && number.bytes().all(|it| it.is_ascii_digit())
        && rest.starts_with('.')
        && rest.ends_with(".pft");
    is_window.then_some(())?;
    Some((id, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_come_in_their_order_and_those_of_an_earlier_folder_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        for name in [
            "spool.json",
            "notes.txt",
            "aaaaaaaaaaaaaaaa-0000000002.20261121T140312Z.pft",
            "aaaaaaaaaaaaaaaa-0000000010.20261121T140312Z.pft",
            "ffffffffffffffff-0000000003.20261121T140312Z.pft",
            ".proftop-12-1",
            "aaaaaaaaaaaaaaaa-0000000011.20261121T140312Z.pft.part",
        ] {
            std::fs::write(path.join(name), r#"{"id":"aaaaaaaaaaaaaaaa","next":7}"#).unwrap();
        }
        let listed = list(path).unwrap();
        let found: Vec<(&str, u64)> = listed.iter().map(|it| (&it.id[..1], it.number)).collect();
        assert_eq!(found, [("f", 3), ("a", 2), ("a", 10)]);
        assert!(list(&path.join("missing")).is_err());
    }
}
