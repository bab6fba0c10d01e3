//! The spool that an agent fills: a folder with a file for each window, `ID-NUMBER.TIME.pft`, and
//! `spool.json`, which has the id that the agent uses now (docs/recorder.md). The folder is the agent's;
//! the shipper writes nothing into it.

use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};

/// Digits of an id and of a number.
const ID_DIGITS: usize = 16;
const NUMBER_DIGITS: usize = 10;

/// The longest `spool.json` that is read.
const MEMORY_BYTES_MAX: u64 = 4096;

/// A window that is in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Drawn when the folder was first used: numbers of another id are other numbers.
    pub id: String,
    pub number: u64,
    pub path: PathBuf,
}

/// What `spool.json` says of importance here.
#[derive(Debug, Deserialize)]
struct Memory {
    id: String,
}

/// Lists the windows in the order in which they are to be sent: those of earlier ids first.
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

/// The id that the agent gives its windows now; `None` if that is not known.
fn current_id(folder: &Path) -> Option<String> {
    let path = folder.join("spool.json");
    let length = std::fs::symlink_metadata(&path).ok()?.len();
    if length > MEMORY_BYTES_MAX {
        return None;
    }
    let memory: Memory = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
    Some(memory.id)
}

/// The id and the number of a window by the name of its file; `None` if it is no window.
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
