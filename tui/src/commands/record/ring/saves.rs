//! The files of saved minutes. They are beside the ring file, with the time in their names:
//! `ring.20261121T140312Z.pft`. If there are too many, the oldest are removed.

use crate::calendar;
use crate::output;
use crate::stderr;
use crate::user_files::{Manner, Refusal, UserFiles};
use crate::words::units::bytes;
use profile::View;
use profile::few;
use profile::formats::pft;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum number of names that are tried for a file, each a second later than the one before.
const NAMES_MAX: u64 = 10;

/// Saves minutes, and removes the oldest saved files.
pub struct Saves {
    /// The ring file.
    ring: PathBuf,
    files_max: usize,
    written: Cell<u64>,
    last: RefCell<Option<Saved>>,
    /// The names of the files that this run has written, in that order, and that may still exist.
    /// The times in the names do not show the order if the clock was set back.
    ours: RefCell<VecDeque<OsString>>,
}

/// The last save: its begin and end on the clock of samples, and its file.
struct Saved {
    begin_ns: u64,
    end_ns: u64,
    path: PathBuf,
}

/// The kind of a file, as its name shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Saved,
    /// The ring file of an earlier run.
    Earlier,
}

impl Kind {
    fn ending(self) -> &'static str {
        match self {
            Kind::Saved => ".pft",
            Kind::Earlier => ".earlier.pft",
        }
    }
}

/// Maximum number of ring files of earlier runs. They have a limit of their own, so that a recorder
/// that fails again and again does not push out saved files.
const EARLIER_MAX: usize = 3;

impl Saves {
    /// Saves beside this ring file, and leaves at most `files_max` files there.
    pub fn new(ring: PathBuf, files_max: usize) -> Self {
        let written = Cell::new(0);
        Self {
            ring,
            files_max,
            written,
            last: RefCell::new(None),
            ours: RefCell::default(),
        }
    }

    /// Returns how many files this run has written.
    pub fn written(&self) -> u64 {
        self.written.get()
    }

    /// Returns the maximum number of files.
    pub fn files_max(&self) -> usize {
        self.files_max
    }

    /// Returns the last file of this run, if there is one.
    pub fn last(&self) -> Option<PathBuf> {
        self.last.borrow().as_ref().map(|last| last.path.clone())
    }

    /// Saves the samples between two moments, unless the last file has all of them up to
    /// `needed_ns`. Returns a sentence about it; [`Saves::last`] is the file.
    pub fn write(
        &self,
        view: &View,
        begin_ns: u64,
        needed_ns: u64,
        end_ns: u64,
        why: &str,
    ) -> Result<String, String> {
        let failed = |error: &dyn std::fmt::Display| error.to_string();
        if let Some(last) = &*self.last.borrow()
            && needed_ns <= last.end_ns
            && begin_ns >= last.begin_ns
            && output::is_there(&last.path)
        {
            return Ok(format!("{} has it already ({why})", shown(&last.path)));
        }
        let mut content = Vec::new();
        let mut writer = pft::Writer::new(&mut content).map_err(|error| failed(&error))?;
        writer.begin_at(begin_ns);
        writer.add_note(format!("saved by a flight recorder: {why}"));
        let written = writer
            .append_last(view, end_ns)
            .and_then(|()| writer.finish(view));
        written.map_err(|error| failed(&error))?;
        let asked_begin_ns = begin_ns;
        let begin_ns = view.begin_ns().unwrap_or(begin_ns).max(begin_ns);
        let seconds = end_ns.saturating_sub(begin_ns).div_ceil(1_000_000_000);
        let manner = Manner::usual(false);
        let write = |path: &Path| UserFiles::current().write(path, &content, manner);
        let path = self
            .named(now(), Kind::Saved, write)
            .map_err(|error| failed(&error))?;
        self.written.set(self.written.get() + 1);
        let name = shown(&path);
        self.remember(&path);
        let removed = self.remove_oldest(Kind::Saved, &path);
        self.last.replace(Some(Saved {
            begin_ns: asked_begin_ns,
            end_ns,
            path,
        }));
        let size = bytes(content.len() as u64);
        let mut sentence = format!("the last {seconds}s are in {name}, {size} ({why})");
        match removed {
            Ok(0) => {}
            Ok(removed) => sentence += &format!(", {removed} of the oldest removed"),
            Err(error) => sentence += &format!(", older ones cannot be removed: {error}"),
        }
        Ok(sentence)
    }

    /// Renames the ring file of an earlier run.
    pub fn keep_earlier(&self) -> io::Result<()> {
        let files = UserFiles::current();
        let changed = files.changed(&self.ring)?;
        let seconds = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
        let rename = |path: &Path| files.rename(&self.ring, path);
        let kept = self
            .named(seconds.as_secs(), Kind::Earlier, rename)
            .map_err(|refusal| io::Error::other(refusal.to_string()))?;
        let name = shown(&kept);
        stderr::say(format_args!("the ring of an earlier run is kept as {name}"));
        self.remove_oldest(Kind::Earlier, &kept).map(drop)
    }

    /// Calls `make` with names, from this second on, until one does not exist yet. Returns it.
    fn named(
        &self,
        seconds: u64,
        kind: Kind,
        mut make: impl FnMut(&Path) -> Result<(), Refusal>,
    ) -> Result<PathBuf, Refusal> {
        let mut number = 0;
        loop {
            let path = self.path(seconds + number, kind);
            match make(&path) {
                Err(Refusal::Exists) if number + 1 < NAMES_MAX => number += 1,
                made => return made.map(|()| path),
            }
        }
    }

