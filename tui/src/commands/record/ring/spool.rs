//! The *spool* of an agent: a folder in which each stretch of time, a *window*, is a recording of
//! its own, for another program that sends it on. The agent itself uses no network.
//!
//! ```text
//!        boundary          boundary          boundary
//!  ─────────┼─────────────────┼─────────────────┼────► clock of samples, whole seconds
//!           │    number 17    │    number 18    │
//!           │                 └ 5 s for names, then …-0000000017.….pft
//!           └ the number is taken: if no file ever has it, that window is lost, and seen to be
//! ```

/// The files in the folder, and its state in `spool.json`.
mod folder;

use crate::cli::SpoolConfig;
use crate::failure::Failure;
use crate::stderr;
use crate::words::units::bytes as size_words;
use engine::snapshot::Snapshot;
use folder::Folder;
use profile::View;
use profile::formats::pft;
use serde::Serialize;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Time between the end of a window and its writing, in which the last names are looked up.
const NAMES_WAIT_NS: u64 = 5 * SECOND_NS;

const SECOND_NS: u64 = 1_000_000_000;

/// Time between a failed write and the next attempt.
const RETRY: Duration = Duration::from_secs(10);

/// The spool of an agent.
pub struct Spool {
    folder: Folder,
    length: Duration,
    /// The window of the newest samples. None before the first sample.
    current: Option<Window>,
    /// Windows that are over and not written yet, the oldest first.
    over: VecDeque<Window>,
    /// When writing is tried again after a failure.
    retry_at: Option<Instant>,
    /// The failure.
    error: Option<String>,
}

/// A stretch of time, on the clock of samples.
struct Window {
    /// Its number in the spool. Each number is used once.
    number: u64,
    begin_ns: u64,
    /// The first moment after it.
    until_ns: u64,
    /// Lost samples of the whole run before the window and, once it is over, up to its end.
    lost_before: u64,
    lost_until: u64,
}

/// The state of a spool, for `agent status`.
#[derive(Debug, Serialize)]
pub struct SpoolStatus {
    folder: String,
    window_seconds: u64,
    windows: usize,
    bytes: u64,
    bytes_max: u64,
    /// Windows that were removed because the folder was full, since it was created.
    removed: u64,
    /// Windows that could not be written, since it was created.
    unwritten: u64,
    /// Why a window is not being written at present.
    error: Option<String>,
}

impl Spool {
    /// Opens the folder, which is created if it is missing.
    pub fn open(config: &SpoolConfig) -> Result<Self, Failure> {
        Ok(Self {
            folder: Folder::open(config)?,
            length: config.window,
            current: None,
            over: VecDeque::new(),
            retry_at: None,
            error: None,
        })
    }

    /// Writes the windows that are over at `until_ns`, the end of a report.
    pub fn append(&mut self, view: &View, until_ns: u64) {
        self.turn(view, until_ns);
        if self.retry_at.is_none_or(|at| Instant::now() >= at) {
            self.write_older_than(view, until_ns.saturating_sub(NAMES_WAIT_NS));
        }
    }

    /// Writes all remaining windows, even the current one.
    pub fn finish(&mut self, snapshot: &Snapshot) {
        let Some(view) = &snapshot.view else { return };
        let end_ns = snapshot.report.window.end_ns;
        self.turn(view, end_ns);
        if let Some(mut last) = self.current.take() {
            last.until_ns = end_ns.saturating_add(1);
            last.lost_until = view.info().lost;
            self.over.push_back(last);
        }
        self.write_older_than(view, u64::MAX);
        for window in std::mem::take(&mut self.over) {
            self.give_up(&window);
        }
        self.folder.remember();
    }

    /// Returns when the current window begins, on the clock of samples. None before the first
    /// sample.
    pub fn window_begin_ns(&self) -> Option<u64> {
        self.current.as_ref().map(|window| window.begin_ns)
    }

    /// Returns a sentence on what is written where.
    pub fn what(&self) -> String {
        let (seconds, folder) = (self.length.as_secs(), &self.folder);
        let (name, size) = (folder.name(), size_words(folder.bytes_max()));
        format!("writes each {seconds}s into {name} as well, {size} at most")
    }

