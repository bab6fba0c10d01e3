//! The samples of earlier looks and recordings, kept for later calls.

use crate::batch::BatchReport;
use crate::commands::resolve::Places;
use crate::commands::{recorded, recording_order};
use crate::user_files::UserFiles;
use crate::words::{markdown, text};
use engine::snapshot::{Asked, Recording, Snapshot};
use profile::{Cancel, Filter, Query, Selection, View};
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many looks are kept; the oldest are dropped first. Each has at most 64 MB.
const LOOKS_MAX: usize = 6;
/// The names of looks begin with this.
const LOOK: &str = "look-";
/// Maximum length of a file. Its samples in memory are limited as for every recording.
const FILE_MAX: u64 = 1 << 30;
/// Maximum width of a file's name in an answer, in cells.
const NAME_CELLS: usize = 60;

/// Samples, and their name in answers.
#[derive(Debug, Clone)]
pub struct Lot {
    pub name: String,
    pub snapshot: Arc<Snapshot>,
}

/// The samples of one connection.
#[derive(Debug, Default)]
pub struct Samples {
    /// The kept looks, the newest at the end.
    looks: VecDeque<Lot>,
    /// Number of looks so far.
    count: u64,
    /// The last recordings that were read: two, because `diff` compares two.
    files: VecDeque<(FileKey, Lot)>,
}

/// The identity of a file, to notice that it has changed since it was read.
#[derive(Debug, PartialEq, Eq)]
struct FileKey {
    path: PathBuf,
    metric: Option<String>,
    /// Device, inode, length, and time of the last change.
    revision: (u64, u64, u64, i64, i64),
}

impl Samples {
    /// Keeps the samples of a look, and gives them a name.
    pub fn keep(&mut self, snapshot: Arc<Snapshot>) -> Lot {
        self.count += 1;
        let name = format!("{LOOK}{}", self.count);
        let lot = Lot { name, snapshot };
        self.looks.push_back(lot.clone());
        if self.looks.len() > LOOKS_MAX {
            self.looks.pop_front();
        }
        lot
    }

    /// Returns the newest look.
    pub fn newest(&self) -> Result<Lot, String> {
        let none = "there are no samples yet: call `look` first, or name a recording in `samples`";
        self.looks.back().cloned().ok_or_else(|| none.to_owned())
    }

    /// Returns a look by its name, or reads a recording.
    pub fn find(&mut self, name: &str, metric: Option<&str>) -> Result<Lot, String> {
        let number = name.strip_prefix(LOOK);
        let is_look = number.is_some_and(|number| number.parse::<u64>().is_ok());
        if !is_look {
            return self.read(Path::new(name), metric);
        }
        let mut looks = self.looks.iter();
        let found = looks.find(|lot| lot.name == name).cloned();
        found.ok_or_else(|| {
            let kept: Vec<&str> = self.looks.iter().map(|lot| lot.name.as_str()).collect();
            match kept.as_slice() {
                [] => "there was no look yet".to_owned(),
                kept => format!("that look is not kept; there are: {}", kept.join(", ")),
            }
        })
    }

    /// Returns the lot of this name; None means the newest look.
    pub fn find_or_newest(&mut self, name: Option<&str>) -> Result<Lot, String> {
        match name {
            Some(name) => self.find(name, None),
            None => self.newest(),
        }
    }

    /// Opens a recording with the rights of the user who started the server, because a client may
    /// name any file, and has it read.
    fn read(&mut self, path: &Path, metric: Option<&str>) -> Result<Lot, String> {
        let shown = text::cut_middle(&path.to_string_lossy(), NAME_CELLS).into_owned();
        let why = |error: &dyn std::fmt::Display| format!("cannot read that file: {error}");
        if path == Path::new("-") {
            return Err("standard input is where messages come from, and no recording".into());
        }
        let file = UserFiles::current()
            .open(path, FILE_MAX)
            .map_err(|error| why(&error))?;
        let key = FileKey {
            path: path.to_owned(),
            metric: metric.map(str::to_owned),
            revision: revision(&file).map_err(|error| why(&error))?,
        };
        if let Some((_, lot)) = self.files.iter().find(|(known, _)| *known == key) {
            return Ok(lot.clone());
        }
        let opened = recording_order::read(file, metric, &Places::of_this_machine())
            .map_err(|error| why(&error))?;
        let selection = opened
            .view
            .select(&Query::default(), &Cancel::new())
            .map_err(|error| why(&error))?;
        let recording = Recording {
            lacks: opened.lacks,
            ..Recording::default()
        };
        let snapshot = recorded::snapshot(&opened.view, &opened.notes, recording, true, &selection);
        let lot = Lot {
            name: shown,
            snapshot: Arc::new(snapshot),
        };
        if self.files.len() == 2 {
            self.files.pop_front();
        }
        self.files.push_back((key, lot.clone()));
        Ok(lot)
    }
}

