//! The folder of a spool: a file for each window, `ID-NUMBER.TIME.pft`, and `spool.json`, which has
//! the next number. The random *id* is made when the folder is first used: if a folder is removed
//! and created anew, its numbers differ from the old ones by the id.

use crate::calendar;
use crate::cli::SpoolConfig;
use crate::failure::Failure;
use crate::stderr;
use crate::user_files::{Refusal, UserFiles};
use crate::words::units::bytes as size_words;
use probe::privilege::UserRights;
use rustix::fs::Mode;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The file with the state of the folder.
const MEMORY_FILE: &str = "spool.json";

/// Maximum length of that file.
const MEMORY_BYTES_MAX: u64 = 4096;

/// Number of digits of an id, and of a number.
const ID_DIGITS: usize = 16;
const NUMBER_DIGITS: usize = 10;

/// The folder of a spool.
pub struct Folder {
    path: PathBuf,
    name: String,
    bytes_max: u64,
    memory: Memory,
    /// The windows in the folder, the oldest first.
    windows: VecDeque<Kept>,
    bytes: u64,
    /// The mode of its files: a user who may list the folder may read them.
    mode: Mode,
    /// Held for as long as the agent runs.
    _lock: File,
}

/// A window in the folder.
struct Kept {
    name: String,
    bytes: u64,
}

/// The contents of `spool.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Memory {
    version: u32,
    id: String,
    /// The number of the next window.
    next: u64,
    /// Numbers in use whose windows are not written yet.
    unfinished: Vec<u64>,
    /// Number of windows that were removed because the folder was full; below, of those that could
    /// not be written.
    removed: u64,
    unwritten: u64,
}

impl Memory {
    fn new() -> Self {
        let drawn = RandomState::new().hash_one((SystemTime::now(), std::process::id()));
        Self {
            version: 1,
            id: format!("{drawn:0ID_DIGITS$x}"),
            next: 1,
            unfinished: Vec::new(),
            removed: 0,
            unwritten: 0,
        }
    }

    /// Parses the file. The error says why it is not a state of this version.
    fn read(text: &str) -> Result<Self, String> {
        let memory: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let is_id = memory.id.len() == ID_DIGITS && memory.id.bytes().all(is_hex);
        if is_id && memory.version == 1 {
            Ok(memory)
        } else {
            Err("it is of another version".into())
        }
    }
}

fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// Returns the id and the number of a window in the name of its file. None for other files.
fn read_name(name: &str) -> Option<(&str, u64)> {
    let (id, rest) = name.split_at_checked(ID_DIGITS)?;
    let (number, rest) = rest.strip_prefix('-')?.split_at_checked(NUMBER_DIGITS)?;
    let is_time = |text: &str| {
        text.len() == calendar::compact(0).len()
            && text.bytes().all(|it| it.is_ascii_alphanumeric())
    };
    let is_ours = id.bytes().all(is_hex)
        && number.bytes().all(|it| it.is_ascii_digit())
        && is_time(rest.strip_prefix('.')?.strip_suffix(".pft")?);
    is_ours.then_some(())?;
    Some((id, number.parse().ok()?))
}