    fn path(&self, seconds: u64, kind: Kind) -> PathBuf {
        let mut name = self.ring.file_stem().unwrap_or_default().to_owned();
        name.push(format!(".{}{}", calendar::compact(seconds), kind.ending()));
        self.ring.with_file_name(name)
    }

    fn remember(&self, path: &Path) {
        let mut ours = self.ours.borrow_mut();
        ours.extend(path.file_name().map(OsString::from));
        while ours.len() > self.files_max {
            ours.pop_front();
        }
    }

    /// Removes the oldest files, so that their number is within the limit. The new file is kept
    /// whatever its name is: the clock may have been set back.
    fn remove_oldest(&self, kind: Kind, new: &Path) -> io::Result<usize> {
        let files = UserFiles::current();
        let folder = self
            .ring
            .parent()
            .filter(|path| !path.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let mut names: Vec<OsString> = files.list(folder)?;
        names.retain(|name| self.is_ours(name, kind) && new.file_name() != Some(name));
        // Files of earlier runs are older, whatever their names say. Times in names have a fixed
        // length, so they sort as text.
        let ours = self.ours.borrow();
        let place = |name: &OsString| ours.iter().position(|one| one == name);
        few::sort_by(&mut names, |a, b| (place(a), a).cmp(&(place(b), b)));
        let files_max = match kind {
            Kind::Saved => self.files_max,
            Kind::Earlier => EARLIER_MAX,
        };
        let surplus = (names.len() + 1).saturating_sub(files_max).min(names.len());
        for name in &names[..surplus] {
            files.remove(&folder.join(name))?;
        }
        Ok(surplus)
    }

    /// Whether a file has a name as this recorder makes them. No other file is removed.
    fn is_ours(&self, name: &OsString, kind: Kind) -> bool {
        let stem = self.ring.file_stem().unwrap_or_default();
        let time = name
            .as_encoded_bytes()
            .strip_prefix(stem.as_encoded_bytes())
            .and_then(|rest| rest.strip_prefix(b"."))
            .and_then(|rest| rest.strip_suffix(kind.ending().as_bytes()));
        time.is_some_and(|time| {
            time.len() == calendar::compact(0).len()
                && time.iter().enumerate().all(|(at, byte)| match at {
                    8 => *byte == b'T',
                    15 => *byte == b'Z',
                    _ => byte.is_ascii_digit(),
                })
        })
    }
}

/// Returns a path for a message.
fn shown(path: &Path) -> String {
    symbolize::sanitize(path.as_os_str().as_encoded_bytes()).into_owned()
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_with_our_names_are_removed_the_oldest_first() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "ring.pft",
            "ring.20261121T140312Z.pft",
            "ring.20261121T140313Z.pft",
            "ring.20261121T140314Z.pft",
            "ring.20261121T140310Z.pft.bak",
            "ring.notes.pft",
            "other.20261121T140310Z.pft",
            "ring.2026112x7140310Z.pft",
        ];
        for name in names {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let saves = Saves::new(folder.path().join("ring.pft"), 2);
        let new = folder.path().join("ring.20261121T140312Z.pft");
        assert_eq!(saves.remove_oldest(Kind::Saved, &new).unwrap(), 1);
        let is_there = |name: &&str| folder.path().join(name).exists();
        let left: Vec<&str> = names.into_iter().filter(is_there).collect();
        let mut expected = names.to_vec();
        // One of the other two is removed, the older one.
        expected.remove(2);
        assert_eq!(left, expected);
    }

    #[test]
    fn where_the_clock_was_set_back_the_oldest_goes_by_when_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let saves = Saves::new(folder.path().join("ring.pft"), 2);
        let mut left = Vec::new();
        // The clock is set back by some years after the second file.
        for year in ["2026", "2027", "2025", "2024", "2023"] {
            let name = format!("ring.{year}1121T140312Z.pft");
            let path = folder.path().join(&name);
            std::fs::write(&path, "").unwrap();
            saves.remember(&path);
            saves.remove_oldest(Kind::Saved, &path).unwrap();
            left.push(name);
            let there = left.iter().filter(|name| folder.path().join(name).exists());
            let newest: Vec<&String> = left.iter().rev().take(2).rev().collect();
            assert_eq!(there.collect::<Vec<_>>(), newest);
        }
    }

    #[test]
    fn an_earlier_ring_is_kept_under_a_name_that_nothing_has() {
        let folder = tempfile::tempdir().unwrap();
        let ring = folder.path().join("ring.pft");
        std::fs::write(&ring, "earlier").unwrap();
        let changed = UNIX_EPOCH + std::time::Duration::from_secs(1_795_269_792);
        std::fs::File::options()
            .write(true)
            .open(&ring)
            .unwrap()
            .set_modified(changed)
            .unwrap();
        let taken = folder.path().join("ring.20261121T140312Z.earlier.pft");
        std::fs::write(&taken, "taken").unwrap();
        Saves::new(ring.clone(), 5).keep_earlier().unwrap();
        assert!(!ring.exists());
        assert_eq!(std::fs::read(taken).unwrap(), b"taken");
        let kept = folder.path().join("ring.20261121T140313Z.earlier.pft");
        assert_eq!(std::fs::read(kept).unwrap(), b"earlier");
    }
}