    /// Returns the state of the spool.
    pub fn status(&self) -> SpoolStatus {
        let folder = &self.folder;
        SpoolStatus {
            folder: folder.name().into(),
            window_seconds: self.length.as_secs(),
            windows: folder.windows(),
            bytes: folder.bytes(),
            bytes_max: folder.bytes_max(),
            removed: folder.removed(),
            unwritten: folder.unwritten(),
            error: self.error.clone(),
        }
    }

    /// Ends the current window if its time is over, and begins the next one.
    fn turn(&mut self, view: &View, until_ns: u64) {
        let lost = view.info().lost;
        if self.current.is_none() {
            let begin_ns = view.begin_ns().unwrap_or(until_ns).min(until_ns);
            self.current = Some(self.begin(view, begin_ns, 0));
        }
        while let Some(mut window) = self.current.take_if(|it| it.until_ns <= until_ns) {
            let next_ns = window.until_ns;
            window.lost_until = lost;
            self.over.push_back(window);
            self.current = Some(self.begin(view, next_ns, lost));
        }
    }

    /// Begins a window, which ends at the next boundary. Boundaries depend on the time of day and
    /// on the name of the host, so that not all machines of a fleet send at the same moment. Both
    /// ends are whole seconds on the clock of samples, because files are cut at whole seconds.
    fn begin(&mut self, view: &View, begin_ns: u64, lost_before: u64) -> Window {
        let begin_ns = begin_ns / SECOND_NS * SECOND_NS;
        let length_ms = self.length.as_millis() as u64;
        let phase_ms = profile::fnv1a(view.info().host.name.as_bytes()) % length_ms;
        let begin_ms = view.info().epoch_unix_ms + (begin_ns / 1_000_000) as i64;
        let into_ms = begin_ms.wrapping_sub_unsigned(phase_ms);
        let left_ms = length_ms - into_ms.rem_euclid(length_ms as i64) as u64;
        let seconds = left_ms.div_ceil(1000).clamp(1, self.length.as_secs());
        Window {
            number: self.folder.take_number(),
            begin_ns,
            until_ns: begin_ns + seconds * SECOND_NS,
            lost_before,
            lost_until: lost_before,
        }
    }

    /// Writes the windows that were over at `over_ns`, the oldest first. After a failure it is
    /// tried again later, for as long as memory has the samples.
    fn write_older_than(&mut self, view: &View, over_ns: u64) {
        while let Some(window) = self.over.pop_front_if(|it| it.until_ns <= over_ns) {
            let written = self.write(view, &window);
            self.error = written.as_ref().err().cloned();
            let Err(error) = written else {
                if self.retry_at.take().is_some() {
                    stderr::say(format_args!("{} is written again", self.folder.name()));
                }
                continue;
            };
            if self.retry_at.is_none() {
                let name = self.folder.name();
                stderr::say(format_args!(
                    "cannot write a window into {name}: {error}; it is tried again as long as \
                     memory has its samples"
                ));
            }
            self.retry_at = Some(Instant::now() + RETRY);
            if view.begin_ns().is_some_and(|begin| begin > window.begin_ns) {
                self.give_up(&window);
            } else {
                self.over.push_front(window);
                return;
            }
        }
    }

    fn give_up(&mut self, window: &Window) {
        self.folder.add_unwritten(window.number);
        let (name, number) = (self.folder.name(), window.number);
        stderr::say(format_args!("window {number} of {name} is lost"));
    }

    fn write(&mut self, view: &View, window: &Window) -> Result<(), String> {
        let failed = |error: profile::formats::FormatError| error.to_string();
        let mut content = Vec::new();
        let mut writer = pft::Writer::new(&mut content).map_err(failed)?;
        writer.begin_at(window.begin_ns);
        writer.count_lost(window.lost_before, window.lost_until);
        let written = writer
            .append_last(view, window.until_ns - 1)
            .and_then(|()| writer.finish(view));
        written.map_err(failed)?;
        let begin_ms = (window.begin_ns / 1_000_000) as i64;
        let unix_ms = view.info().epoch_unix_ms.saturating_add(begin_ms);
        self.folder.write(window.number, unix_ms, &content)
    }
}

#[cfg(test)]
mod tests;
