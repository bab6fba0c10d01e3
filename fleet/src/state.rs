//! The stored state of each sink: its position in the spool, and statistics. Each sink has a file,
//! which is atomically replaced after each request or file, so that a shipper that was killed
//! continues at the next start where it was.

use crate::failure::{Failure, shown};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum number of remembered ids of earlier spools.
const IDS_MAX: usize = 8;

/// The state of a sink, and its file.
#[derive(Debug)]
pub struct SinkState {
    path: PathBuf,
    pub memory: Memory,
    /// Lock that is held as long as the shipper lives; `None` for a reader.
    _lock: Option<File>,
}

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub version: u32,
    /// For each id of a spool, the number of the next window.
    pub next: BTreeMap<String, u64>,
    /// Number of requests of that window that were already accepted.
    pub requests_done: u64,
    /// The file that is being written to a folder.
    pub plan: Option<Plan>,
    pub counts: Counts,
    /// Why nothing is sent now; and below, since when, in seconds since 1970.
    pub error: Option<String>,
    pub error_since: Option<u64>,
    /// Time of the last success, in seconds since 1970.
    pub taken_at: Option<u64>,
}

/// The windows that are being written to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub id: String,
    pub first: u64,
    pub last: u64,
    /// Their totals, which are counted when they are written.
    pub windows: u64,
    pub samples: u64,
    /// Windows up to the last one that a schedule left out.
    #[serde(default)]
    pub left_out: u64,
    /// The date of its folder; and below, the hour, and its name without ending.
    pub date: String,
    pub hour: u32,
    pub name: String,
}

/// Statistics of everything so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Windows of which everything was sent that could be.
    pub windows: u64,
    pub requests: u64,
    pub bytes: u64,
    pub samples: u64,
    /// Windows that the schedule left out.
    pub left_out: u64,
    /// Windows that were no longer in the spool, or never.
    pub lost: u64,
    /// Windows that were too old for the sink.
    pub expired: u64,
    /// Windows that could not be read.
    pub unreadable: u64,
    /// Requests and profiles that the sink has refused.
    pub refused: u64,
    pub retries: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            version: 1,
            next: BTreeMap::new(),
            requests_done: 0,
            plan: None,
            counts: Counts::default(),
            error: None,
            error_since: None,
            taken_at: None,
        }
    }
}

impl SinkState {
    /// Opens a sink's state for changes. Returns an error if another shipper has it open.
    pub fn open(folder: &Path, sink: &str) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure::failed(format!(
                "cannot keep anything in {}: {error}",
                shown(folder)
            ))
        };
        fs::create_dir_all(folder).map_err(failed)?;
        let lock = File::create(folder.join(format!("{sink}.lock"))).map_err(failed)?;
        if lock.try_lock().is_err() {
            return Err(Failure::failed(format!(
                "another shipper sends to {sink}, by its file in {}",
                shown(folder)
            )));
        }
        let mut state = Self::read(folder, sink)?;
        state._lock = Some(lock);
        state.write()?;
        Ok(state)
    }

    /// Reads a sink's state.
    pub fn read(folder: &Path, sink: &str) -> Result<Self, Failure> {
        let path = folder.join(format!("{sink}.json"));
        let damaged = |why: String| {
            Failure::failed(format!(
                "{} cannot be used ({why}): remove it to send everything that is in the spool once \
                 more",
                shown(&path)
            ))
        };
        let memory = match fs::read_to_string(&path) {
            Ok(text) => {
                let memory: Memory =
                    serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
                if memory.version != 1 {
                    return Err(damaged("it is of another version".into()));
                }
                memory
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Memory::default(),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(Failure::failed(format!(
                    "no right to read {}: the user of the shipper has it, and root",
                    shown(&path)
                )));
            }
            Err(error) => return Err(damaged(error.to_string())),
        };
        Ok(Self {
            path,
            memory,
            _lock: None,
        })
    }

    /// Atomically writes the state.
    pub fn write(&mut self) -> Result<(), Failure> {
        while self.memory.next.len() > IDS_MAX {
            self.memory.next.pop_first();
        }
        let text = serde_json::to_string(&self.memory).unwrap_or_default();
        write_whole(&self.path, text.as_bytes()).map_err(|error| {
            Failure::failed(format!("cannot write {}: {error}", shown(&self.path)))
        })
    }

    /// Stores why nothing is sent. Returns true if that is new.
    pub fn set_error(&mut self, why: &str) -> bool {
        let is_new = self.memory.error.as_deref() != Some(why);
        if is_new {
            self.memory.error = Some(why.into());
            self.memory.error_since.get_or_insert_with(now);
        }
        is_new
    }

    /// Records a success. Returns true if there was an error before.
    pub fn clear_error(&mut self) -> bool {
        self.memory.error_since = None;
        self.memory.taken_at = Some(now());
        self.memory.error.take().is_some()
    }
}

/// Writes a file that gets its name only when it is complete.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut hidden = path.file_name().unwrap_or_default().to_owned();
    hidden.push(".part");
    let part = path.with_file_name(hidden);
    let mut file = File::create(&part)?;
    file.write_all(bytes)?;
    // Without this, a machine that crashes may have an empty file under the name.
    file.sync_data()?;
    fs::rename(&part, path)
}

/// Returns the current time in seconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_only_one_writes() {
        let folder = tempfile::tempdir().unwrap();
        let mut state = SinkState::open(folder.path(), "sink").unwrap();
        state.memory.next.insert("a".into(), 7);
        state.memory.counts.samples = 12;
        assert!(state.set_error("away"));
        assert!(!state.set_error("away"));
        state.write().unwrap();
        let second = SinkState::open(folder.path(), "sink");
        assert!(second.unwrap_err().to_string().contains("another shipper"));
        let read = SinkState::read(folder.path(), "sink").unwrap();
        assert_eq!(read.memory, state.memory);
        assert!(state.clear_error());
        fs::write(folder.path().join("sink.json"), "{").unwrap();
        let damaged = SinkState::read(folder.path(), "sink").unwrap_err();
        assert!(damaged.to_string().contains("remove it"), "{damaged}");
    }
}