fn revision(file: &File) -> std::io::Result<(u64, u64, u64, i64, i64)> {
    let of = file.metadata()?;
    Ok((of.dev(), of.ino(), of.len(), of.mtime(), of.mtime_nsec()))
}

impl Lot {
    /// Returns a share of the samples as text, see [`markdown::share`].
    pub fn share(&self, part: u64, all: u64) -> String {
        markdown::share(&self.snapshot.report, part, all)
    }

    /// Returns all of its samples.
    pub fn view(&self) -> Result<&View, String> {
        let view = self.snapshot.view.as_ref();
        view.ok_or_else(|| "it has no samples".to_owned())
    }

    /// Returns the samples that pass a filter.
    pub fn select(&self, filter: Filter, cancel: &Cancel) -> Result<Selection, String> {
        let query = Query {
            filter,
            ..self.snapshot.asked.query.clone()
        };
        self.view()?
            .select(&query, cancel)
            .map_err(|error| error.to_string())
    }

    /// Returns the samples that pass a filter, under the same name.
    pub fn narrowed(self, filter: Filter, cancel: &Cancel) -> Result<Lot, String> {
        if filter == self.snapshot.asked.query.filter {
            return Ok(self);
        }
        let selection = self.select(filter, cancel)?;
        let mut report = selection.report();
        if let Some(recording) = &self.snapshot.source.recording {
            recording.correct(true, &mut report);
        }
        let snapshot = Snapshot {
            report: Arc::new(report),
            asked: Asked {
                query: selection.query().clone(),
                turn: self.snapshot.asked.turn + 1,
                window: self.snapshot.asked.window,
            },
            offered: selection.offered(),
            // It is known only for all threads together which one waits for which.
            waited: None,
            ..(*self.snapshot).clone()
        };
        Ok(Lot {
            name: self.name,
            snapshot: Arc::new(snapshot),
        })
    }

    /// Returns the samples as a report.
    pub fn report(&self, tokens_max: usize) -> BatchReport<'_> {
        BatchReport {
            snapshot: &self.snapshot,
            version: env!("CARGO_PKG_VERSION"),
            // A report in Markdown has no time of day.
            time_unix_ms: 0,
            pids: &[],
            has_other_filters: false,
            top: None,
            width: None,
            tokens_max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_have_names_and_the_oldest_leave() {
        let mut samples = Samples::default();
        assert!(samples.newest().is_err());
        for number in 1..=LOOKS_MAX + 1 {
            let lot = samples.keep(Arc::default());
            assert_eq!(lot.name, format!("look-{number}"));
        }
        assert_eq!(samples.newest().unwrap().name, "look-7");
        assert!(samples.find("look-2", None).is_ok());
        let why = samples.find("look-1", None).unwrap_err();
        assert!(why.contains("look-2, look-3"), "{why}");
    }

    #[test]
    fn only_files_with_samples_are_read() {
        let mut samples = Samples::default();
        for name in [
            "/dev/zero",
            "/proc/self/mem",
            "/",
            "/etc/passwd",
            "no such",
            "-",
        ] {
            let why = samples.find(name, None).unwrap_err();
            assert!(!why.contains("root:"), "{why}");
        }
        let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/demo.pft");
        let lot = samples.find(demo, None).unwrap();
        assert!(lot.snapshot.report.samples > 0);
        let all = lot.snapshot.report.samples;
        let again = samples.find(demo, None).unwrap();
        assert!(Arc::ptr_eq(&lot.snapshot, &again.snapshot), "read once");
        let comm = again.snapshot.report.processes[0].comm.to_string();
        let filter = crate::values::filter(&format!("comm:\"{comm}\"")).unwrap();
        let part = lot.narrowed(filter, &Cancel::new()).unwrap();
        assert!(part.snapshot.report.samples < all);
        assert_eq!(part.snapshot.offered, all);
    }
}