impl Folder {
    /// Opens the folder, which is created if it is missing. It is an error if another agent uses
    /// it.
    pub fn open(config: &SpoolConfig) -> Result<Self, Failure> {
        let path = config.folder.clone();
        let name = symbolize::sanitize(path.as_os_str().as_encoded_bytes()).into_owned();
        super::super::make_folder(&path)?;
        let failed = |error: io::Error| Failure::failed(format!("cannot use {name}: {error}"));
        let files = UserFiles::current();
        let rights = UserRights::current();
        let lock = rights.run(|| File::open(&path)).map_err(failed)?;
        if lock.try_lock().is_err() {
            let sentence = format!("another agent writes to {name}: --spool names another folder");
            return Err(Failure::failed(sentence));
        }
        let status = lock.metadata().map_err(failed)?;
        let mode = Mode::from_raw_mode(0o600 | status.permissions().mode() & 0o044);
        let mut memory = match files.read(&path.join(MEMORY_FILE), MEMORY_BYTES_MAX) {
            Ok(text) => Memory::read(&text).unwrap_or_else(|error| {
                stderr::say(format_args!(
                    "{name}/{MEMORY_FILE} cannot be used ({error}): numbers of windows begin anew"
                ));
                Memory::new()
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Memory::new(),
            Err(error) => return Err(failed(error)),
        };
        let windows = list(files, &path, &mut memory).map_err(failed)?;
        let mut folder = Self {
            bytes: windows.iter().map(|it| it.bytes).sum(),
            path,
            bytes_max: config.bytes_max,
            memory,
            windows,
            mode,
            _lock: lock,
            name,
        };
        let written = folder.write_memory();
        let failed = |error| Failure::failed(format!("cannot write into {}: {error}", folder.name));
        written.map_err(failed)?;
        folder.make_room(0);
        Ok(folder)
    }

    /// Returns the number of the next window. It is written to `spool.json` at once: if the window
    /// is never written, no file has its number.
    pub fn take_number(&mut self) -> u64 {
        let number = self.memory.next;
        self.memory.next += 1;
        self.memory.unfinished.push(number);
        self.remember();
        number
    }

    /// Writes a window, after removing the oldest ones if there is no room.
    pub fn write(&mut self, number: u64, unix_ms: i64, content: &[u8]) -> Result<(), String> {
        let len = content.len() as u64;
        if len > self.bytes_max {
            let size = size_words(len);
            return Err(format!(
                "a window takes {size}: --spool-size has to be more"
            ));
        }
        self.make_room(len);
        let seconds = u64::try_from(unix_ms / 1000).unwrap_or(0);
        let time = calendar::compact(seconds);
        let name = format!("{}-{number:0NUMBER_DIGITS$}.{time}.pft", self.memory.id);
        let path = self.path.join(&name);
        self.publish(&path, content, false)?;
        self.memory.unfinished.retain(|it| *it != number);
        self.windows.push_back(Kept { name, bytes: len });
        self.bytes += len;
        Ok(())
    }

    /// Writes a file without a name, and gives it its name in one step.
    fn publish(&self, path: &Path, content: &[u8], replaces: bool) -> Result<(), String> {
        let files = UserFiles::current();
        let failed = |error: io::Error| error.to_string();
        let refused = |refusal: Refusal| refusal.to_string();
        let mut new = files.begin(path).map_err(refused)?;
        new.file().write_all(content).map_err(failed)?;
        // The umask may deny reading to users who may list the folder.
        files.set_mode(&new, self.mode).map_err(refused)?;
        // Without this, the file may be empty after a crash of the machine.
        new.file().sync_data().map_err(failed)?;
        let named = files.name(new, replaces);
        named.map(drop).map_err(refused)
    }

    /// Counts a window that could not be written.
    pub fn add_unwritten(&mut self, number: u64) {
        self.memory.unfinished.retain(|it| *it != number);
        self.memory.unwritten += 1;
    }

    /// Removes the oldest windows until there is room for `len` bytes.
    fn make_room(&mut self, len: u64) {
        let mut removed = 0;
        while self.bytes.saturating_add(len) > self.bytes_max {
            let Some(oldest) = self.windows.pop_front() else {
                break;
            };
            // If another program has removed the file, there is room as well.
            _ = UserFiles::current().remove(&self.path.join(&oldest.name));
            self.bytes = self.bytes.saturating_sub(oldest.bytes);
            removed += 1;
        }
        if removed > 0 {
            if self.memory.removed == 0 {
                let size = size_words(self.bytes_max);
                stderr::say(format_args!(
                    "{} has {size}, as much as it may: from now on the oldest windows are removed",
                    self.name
                ));
            }
            self.memory.removed += removed;
            self.remember();
        }
    }

    /// Writes the state. A failure does not matter while the agent runs, and the next agent finds
    /// the last number in the names of the windows.
    pub fn remember(&mut self) {
        _ = self.write_memory();
    }

    fn write_memory(&self) -> Result<(), String> {
        let text = serde_json::to_string(&self.memory).map_err(|error| error.to_string())?;
        self.publish(&self.path.join(MEMORY_FILE), (text + "\n").as_bytes(), true)
    }

    /// Returns the name of the folder for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of windows in the folder.
    pub fn windows(&self) -> usize {
        self.windows.len()
    }

    /// Returns the number of bytes of its windows.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the maximum number of bytes of its windows.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Returns the number of windows that were removed because the folder was full.
    pub fn removed(&self) -> u64 {
        self.memory.removed
    }

    /// Returns the number of windows that could not be written.
    pub fn unwritten(&self) -> u64 {
        self.memory.unwritten
    }
}

/// Lists the windows in a folder, the oldest first. Those with another id are older.
fn list(files: UserFiles, path: &Path, memory: &mut Memory) -> io::Result<VecDeque<Kept>> {
    let names = files.list(path)?;
    // An agent that was killed has not written its last windows.
    let mut unwritten = std::mem::take(&mut memory.unfinished);
    let mut found: Vec<(bool, u64, Kept)> = Vec::new();
    for name in names.iter().filter_map(|name| name.to_str()) {
        let Some((id, number)) = read_name(name) else {
            continue;
        };
        let size = UserRights::current().run(|| std::fs::symlink_metadata(path.join(name)));
        let is_own = id == memory.id;
        if is_own {
            memory.next = memory.next.max(number + 1);
            unwritten.retain(|it| *it != number);
        }
        let bytes = size.map_or(0, |it| it.len());
        let name = name.to_string();
        found.push((is_own, number, Kept { name, bytes }));
    }
    memory.unwritten += unwritten.len() as u64;
    profile::few::sort_by(&mut found, |a, b| (a.0, a.1).cmp(&(b.0, b.1)));
    Ok(found.into_iter().map(|(_, _, kept)| kept).collect())
}

#[cfg(test)]
mod tests;
